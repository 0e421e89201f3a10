"""A rope between two winches: it takes the shape of a catenary, and the winches limit its tension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.excavators import machines
from bellcrank.excavators.machines import MACHINES


@pytest.fixture(scope="module")
def small() -> machines.Machine:
    return machines.rope_machine(12)


def test_rope_can_be_driven_by_its_name() -> None:
    assert MACHINES["rope"] is machines.rope_machine
    assert [j.kind for j in bc.zoo.rope(200).joints].count("revolute") == 200  # the last pin closes the loop


def test_rope_comes_to_rest_as_a_hanging_polygon(small: machines.Machine) -> None:
    """At rest the horizontal force is constant along the rope, and so is the change of slope at every pin."""
    m = small.mechanism

    def held(t: Any, q: Any, v: Any, x: Any, u: Any) -> dict[str, Any]:
        return {n: -2e4 * q[n] - 2e3 * v[n] if n in machines.WINCHES else -100.0 * v[n] for n in m.columns[1]}

    free = bc.system(m, control=held)
    run = bc.simulate(free, seconds=30.0, step=2e-3, every=30.0, integrator="rk4", form="projected")
    assert np.abs(run.v[-1]).max() < 1e-3
    along = np.array([m.pose(run.q[-1], frame=f"link{i}")[:2, 3] for i in range(12)])
    slopes = np.diff(along[:, 1]) / np.diff(along[:, 0])
    steps = np.diff(slopes)
    assert np.ptp(steps) < 0.02 * steps.mean()


def test_winches_hold_and_pull_and_never_too_hard(small: machines.Machine) -> None:
    still = bc.simulate(small.system, seconds=1.0, step=1e-3, every=0.01, form="projected")
    assert np.abs(still["left.q"]).max() < 0.02
    pulls = {"left": -1.5, "right": 1.5}
    run = bc.simulate(small.system, seconds=8.0, step=1e-3, every=0.01, inputs=pulls, form="projected")
    assert np.abs(run["left.force"]).max() <= machines.WINCH_FORCE
    span = run["right.q"][-1] - run["left.q"][-1] + 2 * 8.3 * np.sin(1.2)
    assert 19.0 < span < 20.0  # nearly straight, and never longer than the rope
