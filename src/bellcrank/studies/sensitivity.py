"""Sobol indices, with standard errors: the share of the variance of a result that each varied number explains.

From points="saltelli": first order by Saltelli et al. 2010 (b), total by Jansen 1999 (f), both as in table 2 of the
former; standard errors by bootstrap over the points. From independent points ("random", "latin"; neighbours in Sobol's
sequence are far from independent): first order only, from the ranks (Gamboa, Gremaud, Klein, Lagnoux 2022), and errors
from parts of the sample.

    A, B   two independent samples        AB_i   A with column i of B
    S_i = mean f(B) (f(AB_i) - f(A)) / V        T_i = mean (f(A) - f(AB_i))^2 / 2 V
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.errors import InputError
from bellcrank.studies.distributions import Array
from bellcrank.studies.sampling_plans import Points
from bellcrank.text_table import table

BOOTSTRAP_SAMPLES = 200  # bootstrap samples
RANK_PARTS = 20  # parts of a sample, for the error of the estimate from ranks


@dataclass(frozen=True, eq=False)
class Indices:
    """Sobol indices of one result.

    For each name: first order, the share that it explains alone; total, including all its interactions (NaN:
    unknown).
    """

    result: str
    names: tuple[str, ...]
    first: Array
    first_error: Array
    total: Array
    total_error: Array
    used: int  # points with a number for every run

    def __str__(self) -> str:
        def cell(x: float, e: float) -> str:
            return "-" if np.isnan(x) else f"{x:.3f} \N{PLUS-MINUS SIGN} " + ("?" if np.isnan(e) else f"{e:.3f}")

        rows = [
            (name, cell(self.first[i], self.first_error[i]), cell(self.total[i], self.total_error[i]))
            for i, name in enumerate(self.names)
        ]
        return table((self.result, "alone", "with interactions"), rows)


def sobol_indices(points: Points, values: Array, result: str) -> Indices:
    """Return the Sobol indices of a result.

    Parameters
    ----------
    points
        Points of the study.
    values
        The result for each run; runs without a number are left out, with their whole point.
    result
        Name of the result.
    """
    names = tuple(n for n, x in points.columns.items() if len(np.unique(x)) > 1)
    if points.design == "saltelli":
        return _by_scheme(tuple(points.columns), values, result)
    if points.design not in ("random", "latin"):
        raise InputError(
            f'sensitivities need independent points, but these are of the design "{points.design}"; take '
            'points="saltelli" (first order and total), "random" or "latin" (first order).'
        )
    if not names:
        return _unknown_indices(names, result, len(values))
    X = np.stack([_as_numbers(points.columns[n]) for n in names], axis=1)
    good = np.isfinite(values)
    return _by_ranks(names, X[good], values[good], result)


def _as_numbers(x: Array) -> Array:
    return x.astype(float) if x.dtype.kind in "fiu" else np.unique(x, return_inverse=True)[1].astype(float)


def _by_scheme(names: tuple[str, ...], values: Array, result: str) -> Indices:
    d = len(names)
    f = values.reshape(-1, d + 2)
    f = f[np.isfinite(f).all(axis=1)]
    if len(f) < 2 or not np.ptp(f) > 0:
        return _unknown_indices(names, result, len(f))
    rng = np.random.default_rng(0)
    first, total = _saltelli_estimates(f)
    resampled = [_saltelli_estimates(f[rng.integers(len(f), size=len(f))]) for _ in range(BOOTSTRAP_SAMPLES)]
    errors = np.std([np.stack(e) for e in resampled], axis=0, ddof=1)
    return Indices(result, names, first, errors[0], total, errors[1], len(f))


def _saltelli_estimates(f: Array) -> tuple[Array, Array]:
    """Return S and T from rows f(A), f(B), f(AB_1), ...; subtracting the mean only reduces the error."""
    f = f - f[:, :2].mean()
    A, B, AB = f[:, 0], f[:, 1], f[:, 2:]
    V = f[:, :2].var()
    S = (B[:, None] * (AB - A[:, None])).mean(axis=0) / V
    T = ((A[:, None] - AB) ** 2).mean(axis=0) / (2.0 * V)
    return S, T


def _by_ranks(names: tuple[str, ...], X: Array, y: Array, result: str) -> Indices:
    if len(y) < 2 * RANK_PARTS or not np.ptp(y) > 0:
        return _unknown_indices(names, result, len(y))
    first = _rank_estimates(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    parts = np.array([_rank_estimates(X[part], y[part]) for part in np.array_split(order, RANK_PARTS)])
    finite_parts = parts[np.isfinite(parts).all(axis=1)]  # a result with few values may be constant in a part
    error = unknown = np.full(len(names), np.nan)
    if len(finite_parts) > 1:
        error = np.std(finite_parts, axis=0, ddof=1) / np.sqrt(len(finite_parts))
    return Indices(result, names, first, error, unknown, unknown, len(y))


def _rank_estimates(X: Array, y: Array) -> Array:
    """Return the covariance of neighbours along each column over the variance; ties are in random order."""
    y = y - y.mean()
    if not y @ y > 0.0:
        return np.full(X.shape[1], np.nan)
    shuffled = np.random.default_rng(1).permutation(len(y))
    estimates = []
    for x in X.T:
        order = shuffled[np.argsort(x[shuffled], kind="stable")]
        estimates.append(float(y[order] @ np.roll(y[order], -1)) / float(y @ y))
    return np.array(estimates)


def _unknown_indices(names: tuple[str, ...], result: str, used: int) -> Indices:
    """Return unknown indices, for a result that does not vary."""
    nan = np.full(len(names), np.nan)
    return Indices(result, names, nan, nan, nan, nan, used)
