"""Parameter search of `bc.fit`: least squares in units of the noise, identifiable directions, standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief, unknown
from bellcrank.extras import extra
from bellcrank.identify.least_squares import in_words
from bellcrank.identify.regressors import LARGEST
from bellcrank.quoting import line
from bellcrank.scalar import is_real
from bellcrank.seeds import generator
from bellcrank.text import table

Array = np.ndarray[Any, Any]
UNTOLD = 1.0  # standard error relative to a number's size above which it is not identified
LEASH = 0.1  # per number's size, in units of the noise: negligible where the data identify it
TRIED = 16  # random points evaluated for each start, in one batch
SMALLEST_SCALE = 1e-12  # scale of a column that does not vary
FAR = 1e6  # residual of a failed run, in units of the noise


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
        if name not in self.names:
            raise InputError(f"the fit: {unknown('number', name, self.names)}")
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
        lines += [f"the data do not identify {line(words)}" for words in self.untold]
        C = np.abs(np.triu(self.correlations, 1))
        lines += [
            f"{line(self.names[i])} and {line(self.names[j])} are correlated: correlation {self.correlations[i, j]:.3f}"
            for i, j in zip(*np.where(C > 0.95))
        ]
        return "\n".join(lines)


class Problem:
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
        limits, believed = _pairs(names, "bounds", bounds), _pairs(names, "priors", priors)
        for n, x in zip(names, nominal, strict=True):
            _check_size(f'begin: "{n}"', x)
        for what, given in (("priors", believed), ("bounds", limits)):
            for n, pair in given.items():
                for x in pair:
                    _check_size(f'{what}: "{n}"', x if what == "priors" or np.isfinite(x) else 0.0)
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
        self.priors = {names.index(n): pair for n, pair in believed.items()}
        if any(not float(p[1]) > 1.0 / LARGEST for p in self.priors.values()):
            raise InputError(f"priors: expected standard deviations above zero, at least {1.0 / LARGEST:g}.")

    @np.errstate(over="ignore", invalid="ignore")  # the results are checked by _usable
    def found(self, of: Any, starts: int, seed: int) -> Fit:
        """Run the search and return its result.

        Parameters
        ----------
        of
            Residuals, with columns, off, sizes, costs and runs.
        starts
            Number of starting points.
        seed
            Seed of the starting points.
        """
        columns = of.columns
        for c, x in self.noise.items():
            if c not in columns:
                raise InputError(f"noise: {unknown('column', c, columns)}")
            if not is_real(x) or not 1.0 / LARGEST < float(x) < LARGEST:
                raise InputError(
                    f'noise: "{c}" is {brief(x)}; expected a standard deviation above zero, from {1.0 / LARGEST:g} to '
                    f"{LARGEST:g}."
                )
        noise = np.array([self.noise.get(c, np.nan) for c in columns])
        known = np.isfinite(noise)
        scale = np.maximum(of.sizes(), SMALLEST_SCALE)
        sigma = np.where(known, noise, 0.05 * scale)
        active = np.ones(len(self.names), bool)
        x = self._first(of, sigma, starts, seed)
        for again in range(3):  # guessed noise, then estimated noise, then without unidentified numbers
            x = self._searched(of, x, sigma, active, 0.0 if again else LEASH)
            r, J = self._final(of, x, sigma)
            left = np.sqrt((r**2).mean(axis=1) * r.size / max(1, r.size - active.sum()))
            if self.loss != "linear":  # a robust estimate, because outliers are not noise
                left = 1.4826 * np.median(np.abs(r - np.median(r, axis=1)[:, None]), axis=1)
            sigma = np.where(known, noise, np.maximum(left, 1e-9 * scale))
            words, held = self._told(J, sigma)
            if (held == ~active).all() and known.all():
                break
            active = ~held
            x = np.where(held, self.nominal, x)
        return self._result(of, x, sigma, active, words)

    def _searched(self, of: Any, x: Array, sigma: Array, active: Array, leash: float) -> Array:
        """Run scipy's least squares over the active numbers; a leash holds those that may not be identifiable."""
        optimize = extra("scipy.optimize", "study", "a fit")
        if not active.any():
            return x
        kept = dict[bytes, tuple[Array, Array]]()

        def full(z: Array) -> Array:
            y = x.copy()
            y[active] = z * self.size[active]
            return y

        def both(z: Array) -> tuple[Array, Array]:
            key = z.tobytes()
            if key not in kept:
                kept.clear()
                r, J = of.off(full(z))
                good = self._usable(r, J, sigma)
                r = np.where(good, r / sigma[:, None], FAR)
                J = np.where(good[..., None], J / sigma[:, None, None] * self.size, 0.0)
                extra_r, extra_J = self._prior(full(z), leash)
                kept[key] = (
                    np.concatenate([r.reshape(-1), extra_r]),
                    np.concatenate([J.reshape(-1, J.shape[-1]), extra_J])[:, active],
                )
            return kept[key]

        limits = (self.low[active] / self.size[active], self.high[active] / self.size[active])
        start = np.clip(x[active] / self.size[active], limits[0], limits[1])
        done = optimize.least_squares(
            lambda z: both(z)[0], start, lambda z: both(z)[1], bounds=limits, loss=self.loss, x_scale="jac", xtol=1e-10
        )
        if not np.isfinite(done.x).all():
            raise InputError(f"begin: from {self._numbers(x)} the search does not converge. Begin with other numbers.")
        return full(done.x)

    def _usable(self, r: Array, J: Array, sigma: Array) -> Array:
        """Return a mask of residuals that, with their slopes, can be squared and summed."""
        with np.errstate(all="ignore"):
            slopes = np.abs(J * self.size).max(axis=-1, initial=0.0)
            return np.asarray((np.abs(r) < LARGEST * sigma[:, None]) & (slopes < LARGEST * sigma[:, None]))

    def _final(self, of: Any, x: Array, sigma: Array) -> tuple[Array, Array]:
        """Return residuals and slopes at the numbers that the search found.

        Raises
        ------
        InputError
            If some of them are not finite: the model fails before the measurement ends, or grows beyond all bounds.
        """
        r, J = of.off(x)
        if not (good := self._usable(r, J, sigma)).all():
            column, sample = (int(k) for k in np.argwhere(~good)[0])
            raise InputError(
                f'fit: with {self._numbers(x)} the model has no usable value of "{of.columns[column]}" at sample '
                f"{sample}: its run fails, or its numbers grow beyond {LARGEST:g} of the noise. Begin with numbers by "
                "which the plant can do what was measured (begin=, q0=, bounds=), and look at the units of the data."
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

    def _told(self, J: Array, sigma: Array) -> tuple[tuple[str, ...], Array]:
        """Return the unidentified directions as text, and a mask of one number to hold for each of them."""
        A = (J / sigma[:, None, None] * self.size).reshape(-1, len(self.names))
        A = np.concatenate([A, self._prior(self.nominal)[1]])
        _, s, Vt = np.linalg.svd(A, full_matrices=False)
        weak = s * UNTOLD < 1.0
        held = np.zeros(len(self.names), bool)
        for d in Vt[weak]:
            held[int(np.argmax(np.where(held, 0.0, np.abs(d))))] = True
        return in_words(self.names, Vt[weak] * self.size), held

    def _first(self, of: Any, sigma: Array, starts: int, seed: int) -> Array:
        if starts == 1:
            return self.nominal.copy()
        if not np.isfinite(self.high - self.low).all():
            open_ = [n for n, a, b in zip(self.names, self.low, self.high) if not np.isfinite(b - a)]
            raise InputError(f"starts={starts} needs bounds for {', '.join(open_)}: points are taken between them.")
        rng = generator(seed)
        points = rng.uniform(self.low, self.high, (starts * TRIED, len(self.names)))
        points = np.vstack([self.nominal[None], points])
        order = np.argsort(of.costs(points, sigma))[:starts]
        all_ = np.ones(len(self.names), bool)
        ends = np.array([self._searched(of, points[k], sigma, all_, LEASH) for k in order])
        return np.asarray(ends[int(np.argmin(of.costs(ends, sigma)))])

    def _result(self, of: Any, x: Array, sigma: Array, active: Array, words: tuple[str, ...]) -> Fit:
        r, J = self._final(of, x, sigma)
        A = (J / sigma[:, None, None] * self.size).reshape(-1, len(self.names))
        A = np.concatenate([A, self._prior(x)[1]])[:, active]
        C = np.zeros((len(self.names), len(self.names)))
        C[np.ix_(active, active)] = np.linalg.pinv(A.T @ A) * np.outer(self.size[active], self.size[active])
        errors = np.where(active, np.sqrt(np.diag(C)), np.inf)
        safe = np.where(active, np.sqrt(np.diag(C)), 1.0)
        safe = np.where(safe > 0, safe, 1.0)
        held = tuple(n for n, a in zip(self.names, active) if not a)
        misfit = float(np.sqrt(((r / sigma[:, None]) ** 2).mean()))
        told = dict(zip(of.columns, sigma.tolist(), strict=True))
        return Fit(self.names, x, errors, C, C / np.outer(safe, safe), told, words, held, misfit, of.runs)


def _check_size(what: str, x: float) -> None:
    if not abs(x) < LARGEST:
        raise InputError(f"{what} is {x:g}; expected numbers below {LARGEST:g}: they are squared and added up.")


def _pairs(names: tuple[str, ...], what: str, given: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
    """Return pairs of numbers by name, after a check."""
    found = {}
    for n, pair in (given or {}).items():
        if n not in names:
            raise InputError(f"{what}: {unknown('free number', n, names)}")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or np.isnan(pair).any():
            raise InputError(f'{what}: "{n}" is {pair!r}; expected a pair of numbers.')
        found[n] = float(pair[0]), float(pair[1])
    return found
