"""Damped Newton's method (Levenberg-Marquardt, by SVD) for scaled equations, square, under- or overdetermined.

Unknowns are scaled by their typical size, equations by the effect of the unknowns on them. Unknowns that no equation
determines keep their values, and steps that do not reduce the residual are damped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]
Place = TypeVar("Place")
ROUNDS, PATIENCE = 60, 8  # iterations in all, and iterations without progress
SOLVED = 1e-9  # scaled residual of a solution
FAILED = 1e-6  # scaled residual above which there is no solution
RANK = 1e-11  # singular values below this part of the largest count as zero
FIRST, MOST = 1e-6, 1e8  # first damping, and the largest, with which a step hardly moves


@dataclass(frozen=True, eq=False)
class Equations(Generic[Place]):
    """Equations at one place: residuals, and their Jacobian (equations, unknowns)."""

    place: Place
    values: Array
    slopes: Array
    sizes: Array  # typical sizes of the unknowns
    slight: Array  # smallest scale of each equation: smaller effects of the unknowns count as none

    @cached_property
    def scales(self) -> Array:
        """Effect of typical changes of the unknowns on each equation."""
        return np.asarray(np.maximum(np.linalg.norm(self.slopes * self.sizes, axis=1), self.slight))

    @cached_property
    def scaled(self) -> Array:
        """Residuals in units of `scales`."""
        return self.values / self.scales

    @property
    def error(self) -> float:
        """Largest scaled residual; infinite if one is not finite."""
        worst = float(np.abs(self.scaled).max(initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    @cached_property
    def singular(self) -> tuple[Array, Array, Array]:
        """Singular value decomposition of the scaled Jacobian."""
        return np.linalg.svd(self.slopes * self.sizes / self.scales[:, None], full_matrices=True)

    def step(self, damping: float) -> Array:
        """Return the change of the unknowns for the given `damping`."""
        U, s, V = self.singular
        n = len(s)
        good = s > RANK * s.max(initial=0.0)
        back = np.where(good, s / (s * s + damping + 1e-300), 0.0)
        return np.asarray(-self.sizes * (V[:n].T @ (back * (U[:, :n].T @ self.scaled))))

    @property
    def loose(self) -> Array:
        """Share of each unknown that no equation determines, 0 to 1."""
        _, s, V = self.singular
        known = int((s > RANK * s.max(initial=0.0)).sum())
        return np.asarray(np.sqrt((V[known:] ** 2).sum(axis=0)))


def descended(
    at: Equations[Place], moved: Callable[[Equations[Place], Array], Equations[Place]]
) -> tuple[Equations[Place], int]:
    """Return the equations with the smallest residual that is reached, and the number of iterations.

    Parameters
    ----------
    at
        Equations at the first guess.
    moved
        Function that returns the equations after a change of the unknowns.
    """
    damping, idle = 0.0, 0
    for k in range(ROUNDS):
        if not np.isfinite(at.slopes).all() or not 0.0 < at.error < np.inf or idle == PATIENCE:
            return at, k
        new = moved(at, at.step(damping))
        now, then = np.linalg.norm(at.scaled), np.linalg.norm(new.values / at.scales)
        if then < now:
            idle = idle + 1 if then > 0.99 * now else 0
            small = at.error < SOLVED and then > 0.1 * now  # rounding is all that is left
            at, damping = new, 0.1 * damping if damping > FIRST else 0.0
            if small:
                return at, k + 1
        elif at.error < SOLVED or damping > MOST:
            return at, k + 1
        else:
            damping = max(10.0 * damping, FIRST)
    return at, ROUNDS
