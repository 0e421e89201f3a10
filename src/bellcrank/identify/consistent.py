"""Bodies that can exist: masses above zero, inertias that some density could have.

Ten numbers are possible if and only if the pseudo-inertia [[S, h], [h', m]] with S = tr(I) / 2 - I is positive
definite (P. Wensing, S. Kim, J. Slotine, 2018). Its factor by exponentials on the diagonal (the log-Cholesky of
C. Rucker and P. Wensing, Smooth parameterization of rigid-body inertia, 2022) has no bounds, so that plain least
squares can move along it.

    U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]      pseudo-inertia = U U'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.errors import InputError, brief
from bellcrank.extras import extra
from bellcrank.identify.least_squares import Estimate, checked_forces, compressed
from bellcrank.identify.loops import actuated_regressor
from bellcrank.identify.numbers import TEN, mechanism_with, values_of
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.scalar import is_real

Array = np.ndarray[Any, Any]
STEP = 1e-30  # of the complex step, whose error is its square


@dataclass(frozen=True, eq=False)
class Consistent:
    """A mechanism that can exist, and the forces that it needs."""

    mechanism: Mechanism
    values: Array  # of base.numbers
    misfit: float  # root mean square of what is left, in units of the noise: 1 where the model explains all but noise
    estimate: Estimate


@explained
def consistent_estimate(
    found: Estimate, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prior: float = 1.0
) -> Consistent:
    """The mechanism that explains the forces best among those that can exist.

    What forces cannot tell is taken from the mechanism that the estimate began with: it may differ from that by about
    `prior` in the logarithm of its masses and sizes, where the data ask for it.
    """
    optimize = extra("scipy.optimize", "study", "estimates that can exist")
    if not is_real(prior) or not 1e-9 <= prior <= 1e9:  # its square is divided by
        raise InputError(f"prior is {brief(prior)}; expected a number above zero, about 1.")
    base = found.base
    m, numbers = base.mechanism, base.numbers
    Y = actuated_regressor(m, q, v, a, numbers, base.actuated)
    tau = checked_forces(tau, Y.shape[:2], base.actuated or m.columns[1])
    A = (Y / found.noise[:, None]).reshape(-1, len(numbers))
    b = (tau / found.noise).reshape(-1)
    R, z, rest = compressed(A, b)
    bodies = [i for i, n in enumerate(numbers) if n.kind == "mass"]
    others = [i for i, n in enumerate(numbers) if n.kind not in TEN]
    x0 = values_of(m, numbers)
    theta0 = np.concatenate([_logarithms(x0[i : i + 10]) for i in bodies]) if bodies else np.zeros(0)
    scale = np.maximum(np.abs(x0[others]), 1e-3)
    signed = np.array([numbers[i].kind in ("offset", "spring preload") for i in others], bool)

    def values(theta: Array) -> Array:
        x = np.zeros(len(numbers), theta.dtype)
        for k, i in enumerate(bodies):
            x[i : i + 10] = ten_of(theta[10 * k : 10 * k + 10])
        y = theta[10 * len(bodies) :]
        x[others] = scale * np.where(signed, y, np.exp(y))
        return x

    def off(theta: Array) -> Array:
        return np.concatenate([R @ values(theta) - z, (theta[: theta0.size] - theta0) / prior])

    def slope(theta: Array) -> Array:
        J = np.zeros((len(numbers), len(theta)))
        for k, i in enumerate(bodies):
            J[i : i + 10, 10 * k : 10 * k + 10] = _slopes(theta[10 * k : 10 * k + 10])
        for k, i in enumerate(others):
            J[i, 10 * len(bodies) + k] = scale[k] * (1.0 if signed[k] else np.exp(theta[10 * len(bodies) + k]))
        below = np.eye(theta0.size, len(theta)) / prior
        return np.concatenate([R @ J, below])

    relative = x0[others] / scale
    begin = np.concatenate([theta0, np.where(signed, relative, np.log(np.maximum(relative, 1e-3)))])
    done = optimize.least_squares(off, begin, slope, method="lm", x_scale="jac", max_nfev=300)
    x = values(done.x)
    left = float(np.sum((R @ x - z) ** 2) + rest)
    return Consistent(mechanism_with(m, numbers, x), x, float(np.sqrt(left / len(b))), found)


def ten_of(theta: Array) -> Array:
    """The ten numbers (numbers.TEN) of a point without bounds."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    e1, e2, e3 = np.exp(d1), np.exp(d2), np.exp(d3)
    U = np.array([[e1, s12, s13, t1], [0.0, e2, s23, t2], [0.0, 0.0, e3, t3], [0.0, 0.0, 0.0, 1.0]])
    J = np.exp(2.0 * alpha) * (U @ U.T)
    S = J[:3, :3]
    I = np.trace(S) * np.eye(3) - S
    return np.array([J[3, 3], J[0, 3], J[1, 3], J[2, 3], I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def pseudo_inertia(x: Array) -> Array:
    """Of ten numbers; positive definite where a body can have them."""
    m, hx, hy, hz, xx, yy, zz, xy, xz, yz = x
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h = np.array([hx, hy, hz])
    S = 0.5 * np.trace(I) * np.eye(3) - I
    return np.block([[S, h[:, None]], [h[None, :], np.array([[m]])]])


def _logarithms(x: Array) -> Array:
    """theta of ten numbers; those of a body that cannot be, of the nearest that can."""
    J = pseudo_inertia(x)
    values, axes = np.linalg.eigh(J)
    if not values[-1] > 0:
        raise InputError("a body without mass and inertia has no logarithm; lump it with another, or give it a mass.")
    J = (axes * np.maximum(values, 1e-6 * values[-1])) @ axes.T
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # J = U U' with U upper
    alpha = np.log(U[3, 3])
    V = U / U[3, 3]
    d = np.log(np.diag(V)[:3])
    return np.array([alpha, *d, V[0, 1], V[1, 2], V[0, 2], V[0, 3], V[1, 3], V[2, 3]])


def _slopes(theta: Array) -> Array:
    """d ten / d theta, by the complex step."""
    return np.stack([np.imag(ten_of(theta + 1j * STEP * e)) / STEP for e in np.eye(10)], axis=1)
