"""Base parameters, their estimates from measured forces by least squares, and physically consistent mechanisms.

Base parameters are the numbers, and sums of numbers, that forces can identify. Columns of the regressor over many
random states are added one by one, from the root to the tip. A column that depends linearly on earlier ones is dropped,
and its coefficients are added to their groups (M. Gautier, Numerical calculation of the base inertial parameters of
robots, 1991). Bodies come from the root and moments before masses, so that the groups are those that are usually
published.

Every joint has its own noise level, estimated from the residuals of a first fit and used as the weight of the second.
Directions that the motion does not identify keep their nominal values, are named, and have an infinite error.

Base parameters alone are not a mechanism. A physically consistent estimate has positive masses, and inertias that some
density distribution could have. Ten numbers are possible if and only if the pseudo-inertia [[S, h], [h', m]] with
S = tr(I) / 2 - I is positive definite (P. Wensing, S. Kim, J. Slotine, 2018). Its factor with exponentials on the
diagonal (the log-Cholesky parametrisation of C. Rucker and P. Wensing, Smooth parameterization of rigid-body inertia,
2022) has no bounds, so that unconstrained least squares applies.

    U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]      pseudo-inertia = U U'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, brief
from bellcrank.identify.closed_loops import actuated_regressor, random_states
from bellcrank.identify.regressors import (
    BODY_NUMBERS,
    Array,
    Number,
    limited_array,
    mechanism_with,
    numbers_of,
    values_of,
)
from bellcrank.lazy_import import optional_import
from bellcrank.model import Mechanism
from bellcrank.quoting import single_line
from bellcrank.scalar import array_argument, is_real
from bellcrank.text_table import table

MIN_ROWS = 300  # least number of rows; three rows or more for every number
INDEPENDENT_SHARE = 1e-8  # share of a column that must be independent; the gap to dependent ones is 1e10 and more
ROUNDING_TOLERANCE = 1e-9
NUMBER_ORDER = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "mx", "my", "mz", "mass")


@dataclass(frozen=True, eq=False)
class Base:
    """Base parameters of a mechanism: base = groups @ numbers, and tau = Y[:, independent] @ base.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism.
    numbers : tuple of Number
        Candidate numbers.
    independent : tuple of int
        Indices of the numbers that represent the groups.
    groups : ndarray, shape (base, numbers)
        Coefficients of each group; the identity on the independent numbers.
    unseen : tuple of int
        Indices of numbers that no force depends on.
    actuated : tuple of str
        Driven joints of a mechanism with loops.
    at : array_like or mapping, optional
        Guess of a configuration where closed loops are assembled.
    """

    mechanism: Mechanism
    numbers: tuple[Number, ...]
    independent: tuple[int, ...]  # numbers that represent the groups
    groups: Array  # (base, numbers); the identity on the independent ones
    unseen: tuple[int, ...]  # numbers that no force depends on
    actuated: tuple[str, ...] = ()
    at: Any = None  # guess of a configuration where closed loops are assembled

    def __len__(self) -> int:
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the independent numbers."""
        return tuple(self.numbers[k].name for k in self.independent)

    @property
    def nominal(self) -> Array:
        """Base parameters of the mechanism itself."""
        return np.asarray(self.groups @ values_of(self.mechanism, self.numbers))

    def regressor(self, q: Any, v: Any, a: Any) -> Array:
        """Return the regressor of the base parameters.

        Parameters
        ----------
        q : array_like, shape (samples, nq)
            Joint positions, rad or m.
        v : array_like, shape (samples, nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (samples, nv)
            Joint accelerations, rad/s^2 or m/s^2.

        Returns
        -------
        ndarray, shape (samples, forces, base)
            Contribution of a unit of each base parameter to each force.
        """
        Y = actuated_regressor(self.mechanism, q, v, a, self.numbers, self.actuated)
        return Y[:, :, list(self.independent)]

    def combination(self, k: int) -> str:
        """Return the group of a base parameter as text: "link2.ixx + link3.iyy - 0.15 link3.mass".

        Parameters
        ----------
        k : int
            Index of the base parameter.

        Returns
        -------
        str
            Sum of numbers by name.
        """
        text = ""
        order = [self.independent[k], *(j for j in range(len(self.numbers)) if j != self.independent[k])]
        for j in order:
            c = self.groups[k, j]
            if not c:
                continue
            size = "" if abs(abs(c) - 1.0) < ROUNDING_TOLERANCE else f"{abs(c):.5g} "
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += f"{sign}{size}{self.numbers[j].name}"
        return text

    def __str__(self) -> str:
        nominal = self.nominal
        rows = [(str(k + 1), self.combination(k), f"{nominal[k]:.6g}") for k in range(len(self))]
        head = f"{single_line(self.mechanism.name)}: {len(self)} base parameters of {len(self.numbers)} numbers"
        lines = [head, "", table(("", "base parameter", "nominal"), rows, right=(0, 2))]
        if self.unseen:
            lines += ["", f"no force depends on {', '.join(single_line(self.numbers[k].name) for k in self.unseen)}"]
        return "\n".join(lines)

    __repr__ = __str__


@explain_argument_errors
def base_parameters(
    m: Mechanism,
    joints: Sequence[str] | None = None,
    actuated: Sequence[str] = (),
    seed: int = 0,
    at: ArrayLike | Mapping[str, float] | None = None,
) -> Base:
    """Return the base parameters of a mechanism.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    joints : sequence of str, optional
        Numbers that every joint has (armature, damping, friction, stiffness, offset); the mechanism's by default.
    actuated : sequence of str, optional
        Driven joints, required for a mechanism with loops.
    seed : int, default 0
        Seed of the random states.
    at : array_like or mapping, optional
        Guess of a configuration on the working branch of a mechanism with loops; the zero configuration by default.

    Returns
    -------
    Base
        Base parameters and their groups.

    Raises
    ------
    InputError
        If the mechanism has no numbers, or the arguments do not fit.
    """
    if at is not None and not m.loops:
        raise InputError(f'"{m.name}" has no closed loops and so no branches: omit at=.')
    numbers = numbers_of(m, joints)
    if not numbers:
        raise InputError(f'"{m.name}" has no numbers to identify.')
    rows = max(MIN_ROWS, 3 * len(numbers))
    q, v, a = random_states(m, -(-rows // max(1, len(actuated) or m.nv)) + 20, seed, actuated, at)
    Y = actuated_regressor(m, q, v, a, numbers, tuple(actuated))
    reduction = reduce_columns(Y.reshape(-1, len(numbers)), _column_order(m, numbers))
    return Base(m, numbers, *reduction, actuated=tuple(actuated), at=at)


def reduce_columns(Y: Array, order: Sequence[int]) -> tuple[tuple[int, ...], Array, tuple[int, ...]]:
    """Return the independent columns, the groups and the unseen columns of a regressor.

    Parameters
    ----------
    Y
        Regressor, (rows, numbers).
    order
        Order in which columns are tried.
    """
    size = np.linalg.norm(Y, axis=0)
    typical = size.max(initial=0.0)
    unseen = tuple(k for k in range(Y.shape[1]) if size[k] <= 1e-12 * typical)
    basis = np.zeros((Y.shape[0], 0))
    independent: list[int] = []
    for k in order:
        if k in unseen:
            continue
        x = Y[:, k] / size[k]
        remainder = x - basis @ (basis.T @ x)
        remainder = remainder - basis @ (basis.T @ remainder)  # orthogonalised twice against rounding
        if np.linalg.norm(remainder) > INDEPENDENT_SHARE:
            basis = np.column_stack([basis, remainder / np.linalg.norm(remainder)])
            independent.append(k)
    independent.sort()
    scaled = Y / np.where(size > 0, size, 1.0)
    weights = np.linalg.lstsq(scaled[:, independent], scaled, rcond=None)[0]
    weights[np.abs(weights) < ROUNDING_TOLERANCE] = 0.0
    groups = weights * size[None, :] / size[independent][:, None]
    for row, k in enumerate(independent):
        groups[:, k] = 0.0
        groups[row, k] = 1.0
    groups[:, list(unseen)] = 0.0
    near = np.round(groups)
    groups = np.where(np.abs(groups - near) < ROUNDING_TOLERANCE * np.maximum(1.0, np.abs(near)), near, groups)
    return tuple(independent), groups, unseen


def _column_order(m: Mechanism, numbers: Sequence[Number]) -> list[int]:
    """Return the order of columns: joints and springs first, then bodies from the root with masses last."""
    bodies = {b.name: i for i, b in enumerate(m.bodies)}

    def sort_key(k: int) -> tuple[int, int, int]:
        n = numbers[k]
        return (1, bodies[n.part], NUMBER_ORDER.index(n.kind)) if n.kind in BODY_NUMBERS else (0, 0, k)

    return sorted(range(len(numbers)), key=sort_key)


RANK_TOLERANCE = 1e-9  # share of the largest singular value, below which a direction is not identified
COMPONENT_TOLERANCE = 1e-6  # component in an unidentified direction that makes a parameter unidentified


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters found from measurements, in the order of `base.names`.

    Parameters
    ----------
    base : Base
        Base parameters.
    values : ndarray
        Values found.
    errors : ndarray
        Standard deviations; infinite for a parameter that the measurements do not identify.
    covariance : ndarray
        Covariance of the values.
    noise : ndarray
        Standard deviation of each measured force.
    condition : float
        Condition number of the regressor with scaled columns.
    samples : int
        Number of samples.
    untold : tuple of str
        Directions that the motion does not identify, as text.
    """

    base: Base
    values: Array
    errors: Array
    covariance: Array
    noise: Array  # standard deviation of each measured force
    condition: float  # condition number of the regressor with scaled columns
    samples: int
    untold: tuple[str, ...]  # directions that are not identified, as text

    def predicted(self, q: Any, v: Any, a: Any) -> Array:
        """Return the forces predicted by the estimate.

        Parameters
        ----------
        q : array_like, shape (samples, nq)
            Joint positions, rad or m.
        v : array_like, shape (samples, nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (samples, nv)
            Joint accelerations, rad/s^2 or m/s^2.

        Returns
        -------
        ndarray, shape (samples, forces)
            Forces, N m or N.
        """
        return np.asarray(self.base.regressor(q, v, a) @ self.values)

    @cached_property
    def correlations(self) -> Array:
        """Correlation matrix of the values."""
        return correlation_matrix(self.covariance)

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of parameters smaller than twice their error: they may be zero."""
        return tuple(n for n, x, e in zip(self.base.names, self.values, self.errors) if abs(x) < 2.0 * e)

    def __str__(self) -> str:
        rows = [
            (n, f"{x:.6g}", f"{e:.2g}", f"{o:.6g}", "" if abs(x) >= 2.0 * e else "lost in the noise")
            for n, x, e, o in zip(self.base.names, self.values, self.errors, self.base.nominal)
        ]
        lines = [
            f"{single_line(self.base.mechanism.name)}: {len(rows)} base parameters from {self.samples} samples, "
            f"condition {self.condition:.3g}",
            "",
            table(("base parameter", "found", "error", "nominal", ""), rows, right=(1, 2, 3)),
            *(f"the motion does not identify {single_line(words)}" for words in self.untold),
        ]
        return "\n".join(lines)


@explain_argument_errors
def estimate(base: Base, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike) -> Estimate:
    """Return the base parameters that explain measured forces best.

    Parameters
    ----------
    base : Base
        Base parameters to estimate.
    q : array_like, shape (samples, nq)
        Joint positions, rad or m.
    v : array_like, shape (samples, nv)
        Joint velocities, rad/s or m/s.
    a : array_like, shape (samples, nv)
        Joint accelerations, rad/s^2 or m/s^2.
    tau : array_like, shape (samples, forces)
        Measured forces, N m or N.

    Returns
    -------
    Estimate
        Values with standard errors.

    Raises
    ------
    InputError
        If the arguments do not fit.
    """
    return estimate_from_regressor(base, base.regressor(q, v, a), tau)


def qr_factors(Y: Array) -> list[tuple[Array, Array]]:
    """Return the factors Q and R of each force's part of the regressor `Y` (samples, forces, base)."""
    pairs = (np.linalg.qr(np.ascontiguousarray(Y[:, j])) for j in range(Y.shape[1]))
    return [(np.asarray(Q), np.asarray(R)) for Q, R in pairs]


def estimate_from_regressor(
    base: Base, Y: Array, tau: Any, factors: list[tuple[Array, Array]] | None = None
) -> Estimate:
    """Return the estimate for a given regressor.

    Parameters
    ----------
    base
        Base parameters.
    Y
        Regressor, (samples, forces, base).
    tau
        Measured forces, (samples, forces).
    factors
        Result of `factored(Y)`, to reuse it for many measurements of one motion.
    """
    tau = checked_forces(tau, Y.shape[:2], base.actuated or base.mechanism.columns[1])
    force_residuals = tau - Y @ base.nominal
    parts = []
    for (Q, R), b in zip(factors if factors is not None else qr_factors(Y), force_residuals.T, strict=True):
        z = Q.T @ b
        parts.append((R, z, float(np.sum((b - Q @ z) ** 2))))
    min_noise = 1e-12 * max(float(np.abs(tau).max()), 1e-30)
    noise = np.ones(len(parts))
    for _ in range(3):  # without weights, with first weights, with improved ones
        delta, rank, covariance, condition, null_directions = _solve(parts, noise)
        residual_squares = np.array([np.sum((R @ delta - z) ** 2) + residual for R, z, residual in parts])
        noise = np.maximum(np.sqrt(residual_squares / len(tau) * tau.size / max(1, tau.size - rank)), min_noise)
    delta, rank, covariance, condition, null_directions = _solve(parts, noise)
    errors = np.sqrt(np.diag(covariance))
    errors[np.abs(null_directions).max(axis=1, initial=0.0) > COMPONENT_TOLERANCE] = np.inf
    return Estimate(
        base, base.nominal + delta, errors, covariance, noise, condition, len(tau),
        direction_texts(base.names, null_directions.T),
    )  # fmt: skip


def checked_forces(tau: Any, shape: tuple[int, int], names: Any) -> Array:
    """Return forces as an array, or raise an InputError if they do not fit.

    Parameters
    ----------
    tau
        Measured forces.
    shape
        Expected shape, (samples, forces).
    names
        Names of the forces, for messages.
    """
    tau = array_argument("tau", tau)
    if tau.ndim == 1 and shape[1] == 1:
        tau = tau[:, None]
    if tau.shape != shape:
        raise InputError(f"tau has the shape {tau.shape}; expected {shape}: samples, and {', '.join(names)}.")
    return limited_array("tau", tau)


def compress_rows(A: Array, b: Array) -> tuple[Array, Array, float]:
    """Return R, z and a rest such that |`A` x - `b`|^2 = |R x - z|^2 + rest for every x."""
    R: Array = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))
    n = A.shape[1]
    return R[:n, :n], R[:n, n], float(R[n, n] ** 2) if len(R) > n else 0.0


def _solve(parts: list[tuple[Array, Array, float]], noise: Array) -> tuple[Array, int, Array, float, Array]:
    """Return delta, the rank, its covariance, the condition number, and the directions that are not identified."""
    A = np.concatenate([R / sigma for (R, _, _), sigma in zip(parts, noise, strict=True)])
    b = np.concatenate([z / sigma for (_, z, _), sigma in zip(parts, noise, strict=True)])
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(A / size, full_matrices=False)
    rank = int((s > RANK_TOLERANCE * s[0]).sum())
    W = Vt[:rank].T / s[:rank]
    covariance = (W @ W.T) / np.outer(size, size)
    null_directions = (Vt[rank:] / size).T
    null_directions = null_directions / np.maximum(np.linalg.norm(null_directions, axis=0), 1e-300)
    return W @ (U[:, :rank].T @ b) / size, rank, covariance, float(s[0] / s[rank - 1]), null_directions


def correlation_matrix(covariance: Array) -> Array:
    """Return the correlation matrix of a `covariance`; values without variance are uncorrelated."""
    size = np.sqrt(np.diag(covariance))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(covariance / np.outer(size, size))


def direction_texts(names: tuple[str, ...], directions: Array) -> tuple[str, ...]:
    """Return each of the `directions` as text: a sum of its largest components, with `names`."""
    texts = []
    for d in directions:
        order = np.argsort(-np.abs(d))[:4]
        parts = [f"{d[k] / d[order[0]]:+.3g} {names[k]}" for k in order if abs(d[k]) > 0.01 * abs(d[order[0]])]
        texts.append(" ".join(parts).removeprefix("+1 "))
    return tuple(texts)


COMPLEX_STEP = 1e-30  # of the complex step, whose error is of the order of its square


@dataclass(frozen=True, eq=False)
class Consistent:
    """Physically consistent mechanism found from measured forces.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism with the values found.
    values : ndarray
        Values of `base.numbers`.
    misfit : float
        Root mean square of the residuals in units of the noise: 1 if the model explains all but the noise.
    estimate : Estimate
        Estimate that it is based on.
    """

    mechanism: Mechanism
    values: Array  # values of base.numbers
    misfit: float  # root mean square residual in units of the noise; 1 if the model explains all but the noise
    estimate: Estimate


@explain_argument_errors
def consistent_estimate(
    found: Estimate, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prior: float = 1.0
) -> Consistent:
    """Return the physically consistent mechanism that explains the forces best.

    Directions that the forces do not determine are taken from the nominal mechanism of the estimate.

    Parameters
    ----------
    found : Estimate
        Estimate of the base parameters.
    q : array_like, shape (samples, nq)
        Joint positions, rad or m.
    v : array_like, shape (samples, nv)
        Joint velocities, rad/s or m/s.
    a : array_like, shape (samples, nv)
        Joint accelerations, rad/s^2 or m/s^2.
    tau : array_like, shape (samples, forces)
        Measured forces, N m or N.
    prior : float, default 1.0
        Standard deviation, in the logarithm of masses and sizes, of the difference from the nominal mechanism.

    Returns
    -------
    Consistent
        Mechanism, values and misfit.

    Raises
    ------
    InputError
        If an argument does not fit.
    """
    optimize = optional_import("scipy.optimize", "study", "estimates that can exist")
    if not is_real(prior) or not 1e-9 <= prior <= 1e9:  # the code divides by its square
        raise InputError(f"prior is {brief(prior)}; expected a number above zero, about 1.")
    base = found.base
    m, numbers = base.mechanism, base.numbers
    Y = actuated_regressor(m, q, v, a, numbers, base.actuated)
    tau = checked_forces(tau, Y.shape[:2], base.actuated or m.columns[1])
    A = (Y / found.noise[:, None]).reshape(-1, len(numbers))
    b = (tau / found.noise).reshape(-1)
    R, z, residual_square = compress_rows(A, b)
    bodies = [i for i, n in enumerate(numbers) if n.kind == "mass"]
    others = [i for i, n in enumerate(numbers) if n.kind not in BODY_NUMBERS]
    x0 = values_of(m, numbers)
    theta0 = np.concatenate([_log_cholesky(x0[i : i + 10]) for i in bodies]) if bodies else np.zeros(0)
    scale = np.maximum(np.abs(x0[others]), 1e-3)
    signed = np.array([numbers[i].kind in ("offset", "spring preload") for i in others], bool)

    def values(theta: Array) -> Array:
        x = np.zeros(len(numbers), theta.dtype)
        for k, i in enumerate(bodies):
            x[i : i + 10] = inertial_numbers(theta[10 * k : 10 * k + 10])
        y = theta[10 * len(bodies) :]
        x[others] = scale * np.where(signed, y, np.exp(y))
        return x

    def residuals(theta: Array) -> Array:
        return np.concatenate([R @ values(theta) - z, (theta[: theta0.size] - theta0) / prior])

    def residual_jacobian(theta: Array) -> Array:
        J = np.zeros((len(numbers), len(theta)))
        for k, i in enumerate(bodies):
            J[i : i + 10, 10 * k : 10 * k + 10] = _inertial_jacobian(theta[10 * k : 10 * k + 10])
        for k, i in enumerate(others):
            J[i, 10 * len(bodies) + k] = scale[k] * (1.0 if signed[k] else np.exp(theta[10 * len(bodies) + k]))
        below = np.eye(theta0.size, len(theta)) / prior
        return np.concatenate([R @ J, below])

    relative = x0[others] / scale
    starting_point = np.concatenate([theta0, np.where(signed, relative, np.log(np.maximum(relative, 1e-3)))])
    solution = optimize.least_squares(
        residuals, starting_point, residual_jacobian, method="lm", x_scale="jac", max_nfev=300
    )
    x = values(solution.x)
    total_square = float(np.sum((R @ x - z) ** 2) + residual_square)
    return Consistent(mechanism_with(m, numbers, x), x, float(np.sqrt(total_square / len(b))), found)


def inertial_numbers(theta: Array) -> Array:
    """Return the ten inertial numbers of the unbounded parameters `theta`."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    e1, e2, e3 = np.exp(d1), np.exp(d2), np.exp(d3)
    U = np.array([[e1, s12, s13, t1], [0.0, e2, s23, t2], [0.0, 0.0, e3, t3], [0.0, 0.0, 0.0, 1.0]])
    J = np.exp(2.0 * alpha) * (U @ U.T)
    S = J[:3, :3]
    I = np.trace(S) * np.eye(3) - S
    return np.array([J[3, 3], J[0, 3], J[1, 3], J[2, 3], I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def pseudo_inertia(x: Array) -> Array:
    """Return the pseudo-inertia of ten numbers `x`; it is positive definite if a body can have them."""
    m, hx, hy, hz, xx, yy, zz, xy, xz, yz = x
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h = np.array([hx, hy, hz])
    S = 0.5 * np.trace(I) * np.eye(3) - I
    return np.block([[S, h[:, None]], [h[None, :], np.array([[m]])]])


def _log_cholesky(x: Array) -> Array:
    """Return theta of ten numbers; for an inconsistent body those of the nearest consistent one."""
    J = pseudo_inertia(x)
    values, axes = np.linalg.eigh(J)
    if not values[-1] > 0:
        raise InputError(
            "a body without mass and inertia has no logarithm; combine it with another body, or give it a mass."
        )
    J = (axes * np.maximum(values, 1e-6 * values[-1])) @ axes.T
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # J = U U' with U upper
    alpha = np.log(U[3, 3])
    V = U / U[3, 3]
    d = np.log(np.diag(V)[:3])
    return np.array([alpha, *d, V[0, 1], V[1, 2], V[0, 2], V[0, 3], V[1, 3], V[2, 3]])


def _inertial_jacobian(theta: Array) -> Array:
    """Return d ten / d theta by the complex step."""
    return np.stack(
        [np.imag(inertial_numbers(theta + 1j * COMPLEX_STEP * e)) / COMPLEX_STEP for e in np.eye(10)], axis=1
    )
