"""Quantities of chains with one body fewer than, exactly, and more than the size at which link classes share code.

The other cases lower the thresholds; these use the real ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.policy import MIN_PASS_BODIES
from bellcrank.dynamics.quantities import QUANTITIES
from bellcrank.model import Mechanism
from cores import cheap
from crossing.laws import same
from crossing.mechanisms import on_body
from crossing.quantities import Array, check
from crossing.systems import World
from crossing.thresholds import SEGMENTED, small_thresholds

PLAIN = tuple(name for name, q in QUANTITIES.items() if not q.differentiates)
SIZES = (MIN_PASS_BODIES, MIN_PASS_BODIES + 1, MIN_PASS_BODIES - 1)


class Chain(World):
    """A chain with as many bodies as the seed gives."""

    @cached_property
    def mechanism(self) -> Mechanism:
        m = bc.zoo.chain(self.seed)
        tool = on_body(m, m.neutral().tolist(), "tool", m.bodies[-1].name, np.eye(4))
        return replace(m, frames={**m.frames, "tool": tool})

    @cached_property
    def start(self) -> tuple[Array, Array]:
        rng = np.random.default_rng(self.seed)
        return rng.normal(size=self.seed), rng.normal(size=self.seed)


@pytest.mark.parametrize("quantity", PLAIN)
@pytest.mark.parametrize("bodies", SIZES)
def test_chains(bodies: int, quantity: str) -> None:
    """Use the automatic method: the others are straight-line code and take minutes to compile."""
    check(Chain((), bodies), quantity)


def test_two_cores_share_the_segments_of_a_chain(tmp_path: Path) -> None:
    """Use forty bodies: with the real thresholds this takes thousands (tests/laws/test_segmented_recursion.py)."""
    m = bc.zoo.chain(40)
    with small_thresholds(SEGMENTED, tmp_path):
        kernel = bc.kernel(m, "forward_dynamics", "dca", machine=cheap(2))
        q, v, tau = m.random(3, (3,))
        found = kernel(q, v, tau)
        assert "2 cores" in kernel.source
    same(found, bc.kernel(m, "forward_dynamics", "aba")(q, v, tau), 1e-9, "accelerations")
