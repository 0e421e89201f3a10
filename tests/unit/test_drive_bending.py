"""Flexible machines without a description get sliders for joints but not for modes, and servos that hold a boom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.machines import generic

STEEL, BOX = bc.Material.steel(), bc.Section.box(0.1, 0.15, 0.006)


def jib(**more: Any) -> Any:
    b = bc.Builder("jib")
    given = {"section": BOX, "material": STEEL, "elements": 4, "motions": ("bend_y",)} | more
    b.beam("boom", length=4.0, **given)
    b.joint("foot", "revolute", "ground", "boom", axis=(0, -1, 0))
    return b


def modal() -> Any:
    return jib(modes=1, below=300.0, damping=0.02).build()


def lift() -> Any:
    """Return a boom on a cylinder: one loop."""
    b = jib(modes=1, below=300.0, nodes={"end": 1.0, "eye": 0.5})
    b.body("barrel", mass=20.0, com=(1.0, 0, -0.5), inertia=(1, 1, 1))
    b.joint("barrel_pin", "revolute", "ground", "barrel", point=(0.5, 0, -1.0), axis=(0, -1, 0))
    b.body("rod", mass=10.0, com=(1.5, 0, -0.3), inertia=(1, 1, 1))
    b.joint("cylinder", "prismatic", "barrel", "rod", point=(1.0, 0, -0.6), axis=(1.5, 0, 1.0))
    b.close("eye", "revolute", "rod", "boom.eye", point=(2.0, 0, 0), axis=(0, -1, 0))
    return b.build()


def large(beta: float = 1e-5) -> Any:
    return jib(large=True, rayleigh=(0.0, beta)).build()


@pytest.mark.parametrize(("made", "levers"), [(modal, ["foot"]), (lift, ["cylinder"]), (large, ["foot"])])
def test_joints_have_sliders_and_modes_have_none(made: Any, levers: list[str]) -> None:
    machine = generic(made())
    assert [lever.name for lever in machine.levers] == levers


def test_a_servo_brings_the_boom_to_its_place() -> None:
    assert [lever.name for lever in generic(modal(), "torque").levers] == ["foot"]
    machine = generic(modal())
    assert machine.integrator == "rk4"
    run = bc.simulate(machine.system, 3.0, integrator="rk4", step=1e-3, every=0.5, inputs={"foot": 0.3})
    assert run["foot.q"][-1] == pytest.approx(0.3, abs=2e-3)
    assert np.abs(run["boom.end.mode1.q"]).max() > 1e-4


def test_damping_that_a_step_cannot_follow() -> None:
    """Too much structural damping for the step gives a warning before the run diverges.

    The decay rate is beta omega^2, and rk4 is stable up to 2.785 of it in a step.
    """
    m = large(1.0)
    M, K = m.mass_matrix(m.neutral()), np.diag([x.joint.stiffness for x in m.tree.links])
    limit = 2.785e3 / np.linalg.eigvals(np.linalg.solve(M, K)).real.max()
    good = bc.simulate(large(0.97 * limit), 0.2, step=1e-3, every=0.1)
    assert len(good.t) == 3
    with pytest.raises(bc.InputError, match=r'"boom" has a mode that is damped out.*step=.*rodas4.*beta'):
        bc.simulate(large(1.03 * limit), 0.2, step=1e-3)
    assert generic(large(1.03 * limit)).integrator == "rodas4"
