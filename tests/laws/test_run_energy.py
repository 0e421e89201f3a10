"""Whole runs conserve the energy of a conservative mechanism to the integrator's order.

Every method of forward dynamics gives the same run.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import applicable_methods
from bellcrank.integrate import INTEGRATORS

SECONDS = 1.0
STEPS = {"euler": 0.001, "midpoint": 0.005}  # others: where truncation is far above rounding, so that the order shows
STEP = 0.01


@cache
def satellite() -> bc.Mechanism:
    """A free body with a ball joint and a hinge: two quaternions."""
    b = bc.Builder("satellite")
    b.body("hull", mass=3.0, com=(0.1, 0.0, 0.05), inertia=(0.2, 0.3, 0.4))
    b.body("wheel", mass=1.0, com=(0.4, 0.1, 0.0), inertia=(0.02, 0.05, 0.04))
    b.body("arm", mass=0.5, com=(0.0, 0.5, 0.3), inertia=(0.03, 0.01, 0.03))
    b.joint("free", "floating", "ground", "hull")
    b.joint("ball", "spherical", "hull", "wheel", point=(0.3, 0.0, 0.0))
    b.joint("elbow", "revolute", "hull", "arm", point=(0.0, 0.3, 0.0), axis=(1.0, 0.0, 0.0))
    return b.build()


SPIN = [0.3, -0.2, 0.5, 1.0, 2.0, -1.5, 2.0, -1.0, 1.5, 1.0]


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("what", ["puma600", "satellite"])
def test_energy_is_kept_to_the_order_of_the_integrator(what: str, name: str) -> None:
    """Half the step makes the error 2^order times smaller."""
    m, v0 = (bc.zoo.puma600(), None) if what == "puma600" else (satellite(), SPIN)
    sim, h = bc.Simulator(m, name), STEPS.get(name, STEP)
    coarse, fine = (sim.run(SECONDS, v0=v0, step=h / k, every=h).residuals()["energy"] for k in (1, 2))
    assert fine > 1e-14  # otherwise the result would be rounding error
    assert np.log2(coarse / fine) == pytest.approx(INTEGRATORS[name].order, abs=0.4)


MECHANISMS = {
    "puma600": ([0.1, 0.3, -0.2, 0.4, 0.5, -0.6], None),
    "stanford": ([0.0, np.pi / 2, 0.2, 0.1, 0.3, 0.0], None),
    "torso": ([0.3, 0.2, 0.4, -0.5, 0.6, 0.1], None),
    "slider_fourbar": (None, [0.1, 0.5, -0.3, 0.2]),
    "satellite": (None, SPIN),
}


def of(what: str) -> bc.Mechanism:
    if what == "slider_fourbar":
        return bc.zoo.slider_fourbar(closed=False)  # with a closed loop only some methods apply
    return satellite() if what == "satellite" else bc.zoo.load(what)


PAIRS = [(what, m.name) for what in MECHANISMS for m in applicable_methods("forward_dynamics", of(what).tree)]


@cache
def run_by(what: str, method: str) -> tuple[bc.Record, float]:
    """Return the run by this method, and its change for half the step."""
    q0, v0 = MECHANISMS[what]
    sim = bc.Simulator(of(what), method=method)
    run, finer = (sim.run(SECONDS, q0, v0, step=h, every=STEP) for h in (STEP, STEP / 2))
    assert run.provenance["method"] == method
    return run, float(np.abs(run.q - finer.q).max())


@pytest.mark.parametrize(("what", "method"), PAIRS)
def test_all_methods_give_the_same_run(what: str, method: str) -> None:
    """Methods agree to a thousandth of the integrator's error, with quaternions to that error.

    The integrator's error is 16/15 of the change for half the step. Inside a step quaternions do not have unit length,
    and methods differ in the use of their length.
    """
    (expected, accuracy), (found, own) = run_by(what, "aba"), run_by(what, method)
    allowed = 1e-3 * accuracy if of(what).nq == of(what).nv else 16 / 15 * (accuracy + own)
    assert np.abs(found.q - expected.q).max() < allowed


def test_methods_come_together_as_the_step_shrinks() -> None:
    """Methods that differ inside a step also converge at order 4."""
    apart = []
    for h in (STEP, STEP / 2):
        one, other = (bc.simulate(satellite(), SECONDS, v0=SPIN, step=h, method=k, every=STEP) for k in ("aba", "crba"))
        apart.append(float(np.abs(one.q - other.q).max()))
    assert apart[1] < 1.3 * apart[0] / 2**4


def test_many_methods_are_compared() -> None:
    assert {m for w, m in PAIRS if w == "torso"} >= {"aba", "crba", "ness", "joint_coordinates"}
    assert len(PAIRS) > 30
