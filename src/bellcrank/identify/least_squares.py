"""Base parameters from measured forces, by weighted least squares, with standard errors that hold.

Every joint has a noise of its own; it is taken from what is left of a first fit, and weighs the second. What the motion
cannot tell stays as the mechanism has it, is named, and has no error to be stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.errors import InputError, brief
from bellcrank.identify.base import Base
from bellcrank.identify.regressors import LARGEST
from bellcrank.misfits import explained
from bellcrank.quoting import line
from bellcrank.scalar import float_array
from bellcrank.text import table

Array = np.ndarray[Any, Any]
UNTOLD = 1e-9  # of the largest singular value: below, a direction of the parameters leaves no trace in the forces
SHARE = 1e-6  # of an untold direction that makes a parameter untold


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters found from measurements. values and errors (standard deviations) are in the order of base.names;
    an error is infinite where the measurements do not tell.
    """

    base: Base
    values: Array
    errors: Array
    covariance: Array
    noise: Array  # standard deviation of each measured force
    condition: float  # of the regressor, its columns scaled: how far the motion is from telling nothing of something
    samples: int
    untold: tuple[str, ...]  # in words

    def predicted(self, q: Any, v: Any, a: Any) -> Array:
        """Forces by what was found, (samples, forces)."""
        return np.asarray(self.base.regressor(q, v, a) @ self.values)

    @cached_property
    def correlations(self) -> Array:
        size = np.sqrt(np.diag(self.covariance))
        size = np.where(size > 0, size, 1.0)
        return np.asarray(self.covariance / np.outer(size, size))

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of those that are no larger than twice their error: nothing says that they are not zero."""
        return tuple(n for n, x, e in zip(self.base.names, self.values, self.errors) if abs(x) < 2.0 * e)

    def __str__(self) -> str:
        rows = [
            (n, f"{x:.6g}", f"{e:.2g}", f"{o:.6g}", "" if abs(x) >= 2.0 * e else "lost in the noise")
            for n, x, e, o in zip(self.base.names, self.values, self.errors, self.base.nominal)
        ]
        lines = [
            f"{line(self.base.mechanism.name)}: {len(rows)} base parameters from {self.samples} samples, condition "
            f"{self.condition:.3g}",
            "",
            table(("base parameter", "found", "error", "nominal", ""), rows, right=(1, 2, 3)),
            *(f"the motion does not tell {line(words)}" for words in self.untold),
        ]
        return "\n".join(lines)


@explained
def estimate(base: Base, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike) -> Estimate:
    """The base parameters that explain the forces tau (samples, forces) along a measured motion."""
    return estimated(base, base.regressor(q, v, a), tau)


def factored(Y: Array) -> list[tuple[Array, Array]]:
    """Q and R of each force's part of a regressor (samples, forces, base)."""
    pairs = (np.linalg.qr(np.ascontiguousarray(Y[:, j])) for j in range(Y.shape[1]))
    return [(np.asarray(Q), np.asarray(R)) for Q, R in pairs]


def estimated(base: Base, Y: Array, tau: Any, factors: list[tuple[Array, Array]] | None = None) -> Estimate:
    """The same from a regressor. factors: those of Y, for whoever has many measurements of one motion."""
    tau = checked_forces(tau, Y.shape[:2], base.actuated or base.mechanism.columns[1])
    off = tau - Y @ base.nominal
    parts = []
    for (Q, R), b in zip(factors if factors is not None else factored(Y), off.T, strict=True):
        z = Q.T @ b
        parts.append((R, z, float(np.sum((b - Q @ z) ** 2))))
    least = 1e-12 * max(float(np.abs(tau).max()), 1e-30)
    noise = np.ones(len(parts))
    for _ in range(3):  # without weights, with them, and with better ones
        delta, told, spread, condition, unseen = _solved(parts, noise)
        left = np.array([np.sum((R @ delta - z) ** 2) + rest for R, z, rest in parts])
        noise = np.maximum(np.sqrt(left / len(tau) * tau.size / max(1, tau.size - told)), least)
    delta, told, spread, condition, unseen = _solved(parts, noise)
    errors = np.sqrt(np.diag(spread))
    errors[np.abs(unseen).max(axis=1, initial=0.0) > SHARE] = np.inf
    return Estimate(
        base, base.nominal + delta, errors, spread, noise, condition, len(tau), in_words(base.names, unseen.T)
    )  # fmt: skip


def checked_forces(tau: Any, shape: tuple[int, int], names: Any) -> Array:
    try:
        tau = float_array(tau)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"tau is {brief(tau)}; expected an array of real numbers.") from None
    if tau.ndim == 1 and shape[1] == 1:
        tau = tau[:, None]
    if tau.shape != shape:
        raise InputError(f"tau has the shape {tau.shape}; expected {shape}: samples, and {', '.join(names)}.")
    bad = np.argwhere(~(np.abs(tau) < LARGEST))
    if len(bad):
        raise InputError(f"tau{bad[0].tolist()} is {tau[tuple(bad[0])]}; expected finite numbers, below {LARGEST:g}.")
    return np.asarray(tau)


def compressed(A: Array, b: Array) -> tuple[Array, Array, float]:
    """R, z and a rest with |A x - b|^2 = |R x - z|^2 + rest, whatever x is."""
    R: Array = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))
    n = A.shape[1]
    return R[:n, :n], R[:n, n], float(R[n, n] ** 2) if len(R) > n else 0.0


def _solved(parts: list[tuple[Array, Array, float]], noise: Array) -> tuple[Array, int, Array, float, Array]:
    """delta, how many directions were told, its covariance, the condition, and the directions that were not told."""
    A = np.concatenate([R / sigma for (R, _, _), sigma in zip(parts, noise, strict=True)])
    b = np.concatenate([z / sigma for (_, z, _), sigma in zip(parts, noise, strict=True)])
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(A / size, full_matrices=False)
    told = int((s > UNTOLD * s[0]).sum())
    W = Vt[:told].T / s[:told]
    spread = (W @ W.T) / np.outer(size, size)
    unseen = (Vt[told:] / size).T
    unseen = unseen / np.maximum(np.linalg.norm(unseen, axis=0), 1e-300)
    return W @ (U[:, :told].T @ b) / size, told, spread, float(s[0] / s[told - 1]), unseen


def in_words(names: tuple[str, ...], directions: Array) -> tuple[str, ...]:
    """Directions as sums of names, their largest parts."""
    found = []
    for d in directions:
        order = np.argsort(-np.abs(d))[:4]
        parts = [f"{d[k] / d[order[0]]:+.3g} {names[k]}" for k in order if abs(d[k]) > 0.01 * abs(d[order[0]])]
        found.append(" ".join(parts).removeprefix("+1 "))
    return tuple(found)
