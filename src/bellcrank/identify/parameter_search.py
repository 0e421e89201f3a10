"""Parameter search of `bc.fit`: least squares in units of the noise, identifiable directions, standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.argument_errors import generator
from bellcrank.errors import InputError, brief, check_known
from bellcrank.identify.least_squares import correlation_matrix, direction_texts
from bellcrank.identify.regressors import MAX_MEASURED, Array
from bellcrank.lazy_import import optional_import
from bellcrank.quoting import single_line
from bellcrank.scalar import is_real
from bellcrank.text_table import table

MAX_RELATIVE_ERROR = 1.0  # standard error relative to a number's size above which it is not identified
LEASH = 0.1  # per number's size, in units of the noise: negligible where the data identify it
TRIALS_PER_START = 16  # random points evaluated for each start, in one batch
MIN_SCALE = 1e-12  # scale of a column that does not vary
FAILED_RESIDUAL = 1e6  # residual of a failed run, in units of the noise


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of `fit`: numbers found, with standard errors.

    Parameters
    ----------
    names : tuple of str
        Names of the numbers.
    values : ndarray
        Values found.
    errors : ndarray
        Standard deviations; infinite for numbers that the data do not identify, which keep their starting values.
    covariance : ndarray
        Covariance of the values.
    correlations : ndarray
        Correlation matrix of the values.
    noise : mapping of str to float
        Standard deviation of each observed column.
    untold : tuple of str
        Directions that the data do not identify, as text.
    held : tuple of str
        Numbers that were held at their starting values because of these directions.
    misfit : float
        Root mean square of the residuals in units of the noise.
    runs : int
        Number of runs in the search.
    """

    names: tuple[str, ...]
    values: Array
    errors: Array
    covariance: Array
    correlations: Array
    noise: Mapping[str, float]  # standard deviation of each observed column
    untold: tuple[str, ...]  # directions that the data do not identify, as text
    held: tuple[str, ...]  # numbers held at their starting values because of them
    misfit: float  # root mean square residual in units of the noise
    runs: int  # number of runs in the search

    def __getitem__(self, name: str) -> float:
        check_known("number", name, self.names, "the fit")
        return float(self.values[self.names.index(name)])

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name, for `parameters=`."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __str__(self) -> str:
        rows = [
            (n, f"{x:.6g}", f"{e:.2g}", "not identified" if n in self.held else "")
            for n, x, e in zip(self.names, self.values, self.errors)
        ]
        lines = [table(("number", "found", "error", ""), rows, right=(1, 2))]
        lines += [f"the data do not identify {single_line(words)}" for words in self.untold]
        C = np.abs(np.triu(self.correlations, 1))
        lines += [
            f"{single_line(self.names[i])} and {single_line(self.names[j])} are correlated: correlation "
            f"{self.correlations[i, j]:.3f}"
            for i, j in zip(*np.where(C > 0.95))
        ]
        return "\n".join(lines)


class FitProblem:
    """Numbers to find, with their scales, bounds and priors.

    Parameters
    ----------
    names
        Names of the numbers.
    nominal
        Starting values.
    bounds
        (lowest, highest) by name.
    priors
        (value, standard deviation) by name.
    loss
        Loss function of scipy's least squares.
    noise
        Known standard deviations by column.
    """

    def __init__(self, names: tuple[str, ...], nominal: Array, bounds: Any, priors: Any, loss: str, noise: Any) -> None:
        self.names, self.nominal, self.loss, self.noise = names, nominal, loss, dict(noise or {})
        limits, prior_pairs = _checked_pairs(names, "bounds", bounds), _checked_pairs(names, "priors", priors)
        for n, x in zip(names, nominal, strict=True):
            _check_size(f'begin: "{n}"', x)
        for argument, pairs_by_name in (("priors", prior_pairs), ("bounds", limits)):
            for n, pair in pairs_by_name.items():
                for x in pair:
                    _check_size(f'{argument}: "{n}"', x if argument == "priors" or np.isfinite(x) else 0.0)
        pairs = [limits.get(n, (-np.inf, np.inf)) for n in names]
        self.low, self.high = (np.array([float(p[k]) for p in pairs]) for k in (0, 1))
        for n, lo, hi, x in zip(names, self.low, self.high, nominal):
            if not lo < hi:
                raise InputError(f'bounds: "{n}" is ({lo:g}, {hi:g}), an empty range; expected the lower number first.')
            if not lo <= x <= hi:
                raise InputError(
                    f'"{n}" begins at {x:g}, outside its bounds ({lo:g}, {hi:g}); give begin={{"{n}": ...}}.'
                )
        width = np.where(np.isfinite(self.high - self.low), (self.high - self.low) / 2, 0.0)
        self.size = np.where(nominal != 0, np.abs(nominal), np.where(width > 0, width, 1.0))
        self.priors = {names.index(n): pair for n, pair in prior_pairs.items()}
        if any(not float(p[1]) > 1.0 / MAX_MEASURED for p in self.priors.values()):
            raise InputError(f"priors: expected standard deviations above zero, at least {1.0 / MAX_MEASURED:g}.")

    @np.errstate(over="ignore", invalid="ignore")  # the results are checked by _usable
    def solve(self, residuals: Any, starts: int, seed: int) -> Fit:
        """Run the search and return its result.

        Parameters
        ----------
        residuals
            Residuals, with columns, off, sizes, costs and runs.
        starts
            Number of starting points.
        seed
            Seed of the starting points.
        """
        columns = residuals.columns
        for c, x in self.noise.items():
            check_known("column", c, columns, "noise")
            if not is_real(x) or not 1.0 / MAX_MEASURED < float(x) < MAX_MEASURED:
                raise InputError(
                    f'noise: "{c}" is {brief(x)}; expected a standard deviation above zero, from '
                    f"{1.0 / MAX_MEASURED:g} to {MAX_MEASURED:g}."
                )
        noise = np.array([self.noise.get(c, np.nan) for c in columns])
        is_known = np.isfinite(noise)
        scale = np.maximum(residuals.sizes(), MIN_SCALE)
        sigma = np.where(is_known, noise, 0.05 * scale)
        active = np.ones(len(self.names), bool)
        x = self._starting_values(residuals, sigma, starts, seed)
        for round_index in range(3):  # guessed noise, then estimated noise, then without unidentified numbers
            x = self._least_squares(residuals, x, sigma, active, 0.0 if round_index else LEASH)
            r, J = self._final(residuals, x, sigma)
            noise_estimate = np.sqrt((r**2).mean(axis=1) * r.size / max(1, r.size - active.sum()))
            if self.loss != "linear":  # a robust estimate, because outliers are not noise
                noise_estimate = 1.4826 * np.median(np.abs(r - np.median(r, axis=1)[:, None]), axis=1)
            sigma = np.where(is_known, noise, np.maximum(noise_estimate, 1e-9 * scale))
            words, held_mask = self._unidentified(J, sigma)
            if (held_mask == ~active).all() and is_known.all():
                break
            active = ~held_mask
            x = np.where(held_mask, self.nominal, x)
        return self._result(residuals, x, sigma, active, words)

    def _least_squares(self, residuals: Any, x: Array, sigma: Array, active: Array, leash: float) -> Array:
        """Run scipy's least squares over the active numbers; a leash holds those that may not be identifiable."""
        optimize = optional_import("scipy.optimize", "study", "a fit")
        if not active.any():
            return x
        cache = dict[bytes, tuple[Array, Array]]()

        def all_values(z: Array) -> Array:
            y = x.copy()
            y[active] = z * self.size[active]
            return y

        def scaled_residuals(z: Array) -> tuple[Array, Array]:
            key = z.tobytes()
            if key not in cache:
                cache.clear()
                r, J = residuals.off(all_values(z))
                good = self._usable(r, J, sigma)
                r = np.where(good, r / sigma[:, None], FAILED_RESIDUAL)
                J = np.where(good[..., None], J / sigma[:, None, None] * self.size, 0.0)
                extra_r, extra_J = self._prior(all_values(z), leash)
                cache[key] = (
                    np.concatenate([r.reshape(-1), extra_r]),
                    np.concatenate([J.reshape(-1, J.shape[-1]), extra_J])[:, active],
                )
            return cache[key]

        limits = (self.low[active] / self.size[active], self.high[active] / self.size[active])
        start = np.clip(x[active] / self.size[active], limits[0], limits[1])
        r, J = (lambda z: scaled_residuals(z)[0]), (lambda z: scaled_residuals(z)[1])
        options = {"bounds": limits, "loss": self.loss, "x_scale": "jac", "xtol": 1e-10}
        solution = optimize.least_squares(r, start, J, **options)
        if not np.isfinite(solution.x).all():
            raise InputError(
                f"the search does not converge from {self._numbers(x)}; give other initial values: begin={{...}}."
            )
        return all_values(solution.x)

    def _usable(self, r: Array, J: Array, sigma: Array) -> Array:
        """Return a mask of residuals that, with their slopes, can be squared and summed."""
        with np.errstate(all="ignore"):
            slopes = np.abs(J * self.size).max(axis=-1, initial=0.0)
            return np.asarray((np.abs(r) < MAX_MEASURED * sigma[:, None]) & (slopes < MAX_MEASURED * sigma[:, None]))

    def _final(self, residuals: Any, x: Array, sigma: Array) -> tuple[Array, Array]:
        """Return residuals and slopes at the numbers that the search found.

        Raises
        ------
        InputError
            If some of them are not finite: the model fails before the measurement ends, or grows beyond all bounds.
        """
        r, J = residuals.off(x)
        if not (is_usable := self._usable(r, J, sigma)).all():
            column, sample = (int(k) for k in np.argwhere(~is_usable)[0])
            raise InputError(
                f'fit: with {self._numbers(x)} the model has no usable value of "{residuals.columns[column]}" at '
                f"sample {sample}: its run fails, or its numbers grow beyond {MAX_MEASURED:g} of the noise. Begin with "
                "numbers by which the plant can do what was measured (begin=, q0=, bounds=), and look at the units of "
                "the data."
            )
        return r, J

    def _numbers(self, x: Array) -> str:
        return ", ".join(f"{n} = {float(v):g}" for n, v in zip(self.names, x, strict=True))

    def _prior(self, x: Array, leash: float = 0.0) -> tuple[Array, Array]:
        n = len(self.names)
        r, J = np.zeros(len(self.priors)), np.zeros((len(self.priors), n))
        for row, (k, (value, deviation)) in enumerate(self.priors.items()):
            r[row] = (x[k] - value) / deviation
            J[row, k] = self.size[k] / deviation
        if leash:
            r = np.concatenate([r, leash * (x - self.nominal) / self.size])
            J = np.concatenate([J, leash * np.eye(n)])
        return r, J

    def _all_slopes(self, J: Array, sigma: Array) -> Array:
        """Return the slopes of residuals in units of the noise, and of the priors, by the scaled numbers."""
        scaled = (J / sigma[:, None, None] * self.size).reshape(-1, len(self.names))
        return np.concatenate([scaled, self._prior(self.nominal)[1]])

    def _unidentified(self, J: Array, sigma: Array) -> tuple[tuple[str, ...], Array]:
        """Return the unidentified directions as text, and a mask of one number to hold for each of them."""
        _, s, Vt = np.linalg.svd(self._all_slopes(J, sigma), full_matrices=False)
        weak = s * MAX_RELATIVE_ERROR < 1.0
        held_mask = np.zeros(len(self.names), bool)
        for d in Vt[weak]:
            held_mask[int(np.argmax(np.where(held_mask, 0.0, np.abs(d))))] = True
        return direction_texts(self.names, Vt[weak] * self.size), held_mask

    def _starting_values(self, residuals: Any, sigma: Array, starts: int, seed: int) -> Array:
        if starts == 1:
            return self.nominal.copy()
        if not np.isfinite(self.high - self.low).all():
            open_ = [n for n, a, b in zip(self.names, self.low, self.high) if not np.isfinite(b - a)]
            raise InputError(f"starts={starts} needs bounds for {', '.join(open_)}: points are taken between them.")
        rng = generator(seed)
        points = rng.uniform(self.low, self.high, (starts * TRIALS_PER_START, len(self.names)))
        points = np.vstack([self.nominal[None], points])
        order = np.argsort(residuals.costs(points, sigma))[:starts]
        all_ = np.ones(len(self.names), bool)
        ends = np.array([self._least_squares(residuals, points[k], sigma, all_, LEASH) for k in order])
        return np.asarray(ends[int(np.argmin(residuals.costs(ends, sigma)))])

    def _result(self, residuals: Any, x: Array, sigma: Array, active: Array, words: tuple[str, ...]) -> Fit:
        r, J = self._final(residuals, x, sigma)
        A = self._all_slopes(J, sigma)[:, active]
        C = np.zeros((len(self.names), len(self.names)))
        C[np.ix_(active, active)] = np.linalg.pinv(A.T @ A) * np.outer(self.size[active], self.size[active])
        errors = np.where(active, np.sqrt(np.diag(C)), np.inf)
        held = tuple(n for n, a in zip(self.names, active) if not a)
        misfit = float(np.sqrt(((r / sigma[:, None]) ** 2).mean()))
        column_noise = dict(zip(residuals.columns, sigma.tolist(), strict=True))
        return Fit(self.names, x, errors, C, correlation_matrix(C), column_noise, words, held, misfit, residuals.runs)


def _check_size(argument: str, x: float) -> None:
    if not abs(x) < MAX_MEASURED:
        raise InputError(
            f"{argument} is {x:g}; expected numbers below {MAX_MEASURED:g}: they are squared and added up."
        )


def _checked_pairs(
    names: tuple[str, ...], argument: str, pairs_by_name: Mapping[str, Any] | None
) -> dict[str, tuple[float, float]]:
    """Return pairs of numbers by name, after a check."""
    pairs = {}
    for n, pair in (pairs_by_name or {}).items():
        check_known("free number", n, names, argument)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or np.isnan(pair).any():
            raise InputError(f'{argument}: "{n}" is {pair!r}; expected a pair of numbers.')
        pairs[n] = float(pair[0]), float(pair[1])
    return pairs
