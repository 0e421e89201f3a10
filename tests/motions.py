"""Motions with a known solution, for tests of integrators, over any scalar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellcrank.integrate import Integrator, Problem, State, Step
from bellcrank.model.quaternion import quaternion_rate, rotate_quaternion
from bellcrank.scalar import Scalar, cos, sin, sqrt
from bellcrank.spatial.vector import Vec


@dataclass(frozen=True)
class Motion:
    problem: Problem
    exact: Callable[[float], State]  # returns y at t

    @property
    def start(self) -> State:
        return self.exact(0.0)


def elliptic(u: float, m: float) -> tuple[float, float, float]:
    """Return Jacobi's sn, cn, dn by the arithmetic-geometric mean (Abramowitz and Stegun 16.4)."""
    a, b, c = [1.0], math.sqrt(1.0 - m), [math.sqrt(m)]
    while abs(c[-1]) > 1e-10:  # the next one is its square; below rounding nothing converges
        c.append((a[-1] - b) / 2)
        a.append((a[-1] + b) / 2)
        b = math.sqrt(a[-2] * b)
    phi = 2 ** (len(a) - 1) * a[-1] * u
    for k in range(len(a) - 1, 0, -1):
        phi = (phi + math.asin(c[k] * math.sin(phi) / a[k])) / 2
    sn = math.sin(phi)
    return sn, math.cos(phi), math.sqrt(1.0 - m * sn * sn)


def _spring(t: float) -> State:
    w, m = math.sqrt(2.0), 0.25
    sn, cn, dn = elliptic(w * t, m)
    return [cn, -w * sn * dn]


# A hardening spring, q'' = -q - q^3 from q = 1 at rest.
SPRING = Motion(
    Problem(
        f=lambda t, y: [y[1], -y[0] - y[0] * y[0] * y[0]],
        nq=1,
        nv=1,
        nx=0,
        jacobian=lambda t, y: ([[0.0, 1.0], [-1.0 - 3.0 * y[0] * y[0], 0.0]], [0.0, 0.0]),
    ),
    _spring,
)

# A pendulum pushed so that q = sin t, and a first-order sensor x whose solution is sin t, too.
PUSHED = Motion(
    Problem(
        f=lambda t, y: [y[1], -sin(y[0]) + sin(sin(t)) - sin(t), y[1] + 3.0 * (sin(y[0]) - sin(y[2]))],
        nq=1,
        nv=1,
        nx=1,
        jacobian=lambda t, y: (
            [[0.0, 1.0, 0.0], [-cos(y[0]), 0.0, 0.0], [3.0 * cos(y[0]), 1.0, -3.0 * cos(y[2])]],
            [0.0, cos(sin(t)) * cos(t) - cos(t), 0.0],
        ),
    ),
    lambda t: [math.sin(t), math.cos(t), math.sin(t)],
)

ROUND, POLAR = 2.0, 0.7  # moments of inertia of a body of revolution


def _top(t: Scalar, y: State) -> State:
    *q, a, b, c = y
    k = (POLAR - ROUND) / ROUND * c
    return [*quaternion_rate(q, Vec(a, b, c)), -k * b, k * a, 0.0 * c]


def unit(y: State) -> State:
    x, y_, z, w = y[:4]
    n = 1.0 / sqrt(x * x + y_ * y_ + z * z + w * w)
    return [x * n, y_ * n, z * n, w * n, *y[4:]]


def jacobian_of_quadratic(f: Callable[[Scalar, State], State]) -> Callable[[Scalar, State], tuple[list[State], State]]:
    """Return the Jacobian by central differences, which are exact for polynomials of degree 2."""

    def jacobian(t: Scalar, y: State) -> tuple[list[State], State]:
        columns = []
        for j in range(len(y)):
            there = f(t, [x + 1.0 if i == j else x for i, x in enumerate(y)])
            back = f(t, [x - 1.0 if i == j else x for i, x in enumerate(y)])
            columns.append([0.5 * (a - b) for a, b in zip(there, back, strict=True)])
        return [list(row) for row in zip(*columns, strict=True)], [0.0] * len(y)

    return jacobian


_SPIN = (0.9, -0.4, 1.6)
_ATTITUDE = unit([0.1, 0.7, -0.3, 0.5, 0.0, 0.0, 0.0])[:4]


def _turning(t: float) -> State:
    """Return a free body of revolution.

    It precesses about its momentum and spins about its axis, both at constant rates.
    """
    a, b, c = _SPIN
    slip = c * (1.0 - POLAR / ROUND)
    # In body axes at t = 0 the momentum over ROUND is (a, b, POLAR/ROUND c).
    q = rotate_quaternion(
        rotate_quaternion(_ATTITUDE, Vec(a * t, b * t, POLAR / ROUND * c * t)), Vec(0.0, 0.0, slip * t)
    )
    angle = -slip * t
    return [*q, a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle), c]


# A free body of revolution on a unit quaternion.
TOP = Motion(
    Problem(
        f=_top,
        nq=4,
        nv=3,
        nx=0,
        jacobian=jacobian_of_quadratic(_top),
        moved=lambda q, d: rotate_quaternion(q, Vec(*d)),
        project=unit,
    ),
    _turning,
)

MOTIONS = {"spring": SPRING, "pushed": PUSHED, "top": TOP}


def drive(method: Integrator, problem: Problem, y: State, h: float, steps: int) -> list[Step]:
    """Take steps from t = 0 with a constant h."""
    memory, done = method.begin(problem, 0.0, y, h), []
    for i in range(steps):
        done.append(method.step(problem, i * h, y, h, memory))
        y, memory = done[-1].y, done[-1].memory
    return done


def distance(a: State, b: State) -> float:
    return float(np.abs(np.subtract(a, b)).max())


def slope(h: list[float], error: list[float]) -> float:
    """Return the exponent p of error ~ h^p."""
    return float(np.polyfit(np.log(h), np.log(error), 1)[0])
