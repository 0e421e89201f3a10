"""Implicit steps of closed loops with contacts: called force graphs give the same motion as written-out forces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.forces import Contact, Plane, Sphere
from bellcrank.model import Mechanism
from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics, looped_dynamics
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import System
from crossing.thresholds import small_thresholds


def linkage() -> Mechanism:
    """Return a four-bar linkage that moves 0.04 m above a horizontal floor."""
    b = bc.Builder("linkage")
    bodies = (
        ("crank", "ground", (0.0, 0.0, 0.0)),
        ("coupler", "crank", (0.0, 0.2, 0.0)),
        ("rocker", "ground", (0.4, 0.0, 0.0)),
    )
    for name, parent, point in bodies:
        b.body(name, mass=1.0, com=point, inertia=(0.01, 0.01, 0.01))
        b.joint(f"{name}.pin", "revolute", parent, name, point=point, axis=(0, 0, 1), damping=0.01)
    b.close("eye", "revolute", "coupler", "rocker", point=(0.4, 0.3, 0.0), axis=(0, 0, 1))
    b.frame("floor", "ground", point=(0, 0, -0.04))
    return b.build()


def touching() -> System:
    """Return the linkage with two bodies that slide over the floor with friction."""
    contacts = [
        Contact(f"{body}.foot", "floor", body, Plane(), Sphere(0.05), stiffness=1e3, slow=0.1)
        for body in ("coupler", "rocker")
    ]
    return bc.system(linkage(), elements=contacts)


def dynamics(form: str) -> LoopedDynamics:
    return looped_dynamics(touching(), Solver("rodas4", form=form))


@pytest.mark.parametrize("form", ["lagrange", "projected", "minimal"])
@pytest.mark.parametrize("integrator", ["midpoint", "rodas4"])
def test_called_forces_do_not_change_an_implicit_run(form: str, integrator: str, tmp_path: Path) -> None:
    q, v = linkage().assemble(np.zeros(3), [0.5, -0.3, 0.2])

    def run(s: System) -> Any:
        return bc.simulate(s, 0.02, q, v, integrator=integrator, step=1e-3, form=form)

    usual, free = run(touching()), run(bc.system(linkage()))
    with small_thresholds("rolled", tmp_path):
        called = run(touching())
    assert np.abs(usual.v - free.v).max() > 1e-3, "the contacts do not act"
    for name in ("q", "v"):
        assert np.abs(getattr(called, name) - getattr(usual, name)).max() < 1e-10


@pytest.mark.parametrize("form", ["lagrange", "projected"])
def test_called_forces_do_not_change_the_jacobian(form: str, tmp_path: Path) -> None:
    """Nor is it much more work, as it would be with a call for each element of the state."""
    usual = dynamics(form)
    y = np.concatenate([[0.02, -0.01, 0.03], [0.5, -0.3, 0.2]])
    expected = usual.state_jacobian
    with small_thresholds("rolled", tmp_path):
        lowered = dynamics(form)
        assert lowered.f.calls, "the thresholds do not lead to calls"
        found = lowered.state_jacobian
        assert found.count().arithmetic < 2 * expected.count().arithmetic
        values = [g.evaluate(t=0.0, y=y)["ddy_dy"] for g in (expected, found)]
    assert np.abs(values[1] - values[0]).max() < 1e-9 * np.abs(values[0]).max()
