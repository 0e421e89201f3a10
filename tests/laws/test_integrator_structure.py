"""Exact invariants of integrators.

Symplectic area, quadratic invariants, unit length; and behaviour on stiff problems.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph import trace
from bellcrank.integrate import INTEGRATORS, Integrator, Problem, State, integrator
from bellcrank.scalar import Scalar, cos, sin
from motions import SPRING, TOP, distance, drive, jacobian_of_quadratic
from trees import inertia

PENDULUM = Problem(lambda t, y: [y[1], -sin(y[0])], 1, 1, 0, lambda t, y: ([[0.0, 1.0], [-cos(y[0]), 0.0]], [0.0, 0.0]))


def energies(problem: Problem, steps: int) -> np.ndarray[Any, Any]:
    euler, h, y, found = integrator("euler"), 0.05, [2.0, 0.0], []
    for _ in range(steps):
        y = euler.step(problem, 0.0, y, h, []).y
        found.append(0.5 * y[1] ** 2 - math.cos(y[0]))
    return np.array(found)


def test_euler_bounds_the_energy_of_a_pendulum() -> None:
    """Over 1e5 steps (800 swings) the energy band does not grow, whereas that of the explicit Euler method does."""
    energy = energies(PENDULUM, 100_000) + math.cos(2.0)
    first, last = np.abs(energy[:5000]).max(), np.abs(energy[-5000:]).max()
    assert last < 1.01 * first < 0.1
    assert abs(energy[-5000:].mean() - energy[:5000].mean()) < 0.01 * first
    assert abs(energies(Problem(PENDULUM.f, 0, 0, 2), 5000)[-1] + math.cos(2.0)) > 10 * first


@pytest.mark.parametrize(("name", "keeps"), [("euler", 1e-14), ("midpoint", 1e-11), ("rk4", None)])
def test_symplectic(name: str, keeps: float | None) -> None:
    """The area in phase space is conserved: the determinant of dy1/dy, by the graph's own derivatives."""

    def step(y: Any) -> dict[str, Any]:
        return {"after": integrator(name).step(SPRING.problem, 0.0, list(y), 0.1, []).y}

    jacobian = trace("step", step, {"y": (2,)}).jacobian("after", "y")
    (derivative,) = jacobian.evaluate(y=[0.8, -0.5]).values()
    off = abs(np.linalg.det(derivative) - 1.0)
    assert off > 1e-8 if keeps is None else off < keeps


INERTIA = np.array([1.0, 2.0, 3.5])


def _tumble(t: Scalar, y: State) -> State:
    a, b, c = y
    i, j, k = (float(x) for x in INERTIA)
    return [(j - k) / i * b * c, (k - i) / j * c * a, (i - j) / k * a * b]


def test_midpoint_keeps_quadratic_invariants() -> None:
    """Energy and momentum of a tumbling body, over 2000 steps of a twentieth of a radian and more."""
    problem = Problem(_tumble, 0, 0, 3, jacobian_of_quadratic(_tumble))

    def drift(name: str) -> float:
        y = np.array([step.y for step in drive(integrator(name), problem, [0.1, 1.2, 0.3], 0.05, 2000)])
        energy, momentum = (INERTIA * y**2).sum(axis=1), ((INERTIA * y) ** 2).sum(axis=1)
        return float(max(np.ptp(energy), np.ptp(momentum)))

    assert drift("midpoint") < 1e-12
    assert drift("rk4") > 1e-9


@pytest.mark.parametrize("method", INTEGRATORS.values(), ids=INTEGRATORS)
def test_rotations_stay_rotations(method: Integrator) -> None:
    """The quaternion of a free body has length 1 after every step; test_integrators measures its order."""
    for step in drive(method, TOP.problem, TOP.start, 0.05, 200):
        assert abs(np.linalg.norm(step.y[:4]) - 1.0) < 4e-16


def prothero_robinson(rate: float) -> Problem:
    """y' = rate (y - sin t) + cos t: y follows sin t, faster for stiffer problems."""
    return Problem(
        lambda t, y: [rate * (y[0] - sin(t)) + cos(t)], 0, 0, 1, lambda t, y: ([[rate]], [-rate * cos(t) - sin(t)])
    )


@pytest.mark.parametrize("rate", [-1e4, -1e6, -1e8])
def test_rodas_follows_however_stiff(rate: float) -> None:
    """From a distant start, with steps of up to 1e7 times the time constant, the transient disappears in two steps."""
    steps = drive(integrator("rodas4"), prothero_robinson(rate), [5.0], 0.1, 20)
    assert abs(steps[-1].y[0] - math.sin(2.0)) < 1e-5
    assert abs(steps[1].y[0] - math.sin(0.2)) < 1e-2


def test_explicit_methods_do_not_follow() -> None:
    assert abs(drive(integrator("rk4"), prothero_robinson(-1e4), [5.0], 0.1, 20)[-1].y[0]) > 1e20


def test_rodas_on_the_slow_branch_of_van_der_pol() -> None:
    """mu = 1e3, in slow time: on the branch ln y - y^2/2 - t is constant, up to 1/mu^2; steps of 5e4 time constants."""
    e = 1e-6

    def f(t: Scalar, y: State) -> State:
        return [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) / e]

    def jacobian(t: Scalar, y: State) -> tuple[list[State], State]:
        return [[0.0, 1.0], [(-2.0 * y[0] * y[1] - 1.0) / e, (1.0 - y[0] * y[0]) / e]], [0.0, 0.0]

    steps = drive(integrator("rodas4"), Problem(f, 1, 1, 0, jacobian), [2.0, -2.0 / 3.0], 0.05, 10)
    y = steps[-1].y[0]
    assert abs((math.log(y) - y * y / 2) - (math.log(2.0) - 2.0) - 0.5) < 1e-5
    assert distance([steps[-1].y[1]], [y / (1.0 - y * y)]) < 1e-4


def free_body(seed: int) -> bc.Mechanism:
    rng = np.random.default_rng(seed)
    b = bc.Builder("stone", gravity=(0, 0, 0))
    moments = np.diag(inertia(rng)) if seed == 0 else np.array([0.2, 0.35, 0.4])
    b.body("stone", mass=float(rng.uniform(0.5, 3)), com=tuple(rng.uniform(-0.3, 0.3, 3)), inertia=tuple(moments))
    b.joint("free", "floating", "ground", "stone")
    return b.build()


def drifts(m: bc.Mechanism, name: str, h: float, seed: int) -> tuple[float, float]:
    """Drifts of linear momentum, angular momentum about the centre of mass (both in world axes), and energy."""
    q, v, _ = m.random(seed)
    run = bc.simulate(m, 200 * h, q0=q, v0=2.0 * v, integrator=name, step=h)
    P, E = m.momentum(run.q, run.v), run["energy"]
    return float(np.abs(P - P[0]).max() / np.abs(P[0]).max()), float(
        np.abs(E - E[0]).max() / run["kinetic_energy"].max()
    )


@pytest.mark.parametrize("seed", range(4))
def test_midpoint_keeps_the_momentum_of_a_free_body(seed: int) -> None:
    """For any centre of mass, moments of inertia and step: 200 steps of up to a fifth of a radian."""
    m = free_body(seed)
    assert max(drifts(m, "midpoint", 0.05, seed)) < 1e-10
    assert drifts(m, "rk4", 0.05, seed)[0] > 1e-9


def test_midpoint_keeps_that_of_joined_bodies_to_second_order() -> None:
    b = bc.Builder("pair", gravity=(0, 0, 0))
    b.body("hull", mass=3.0, com=(0.1, 0, 0.05), inertia=(0.2, 0.3, 0.4))
    b.joint("free", "floating", "ground", "hull")
    b.body("arm", mass=1.0, com=(0, 0.5, 0.3), inertia=(0.03, 0.01, 0.03))
    b.joint("ball", "spherical", "hull", "arm", point=(0, 0.3, 0))
    m = b.build()
    q, v, _ = m.random(1)
    P = [
        m.momentum(run.q[-1], run.v[-1]) - m.momentum(q, v)
        for run in (bc.simulate(m, 1.0, q0=q, v0=v, integrator="midpoint", step=h) for h in (0.01, 0.005))
    ]
    assert np.log2(np.abs(P[0]).max() / np.abs(P[1]).max()) == pytest.approx(2.0, abs=0.3)
