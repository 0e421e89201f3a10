"""External forces on frames of large mechanisms, in rolled loops over bodies, equal the straight-line code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.graph import Recursion
from bellcrank.model import Mechanism
from bellcrank.sim.run.simulator import Simulator
from trees import close, few, trees


def pull(t: Any, pose: Any, velocity: Any) -> tuple[list[Any], list[Any]]:
    """A force that reads all of its arguments."""
    force = [pose[0, 3] * t - velocity[1], pose[1, 2] + velocity[5], pose[2, 3] * pose[0, 0]]
    return force, [velocity[3], pose[2, 1], velocity[0] * pose[1, 3]]


def rates(m: Mechanism, frames: list[str]) -> tuple[Any, Any]:
    """Return dy/dt with a force on each of the frames, and its graph."""
    f = Simulator(bc.system(m, forces=dict.fromkeys(frames, pull)), "rk4").dynamics.f
    given = {"p": m.parameters.nominal} if m.parameters else {}
    q, v, _ = m.random(5)
    return f.evaluate(t=0.7, y=np.concatenate([q, v]), **given)["dy"], f


@few(6)
@given(trees(max_bodies=6))
def test_passes_agree_with_written_out_forces(m: Mechanism) -> None:
    """The forces act on any frames, including the ground's."""
    frames = ["ground", *list(m.frames)[-3:]] if "ground" in m.frames else list(m.frames)[-3:]
    want, _ = rates(m, frames)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "MIN_PASS_BODIES", 1)
        patch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
        found, f = rates(m, frames)
    assert {g.name.rpartition(".")[2] for g in f.calls} >= {"frames", "felt"}
    close(found, want, 1e-10)


def test_free_numbers_and_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame's position may be a free parameter; and machine code steps as straight-line code does."""
    runs = []
    for _ in range(2):
        m = bc.zoo.chain(3, twist="general").free("link2.mass", "joint3.point.x")
        plant = bc.system(m, forces={"link3": pull})
        runs.append(bc.simulate(plant, seconds=0.02, step=5e-3, q0=m.random(0)[0], parameters={"link2.mass": 1.5}))
        monkeypatch.setattr(policy, "MIN_PASS_BODIES", 1)
        monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    close(runs[1].q, runs[0].q, 1e-10)
    close(runs[1]["link3.fy"], runs[0]["link3.fy"], 1e-10)


def test_a_long_chain_has_loops_and_no_paths() -> None:
    f = Simulator(bc.system(bc.zoo.chain(200), forces={"link200": pull}), "rk4").dynamics.f
    assert len(f.calls) == 3
    assert all(isinstance(g, Recursion) for g in f.calls)
    assert len(f.nodes) < 3_000
