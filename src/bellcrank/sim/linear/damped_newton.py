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
Location = TypeVar("Location")
MAX_ITERATIONS, MAX_IDLE_ITERATIONS = 60, 8  # iterations in all, and iterations without progress
SOLVED_RESIDUAL = 1e-9  # scaled residual of a solution
FAILED_RESIDUAL = 1e-6  # scaled residual above which there is no solution
RANK_TOLERANCE = 1e-11  # singular values below this part of the largest count as zero
FIRST_DAMPING, MAX_DAMPING = 1e-6, 1e8  # first damping, and the largest, with which a step hardly moves


@dataclass(frozen=True, eq=False)
class Equations(Generic[Location]):
    """Equations at one place: residuals, and their Jacobian (equations, unknowns)."""

    place: Location
    values: Array
    jacobian: Array
    sizes: Array  # typical sizes of the unknowns
    least_scales: Array  # smallest scale of each equation: smaller effects of the unknowns count as none

    @cached_property
    def scales(self) -> Array:
        """Effect of typical changes of the unknowns on each equation."""
        return np.asarray(np.maximum(np.linalg.norm(self.jacobian * self.sizes, axis=1), self.least_scales))

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
    def decomposition(self) -> tuple[Array, Array, Array]:
        """Singular value decomposition of the scaled Jacobian."""
        return np.linalg.svd(self.jacobian * self.sizes / self.scales[:, None], full_matrices=True)

    def step(self, damping: float) -> Array:
        """Return the change of the unknowns for the given `damping`."""
        U, s, V = self.decomposition
        n = len(s)
        significant = s > RANK_TOLERANCE * s.max(initial=0.0)
        inverse_values = np.where(significant, s / (s * s + damping + 1e-300), 0.0)
        return np.asarray(-self.sizes * (V[:n].T @ (inverse_values * (U[:, :n].T @ self.scaled))))

    @property
    def undetermined_shares(self) -> Array:
        """Share of each unknown that no equation determines, 0 to 1."""
        _, s, V = self.decomposition
        known = int((s > RANK_TOLERANCE * s.max(initial=0.0)).sum())
        return np.asarray(np.sqrt((V[known:] ** 2).sum(axis=0)))


def solve_damped(
    equations: Equations[Location], moved: Callable[[Equations[Location], Array], Equations[Location]]
) -> tuple[Equations[Location], int]:
    """Return the equations with the smallest residual that is reached, and the number of iterations.

    Parameters
    ----------
    equations
        Equations at the first guess.
    moved
        Function that returns the equations after a change of the unknowns.
    """
    damping, idle = 0.0, 0
    for k in range(MAX_ITERATIONS):
        if (
            not np.isfinite(equations.jacobian).all()
            or not 0.0 < equations.error < np.inf
            or idle == MAX_IDLE_ITERATIONS
        ):
            return equations, k
        trial = moved(equations, equations.step(damping))
        residual, trial_residual = np.linalg.norm(equations.scaled), np.linalg.norm(trial.values / equations.scales)
        if trial_residual < residual:
            idle = idle + 1 if trial_residual > 0.99 * residual else 0
            # Rounding is all that is left.
            small = equations.error < SOLVED_RESIDUAL and trial_residual > 0.1 * residual
            equations, damping = trial, 0.1 * damping if damping > FIRST_DAMPING else 0.0
            if small:
                return equations, k + 1
        elif equations.error < SOLVED_RESIDUAL or damping > MAX_DAMPING:
            return equations, k + 1
        else:
            damping = max(10.0 * damping, FIRST_DAMPING)
    return equations, MAX_ITERATIONS
