"""Rounding error of accelerations of open trees: estimation by stochastic arithmetic.

Where a small body carries a very large one, its own inertia disappears in the rounding errors of what it carries, and
accelerations lose digits, long before singular_mass.py refuses the mechanism. How many depends on the method and on the
geometry: articulated inertias of graded chains are often accurate where factors of the mass matrix are not. So the
error is measured: a method computes accelerations several times, with a change by one rounding unit, of random sign, of
each input and after every operation. The scatter of the results is the estimate. Where joints are aligned, terms may
cancel exactly, and a disturbed computation is worse than the true one: so a mechanism counts as accurate, too, if
accelerations in double and in extended precision agree with a large margin. Computers without extended precision
(long double of 64 bits) do without this comparison.

J. Vignes. A stochastic arithmetic for reliable scientific computation. Mathematics and Computers in Simulation 35(3),
233-261, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics.singular_mass import carried_ratios, carried_sizes
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]
ROUNDING_UNIT = 2.0**-52
MAX_RELATIVE_ERROR = 1e-6  # relative error of an acceleration; larger estimates are reported
NEGLIGIBLE_RELATIVE_ERROR = 1e-9  # methods with smaller estimates count as equally accurate
CLEARLY_ACCURATE = 1e-8  # difference from extended precision with which a larger estimate is disregarded
SAFE_CARRIED_RATIO = 1e6  # carried inertia relative to the body's own, with which errors are far below the limit
SAFE_SPREAD = 1e4  # the same for the largest and smallest mass, or moment of inertia, of all bodies
MEASURED_STATES, SAMPLES = 3, 4  # states in which a tree is measured, and disturbed results of each
PREPARED_DISTURBANCES = 997  # arrays of random signs that are used in turn; a prime
EXACT_FUNCTIONS = (np.negative, np.absolute, np.maximum, np.minimum, np.floor)


class _Disturbances:
    """Factors 1 +- ROUNDING_UNIT for arrays of one size, the same ones in every process."""

    def __init__(self, size: int) -> None:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (PREPARED_DISTURBANCES, size))
        self.factors, self.used = 1.0 + ROUNDING_UNIT * signs, 0

    def disturbed(self, x: Array) -> _StochasticArray:
        """Return `x` with a random error of one rounding unit."""
        self.used = (self.used + 1) % PREPARED_DISTURBANCES
        result: _StochasticArray = (x * self.factors[self.used]).view(_StochasticArray)
        result.disturbances = self
        return result


class _StochasticArray(np.ndarray[Any, Any]):
    """Array that every operation disturbs."""

    disturbances: _Disturbances

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the disturbed result of a numpy function."""
        result = getattr(ufunc, method)(*[np.asarray(x) for x in inputs], **options)
        if result.dtype.kind != "f":
            return result
        if ufunc not in EXACT_FUNCTIONS:
            return self.disturbances.disturbed(result)
        result = result.view(_StochasticArray)
        result.disturbances = self.disturbances
        return result


def may_lose_digits(tree: Tree, q: Sequence[float]) -> bool:
    """Return whether a body of `tree` carries so much more than its own inertia, at `q`, that digits may be lost."""
    ratios = carried_ratios(tree, q, carried_sizes(tree, q))
    masses = [link.inertia.m for link in tree.links]
    moments = [max(link.inertia.I.xx, link.inertia.I.yy, link.inertia.I.zz) for link in tree.links]
    return bool((ratios > SAFE_CARRIED_RATIO).any() and max(_spread(masses), _spread(moments)) > SAFE_SPREAD)


def _spread(sizes: Sequence[float]) -> float:
    """Return the ratio of the largest to the smallest positive number, 1 without any."""
    positive = [float(x) for x in sizes if x > 0.0]
    return max(positive) / min(positive) if positive else 1.0


def acceleration_error(mechanism: Mechanism, tree: Tree, forward_dynamics: Callable[..., Any]) -> tuple[float, int]:
    """Return the estimated relative error of accelerations, and the coordinate where it is largest.

    Parameters
    ----------
    mechanism
        The mechanism, without free parameters.
    tree
        Its tree in the form that the method is applied to.
    forward_dynamics
        Function of a method: (tree, q, v, tau) -> accelerations, for any scalar.
    """
    disturbances = _Disturbances(MEASURED_STATES * SAMPLES)
    states = [mechanism.random(seed=k) for k in range(1, 1 + MEASURED_STATES)]
    columns = [np.stack(part, axis=1).repeat(SAMPLES, axis=1) for part in zip(*states, strict=True)]
    with np.errstate(all="ignore"):
        results = []
        for form in (tree, mechanism.tree):  # their difference is the rounding of the constants of the form
            inputs = [[disturbances.disturbed(x) for x in part] for part in columns]
            results.append(_rows(forward_dynamics(form, *inputs), MEASURED_STATES * SAMPLES))
        samples = np.stack(results, axis=2).reshape(len(results[0]), MEASURED_STATES, 2 * SAMPLES)
        mean = samples.mean(axis=2)
        scatter = np.abs(samples - mean[:, :, None]).max(axis=2)
        if not scatter.any():  # the method converts its numbers, so that it was not disturbed
            return np.inf, 0
        error = _relative(scatter, mean)
        if error.max(initial=0.0) > MAX_RELATIVE_ERROR and np.finfo(np.longdouble).eps < ROUNDING_UNIT / 1000.0:
            few = [np.stack(part, axis=1) for part in zip(*states, strict=True)]
            plain = _rows(forward_dynamics(tree, *map(list, few)), MEASURED_STATES)
            extended = [list(x.astype(np.longdouble)) for x in few]
            reference = _rows(forward_dynamics(mechanism.tree, *extended), MEASURED_STATES)
            difference = _relative(np.abs(plain - reference), reference)
            is_extended = difference.any()  # else the method has rounded its numbers to float64
            error = difference if is_extended and difference.max() < CLEARLY_ACCURATE else error
    worst = error.max(axis=1)
    return float(worst.max(initial=0.0)), int(np.argmax(worst)) if len(worst) else 0


def _rows(accelerations: Sequence[Any], width: int) -> Array:
    """Return accelerations as rows; those that are equal in all states are scalars."""
    return np.array([np.broadcast_to(np.asarray(x, float), width) for x in accelerations])


def _relative(differences: Array, values: Array) -> Array:
    """Return the ratios of differences and values: 0 without a difference, infinite where values are not finite."""
    ratios = np.where(differences > 0.0, differences / np.abs(values), 0.0)
    return np.where(np.isfinite(ratios) & np.isfinite(values), ratios, np.inf)
