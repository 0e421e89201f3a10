"""Newton's method for equations that may be too few, too many, or of any size: scaled, damped, by singular values.

Unknowns are scaled by their size, equations by what the unknowns can do to them. What nothing determines stays where it
is, and steps that do not help are damped (Levenberg and Marquardt).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]
Place = TypeVar("Place")
ROUNDS, PATIENCE = 60, 8  # in all, and without getting anywhere
SOLVED = 1e-9  # of scaled equations
FAILED = 1e-6  # more than this is no solution
RANK = 1e-11  # singular values below this, against the largest, determine nothing
FIRST, MOST = 1e-6, 1e8  # of the damping: a step so damped goes nowhere


@dataclass(frozen=True, eq=False)
class Equations(Generic[Place]):
    """Equations at one place: values that should be zero, and their slopes by the unknowns, (equations, unknowns)."""

    place: Place
    values: Array
    slopes: Array
    sizes: Array  # of the unknowns
    slight: Array  # of each equation, the effect that counts as none

    @cached_property
    def scales(self) -> Array:
        return np.asarray(np.maximum(np.linalg.norm(self.slopes * self.sizes, axis=1), self.slight))

    @cached_property
    def scaled(self) -> Array:
        """How far each equation is from zero, in steps of unknowns of their size."""
        return self.values / self.scales

    @property
    def error(self) -> float:
        worst = float(np.abs(self.scaled).max(initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    @cached_property
    def singular(self) -> tuple[Array, Array, Array]:
        return np.linalg.svd(self.slopes * self.sizes / self.scales[:, None], full_matrices=True)

    def step(self, damping: float) -> Array:
        """The change of the unknowns that is wanted."""
        U, s, V = self.singular
        n = len(s)
        good = s > RANK * s.max(initial=0.0)
        back = np.where(good, s / (s * s + damping + 1e-300), 0.0)
        return np.asarray(-self.sizes * (V[:n].T @ (back * (U[:, :n].T @ self.scaled))))

    @property
    def loose(self) -> Array:
        """How much of each unknown nothing determines, 0 to 1."""
        _, s, V = self.singular
        known = int((s > RANK * s.max(initial=0.0)).sum())
        return np.asarray(np.sqrt((V[known:] ** 2).sum(axis=0)))


def descended(
    at: Equations[Place], moved: Callable[[Equations[Place], Array], Equations[Place]]
) -> tuple[Equations[Place], int]:
    """The equations as near to zero as it gets from here, and how many rounds that took.

    moved: the equations where the unknowns have changed by so much.
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
