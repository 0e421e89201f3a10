"""Regressors equal inverse dynamics, mass matrices and energies by other routes, on trees and closed loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.identify.closed_loops import Branch, random_states
from bellcrank.identify.experiments import read_measurement
from bellcrank.identify.least_squares import _log_cholesky, inertial_numbers, pseudo_inertia
from bellcrank.model import Mechanism

idf = bc.identify


def worn(m: Mechanism) -> Mechanism:
    """A mechanism with friction, rotors and springs in its joints."""
    more = {"armature": 0.3, "damping": 0.7, "friction": 0.4, "friction_speed": 0.5, "stiffness": 2.0, "rest": 0.2}
    return replace(m, joints=tuple(replace(j, **more) for j in m.joints))


def branched() -> Mechanism:
    b = bc.Builder("branched")
    b.body("trunk", mass=3.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    b.body("left", mass=2.0, com=(0.1, 0.0, -0.3), inertia=(0.2, 0.2, 0.1))
    b.body("right", mass=1.0, com=(0.0, 0.1, 0.3), inertia=(0.1, 0.2, 0.2))
    b.joint("trunk", "prismatic", "ground", "trunk", axis=(0, 0.6, 0.8))
    b.joint("left", "revolute", "trunk", "left", axis=(1, 0, 0), point=(0, 0.4, 0.1))
    b.joint("right", "spherical", "trunk", "right", point=(0.3, 0, 0.1))
    b.spring("cord", "ground", "left", (0.4, 1.0, 0.5), (0.1, 0.6, -0.4), stiffness=30.0, length=0.4, damping=2.0)
    return b.build()


def gliding() -> Mechanism:
    """Rotors on joints whose velocities are given in the body's axes."""
    b = bc.Builder("gliding")
    b.body("trunk", mass=3.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    b.body("plate", mass=2.0, com=(0.4, 0.0, 0.3), inertia=(0.2, 0.2, 0.1))
    b.joint("free", "floating", "ground", "trunk", armature=0.4, damping=0.2)
    b.joint("glide", "planar", "trunk", "plate", axis=(1, 0, 0), armature=0.3, damping=0.1)
    return b.build()


MECHANISMS = {
    "puma": lambda: worn(bc.zoo.puma600()),
    "branched": branched,
    "chain": lambda: worn(bc.zoo.chain(3)),
    "gliding": gliding,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_inverse_dynamics_is_linear(name: str) -> None:
    m = MECHANISMS[name]()
    q, v, a = m.random(3, 20)
    numbers = idf.numbers_of(m)
    x = idf.values_of(m, numbers)
    tau = np.asarray(m.inverse_dynamics(q, v, a))
    assert np.abs(idf.regressor(m, q, v, a) @ x - tau).max() < 1e-12 * np.abs(tau).max()
    p = np.einsum("sij,sj->si", m.mass_matrix(q), v)
    assert np.abs(idf.momentum_regressor(m, q, v) @ x - p).max() < 1e-12 * np.abs(p).max()


def test_energy_is_linear() -> None:
    m = worn(bc.zoo.puma600())
    q, v, _ = m.random(4, 20)
    x = idf.values_of(m, idf.numbers_of(m))
    T, U = idf.energy_regressor(m, q, v)
    assert np.allclose(T @ x, m.kinetic_energy(q, v), rtol=1e-12)
    springs = sum(0.5 * j.stiffness * j.rest**2 for j in m.joints)
    assert np.allclose(U @ x + springs, m.potential_energy(q), rtol=1e-12)


def test_another_mechanism_from_other_numbers() -> None:
    """The mechanism with new parameters needs exactly the forces that the regressor predicts."""
    m = branched()
    numbers = idf.numbers_of(m)
    x = idf.values_of(m, numbers) * np.random.default_rng(0).uniform(0.95, 1.05, len(numbers))
    other = idf.mechanism_with(m, numbers, x)
    q, v, a = m.random(5, 10)
    assert np.allclose(other.inverse_dynamics(q, v, a), idf.regressor(m, q, v, a) @ x, rtol=1e-10)
    assert np.allclose(idf.values_of(other, numbers), x, rtol=1e-12)


def parallelogram() -> Mechanism:
    """Two cranks and a coupler with a hand, a spring across it: one loop, one freedom, and gravity."""
    b = bc.Builder("parallelogram")
    b.body("front", mass=2.0, com=(0.0, 0.0, 0.25), inertia=(0.05, 0.05, 0.01))
    b.body("rear", mass=1.5, com=(0.0, 0.01, 0.22), inertia=(0.04, 0.04, 0.01))
    b.body("top", mass=3.0, com=(0.2, 0.0, 0.03), inertia=(0.02, 0.08, 0.08))
    b.joint("front", "revolute", "ground", "front", axis=(0, 1, 0), damping=0.5)
    b.joint("rear", "revolute", "ground", "rear", axis=(0, 1, 0), point=(0.4, 0, 0))
    b.joint("hand", "revolute", "front", "top", axis=(0, 1, 0), point=(0, 0, 0.5))
    b.loop("pin", "revolute", "rear", "top", point=(0.4, 0, 0.5), axis=(0, 1, 0))
    b.spring("spring", "ground", "front", (-0.3, 0, 0.1), (0, 0, 0.4), stiffness=400.0, length=0.3)
    return b.build()


def motion(seconds: float = 20.0, rate: float = 100.0) -> tuple[Any, ...]:
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2 * np.pi * np.array([0.1, 0.23, 0.41, 0.77])
    c = np.array([0.5, 0.2, 0.15, 0.1])
    q = sum(k * np.sin(f * t + f) for k, f in zip(c, w))
    v = sum(k * f * np.cos(f * t + f) for k, f in zip(c, w))
    return t, q, v, sum(-k * f * f * np.sin(f * t + f) for k, f in zip(c, w))


def test_a_parallelogram_arm_with_a_spring() -> None:
    """Base parameters from noisy torques of the driven joint predict other torques within the noise."""
    m = parallelogram()
    base = idf.base_parameters(m, actuated=["front"])
    _, *moved = motion()
    q, v, a = idf.completed(m, {"front": moved})
    assert np.abs(m.closure(q)).max() < 1e-9
    assert np.abs(np.gradient(q, 0.01, axis=0) - v)[1:-1].max() < 1e-3
    assert np.abs(np.gradient(v, 0.01, axis=0) - a)[1:-1].max() < 1e-2
    tau = np.asarray(m.inverse_dynamics(q, v, a, actuated=["front"]))[:, [m.columns[1].index("front")]]
    assert np.abs(base.regressor(q, v, a) @ base.nominal - tau[..., :]).max() < 1e-9 * np.abs(tau).max()
    sigma = 0.02 * tau.std()
    rng = np.random.default_rng(0)
    found = idf.estimate(base, q, v, a, tau + sigma * rng.normal(size=tau.shape))
    off = np.abs(found.values - base.nominal) / found.errors
    assert (off < 4.0).all(), str(found)
    assert abs(found.noise[0] / sigma - 1.0) < 0.05
    q, v, a = random_states(m, 200, 9, ["front"])
    other = np.asarray(m.inverse_dynamics(q, v, a, actuated=["front"]))[:, [0]]
    inside = np.abs(q[:, 0]) < 0.6
    assert np.abs(found.predicted(q, v, a) - other)[inside].mean() < sigma


def test_log_cholesky_is_every_body_that_can_be() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = inertial_numbers(rng.normal(size=10))
        assert np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0
        assert np.allclose(inertial_numbers(_log_cholesky(x)), x, rtol=1e-9, atol=1e-12 * np.abs(x).max())


def rhombus() -> Mechanism:
    """Two freedoms and one loop: five bars between two motors, with limits on the motors and on an elbow."""
    b = bc.Builder("five bars")
    for side, x in (("left", 0.0), ("right", 0.4)):
        b.body(f"{side} upper", mass=1.0, com=(0.0, 0.02, 0.2), inertia=(0.02, 0.02, 0.01))
        b.body(f"{side} lower", mass=0.6, com=(0.0, 0.0, 0.25), inertia=(0.02, 0.02, 0.01))
        b.joint(
            f"{side} motor", "revolute", "ground", f"{side} upper", axis=(0, 1, 0), point=(x, 0, 0),
            damping=0.2, lower=-1.4, upper=1.4, velocity=3.0,
        )  # fmt: skip
        limits = {"lower": -1.9, "upper": 1.9, "velocity": 4.0} if side == "left" else {}
        b.joint(
            f"{side} elbow", "revolute", f"{side} upper", f"{side} lower", axis=(0, 1, 0), point=(x, 0, 0.4), **limits
        )
    b.loop("tip", "revolute", "left lower", "right lower", point=(0.2, 0, 0.9), axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize(("m", "driven"), [(parallelogram(), ["front"]), (rhombus(), ["left motor", "right motor"])])
def test_loops_are_excited_within_limits(m: Mechanism, driven: list[str]) -> None:
    """The excitation closes the loops, respects joint limits, and determines the parameters better than its start.

    Therefore estimates from noisy torques lie inside their errors, which are smaller.
    """
    base = idf.base_parameters(m, actuated=driven)
    go = idf.excite(base, 20.0, 200.0)
    assert np.abs(m.closure(go.q)).max() < 1e-10
    assert np.abs(np.gradient(go.q, go.t, axis=0) - go.v)[1:-1].max() < 0.02
    assert np.abs(np.gradient(go.v, go.t, axis=0) - go.a)[1:-1].max() < 0.1
    assert np.abs(go.v[[0, -1]]).max() < 1e-12
    limits = m.limits
    assert (go.q >= limits.lower).all() and (go.q <= limits.upper).all() and (np.abs(go.v) <= limits.velocity).all()  # noqa: PT018
    assert go.cost < 0.6 * go.begun
    A = base.regressor(go.q, go.v, go.a)  # by the null space of the loops: another route than that of the search
    columns = A.reshape(-1, len(base))
    assert abs(np.linalg.cond(columns / np.linalg.norm(columns, axis=0)) / go.cost - 1.0) < 0.2
    places = [m.columns[1].index(name) for name in driven]
    tau = np.asarray(m.inverse_dynamics(go.q, go.v, go.a, actuated=driven))[:, places]
    noisy = tau + 0.02 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    found = idf.estimate(base, go.q, go.v, go.a, noisy)
    assert (np.abs(found.values - base.nominal) < 4.0 * found.errors).all(), str(found)


def test_a_delta_has_the_parameters_of_its_branch() -> None:
    """If its parallelograms could cross, forces would determine more parameters; but no such robot does."""
    m = bc.zoo.delta()
    base = idf.base_parameters(m, actuated=["shoulder1", "shoulder2", "shoulder3"])
    q, v, a = random_states(m, 50, 1, base.actuated)
    tau = np.asarray(m.inverse_dynamics(q, v, a, actuated=base.actuated))
    places = [m.columns[1].index(name) for name in base.actuated]
    assert len(base) == 34
    assert np.abs(base.regressor(q, v, a) @ base.nominal - tau[:, places]).max() < 1e-9 * np.abs(tau).max()


def test_driven_joints_are_enough_of_a_file(tmp_path: Path) -> None:
    """For closed loops only motors are measured; the other joints follow."""
    m = rhombus()
    driven = ["left motor", "right motor"]
    q, v, a = random_states(m, 40, 3, driven)
    places = [m.columns[1].index(name) for name in driven]
    rows = np.column_stack([np.arange(40.0), q[:, places], v[:, places], a[:, places], np.zeros((40, 2))])
    head = ",".join(["t", *(f"{n}.{k}" for k in ("q", "v", "a", "tau") for n in driven)])
    np.savetxt(tmp_path / "m.csv", rows, delimiter=",", header=head, comments="")
    for got, expected in zip(read_measurement(m, tmp_path / "m.csv", driven), (q, v, a)):
        assert np.allclose(got, expected, atol=1e-8)


def test_unsupported_loops_raise() -> None:
    m = rhombus()
    with pytest.raises(InputError, match=r"has 2 degrees of freedom, but 1 driven joints"):
        idf.base_parameters(m, actuated=["left motor"])
    with pytest.raises(InputError, match="do not close"):
        Branch(m, ["left motor", "right motor"]).motion(np.array([[-1.5, 1.5]]), np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="no branches"):
        idf.base_parameters(bc.zoo.chain(2), at=[0.0, 0.0])
    with pytest.raises(InputError, match="quaternions"):
        idf.excite(idf.base_parameters(branched()))
