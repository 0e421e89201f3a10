"""Thresholds between code paths, lowered: small mechanisms then take the paths of large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Where, what, and its value in tests: from so many bodies, numbers or operations on, or so many bodies of a class.
LOWERED: dict[str, float] = {
    "dynamics.requests.MOST_NUMBERS": 1,
    "build.sharing.ALIKE": 0,
    "build.beneath.MOST_STRAIGHT": 1,
    "build.beneath.ALIKE": 0,
    "sim.frame_passes.MANY": 1,
    "sim.frame_passes.ALIKE": 0,
    "sim.everywhere.MANY": 1,
    "sim.everywhere.ALIKE": 0,
    "sim.element_passes.FEW": 1,
    "sim.tree_dynamics.MANY": 1,
    "sim.implicit_systems.FEWEST": 1,
    "sim.looped_slopes.LARGE": 1,
    "graph.strip_parts.FEWEST": 1,
    "graph.strip_parts.LONG": 2,
    "graph.strip_parts.SHARE": 0.1,
    "emit.cpu.llvm.LARGE": 1,
    "emit.cpu.llvm.SPARED": 1,
    "emit.cpu.llvm.STACK": 1,
}


@contextmanager
def large_paths() -> Iterator[None]:
    """Lower all thresholds inside."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LOWERED.items():
            patch.setattr(f"bellcrank.{name}", value)
        yield
