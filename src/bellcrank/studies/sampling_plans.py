"""Sampling plans: distributions and lists, the values of all runs, and the Sobol indices that follow from them.

Values of each run are on a grid, at random, by Latin hypercube, Sobol, Saltelli, or from a table. All points are
computed where the study is started, from the seed alone, so that a chunk always has the same ones.

Sobol indices are the share of the variance of a result that each varied number explains, with standard errors. From
points="saltelli": first order by Saltelli et al. 2010 (b), total by Jansen 1999 (f), both as in table 2 of the former;
standard errors by bootstrap over the points. From independent points ("random", "latin"; neighbours in Sobol's sequence
are far from independent): first order only, from the ranks (Gamboa, Gremaud, Klein, Lagnoux 2022), and errors from
parts of the sample.

    A, B   two independent samples        AB_i   A with column i of B
    S_i = mean f(B) (f(AB_i) - f(A)) / V        T_i = mean (f(A) - f(AB_i))^2 / 2 V
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, generator
from bellcrank.buffers import check_memory
from bellcrank.errors import InputError, brief, unknown
from bellcrank.lazy_import import optional_import
from bellcrank.record.table_files import read_table
from bellcrank.scalar import is_real, is_whole
from bellcrank.text_table import table

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Range:
    """A distribution with two parameters; `unit`, if given, must be that of the varied quantity."""

    kind: str
    a: float
    b: float
    unit: str = ""

    def at(self, u: Array) -> Array:
        """Return the values at the cumulative probabilities `u`, 0 < u < 1."""
        if self.kind == "uniform":
            return np.asarray(self.a + (self.b - self.a) * u)
        if self.kind == "log_uniform":
            return np.asarray(self.a * np.exp(math.log(self.b / self.a) * u))
        special = optional_import("scipy.special", "study", "a normal distribution")
        return np.asarray(self.a + self.b * special.ndtri(u))

    def __str__(self) -> str:
        return f"{self.kind}({self.a:g}, {self.b:g}{f', {self.unit}' if self.unit else ''})"


@dataclass(frozen=True)
class Levels:
    """A list of values: numbers, or names of files, variants and methods."""

    values: tuple[Any, ...]

    def at(self, u: Array) -> Array:
        """Return the values at the shares `u` of the list, 0 < u < 1."""
        k = np.minimum((u * len(self.values)).astype(int), len(self.values) - 1)
        return self.take(k)

    def take(self, k: Array) -> Array:
        """Return the values with the indices `k`."""
        return self.array[k]

    @property
    def array(self) -> Array:
        """All values as an array of texts or floats."""
        words = any(isinstance(x, str) for x in self.values)
        return np.array([str(x) for x in self.values]) if words else np.array(self.values, float)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.values))}]"


@explain_argument_errors
def uniform(low: float, high: float, unit: str = "") -> Range:
    """Return a uniform distribution for bc.study.

    Parameters
    ----------
    low, high : float
        Limits.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the range is empty.
    """
    low, high = _finite("uniform", low), _finite("uniform", high)
    if not low < high:
        raise InputError(f"uniform({low:g}, {high:g}) is an empty range; expected the lower number first.")
    return Range("uniform", low, high, unit)


@explain_argument_errors
def log_uniform(low: float, high: float, unit: str = "") -> Range:
    """Return a distribution whose logarithm is uniform, for bc.study.

    Parameters
    ----------
    low, high : float
        Limits, above zero.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the range is empty, or not above zero.
    """
    low, high = _finite("log_uniform", low), _finite("log_uniform", high)
    if not 0 < low < high:
        raise InputError(f"log_uniform({low:g}, {high:g}): expected two numbers above zero, the lower first.")
    return Range("log_uniform", low, high, unit)


@explain_argument_errors
def normal(mean: float, deviation: float, unit: str = "") -> Range:
    """Return a normal distribution for bc.study.

    Parameters
    ----------
    mean, deviation : float
        Mean and standard deviation.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the deviation is not positive.
    """
    mean, deviation = _finite("normal", mean), _finite("normal", deviation)
    if not deviation > 0:
        raise InputError(f"normal({mean:g}, {deviation:g}) is an empty range; expected a deviation above zero.")
    return Range("normal", mean, deviation, unit)


def as_range(name: str, given: Any) -> Range | Levels:
    """Return the user's argument `given` for the varied `name` as a Range or Levels."""
    if isinstance(given, (Range, Levels)):
        return given
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray, range)):
        raise InputError(f'over: "{name}" is {given!r}; expected bellcrank.uniform(low, high) or a list of values.')
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    values = tuple(x.item() if isinstance(x, np.number) else x for x in listed)
    if not values:
        raise InputError(f'over: "{name}" is an empty list; expected at least one value.')
    for x in values:
        if not isinstance(x, str):
            _finite(f'over: "{name}"', x)
    if len(set(map(type, values)) - {int, float}) and not all(isinstance(x, str) for x in values):
        raise InputError(f'over: "{name}" has numbers and words in one list; expected one kind.')
    return Levels(values)


def _finite(what: str, x: Any) -> float:
    if not is_real(x) or not math.isfinite(x):
        raise InputError(f"{what}: {x!r} is not a finite number.")
    return float(x)


DESIGNS = ("grid", "random", "latin", "sobol", "saltelli")
MAX_RUNS = 2**31  # runs of one study
BYTES_PER_NUMBER = 24.0  # per number: its position in the range, its value, and the text for its digest
BOOTSTRAP_SAMPLES = 200  # bootstrap samples
RANK_PARTS = 20  # parts of a sample, for the error of the estimate from ranks


@dataclass(frozen=True, eq=False)
class Points:
    """Values of all runs, by name."""

    columns: Mapping[str, Array]
    design: str
    ranges: Mapping[str, Range | Levels]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def part(self, first: int, last: int) -> dict[str, Array]:
        """Return the values of the runs from `first` to `last`, exclusive."""
        return {name: x[first:last] for name, x in self.columns.items()}

    @property
    def digest(self) -> str:
        """Digest of all values."""
        digest = hashlib.sha256()
        for name, x in self.columns.items():
            values = np.ascontiguousarray(x, float).tobytes() if x.dtype.kind in "fiu" else "\0".join(x).encode()
            digest.update(f"{name}\0{x.dtype.kind}\0".encode() + values)
        return digest.hexdigest()


def points(over: Mapping[str, Any] | None, runs: int | None, design: Any, seed: int) -> Points:
    """Return the values of all runs.

    Parameters
    ----------
    over
        Ranges and lists by name.
    runs
        Number of runs.
    design
        One of DESIGNS, or a table: a mapping of columns, or a CSV or Parquet file of them.
    seed
        Seed of random designs.
    """
    if isinstance(design, (Mapping, Path)) or (isinstance(design, str) and Path(design).suffix):
        if over:
            raise InputError("points is a table, which already defines what varies: leave out over=.")
        return _table(design, runs)
    ranges = _ranges(over)
    if design is None:
        design = "grid" if runs is None and all(isinstance(x, Levels) for x in ranges.values()) else "random"
    if not isinstance(design, str) or design not in DESIGNS:  # `in` would compare an array element by element
        raise InputError(f"points: {unknown('design', design, DESIGNS)}")
    if design == "grid":
        return Points(_grid(ranges, runs), design, ranges)
    if not is_whole(runs) or not 1 <= runs <= MAX_RUNS:
        raise InputError(f"runs is {brief(runs)}; expected the number of runs, an integer from 1 to {MAX_RUNS:,}.")
    _check_memory(int(runs), len(ranges))
    shares = _unit_cube_points(design, int(runs), len(ranges), seed)
    return Points({name: r.at(shares[:, i]) for i, (name, r) in enumerate(ranges.items())}, design, ranges)


def _ranges(over: Mapping[str, Any] | None) -> dict[str, Range | Levels]:
    """Return the ranges by name, checked."""
    if not isinstance(over, Mapping) or not over:
        raise InputError(
            f'over is {brief(over)}; expected what varies: {{"boom.mass": bellcrank.uniform(1500, 2100)}}.'
        )
    for name in over:
        if not isinstance(name, str):
            raise InputError(f"over has {brief(name)}; expected names of what varies, as texts.")
    return {name: as_range(name, x) for name, x in over.items()}


def _grid(ranges: Mapping[str, Range | Levels], runs: int | None) -> dict[str, Array]:
    """Return every combination, the last name varying fastest."""
    lists: dict[str, Levels] = {}
    for name, r in ranges.items():
        if not isinstance(r, Levels):
            raise InputError(f'points="grid": "{name}" is {r}; expected a list, as in numpy.linspace(...).')
        lists[name] = r
    shape = tuple(len(r.values) for r in lists.values())
    n = math.prod(shape)
    if runs is not None and runs != n:
        raise InputError(f"runs is {runs}, but the grid has {n} points; leave runs out.")
    if n > MAX_RUNS:
        raise InputError(f"the grid has {n:g} points; expected at most {MAX_RUNS:,}.")
    _check_memory(n, len(shape))
    places = np.unravel_index(np.arange(n), shape)
    return {name: r.take(k) for (name, r), k in zip(lists.items(), places, strict=True)}


def _check_memory(runs: int, names: int) -> None:
    fewer = "take fewer runs, or several studies with seeds and folders of their own"
    check_memory(f"A table of {runs:,} points", BYTES_PER_NUMBER * runs * names, fewer)


def _unit_cube_points(design: str, runs: int, d: int, seed: int) -> Array:
    """Return points of the open unit cube, (runs, d)."""
    rng = generator(seed)
    if design == "random":
        return rng.uniform(np.finfo(float).tiny, 1.0, (runs, d))
    qmc = optional_import("scipy.stats.qmc", "study", f'points="{design}"')
    if design == "latin":
        return np.asarray(qmc.LatinHypercube(d, rng=rng).random(runs))
    if design == "sobol":
        return _sobol(qmc, d, runs, rng)
    if runs % (d + 2):
        near = max(1, round(runs / (d + 2))) * (d + 2)
        raise InputError(
            f'runs is {runs}; points="saltelli" takes {d + 2} runs for each point: {d} names and 2. Take {near}.'
        )
    both = _sobol(qmc, 2 * d, runs // (d + 2), rng)
    return saltelli(both[:, :d], both[:, d:])


def _sobol(qmc: Any, d: int, runs: int, rng: np.random.Generator) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about lengths that are not powers of two, which only affect balance
        u = np.asarray(qmc.Sobol(d, scramble=True, rng=rng).random(runs))
    return np.asarray(np.clip(u, 2.0**-53, 1.0 - 2.0**-53))


def saltelli(A: Array, B: Array) -> Array:
    """Return Saltelli's scheme of the samples `A` and `B`, (n, d) each: (n (d + 2), d).

    For each row it has a, b, and then a with each element of b in turn.
    """
    n, d = A.shape
    rows = np.repeat(A[:, None], d + 2, axis=1)
    rows[:, 1] = B
    for i in range(d):
        rows[:, i + 2, i] = B[:, i]
    return rows.reshape(n * (d + 2), d)


# -- tables


def _table(source: Any, runs: int | None) -> Points:
    where = "points" if isinstance(source, Mapping) else str(source)
    raw_columns = dict(source) if isinstance(source, Mapping) else read_table(Path(source))
    columns = {str(name): _column(where, str(name), x) for name, x in raw_columns.items()}
    if not columns:
        raise InputError(f"{where}: the table has no columns.")
    lengths = {name: len(x) for name, x in columns.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"{where}: columns are of different lengths: {text}; expected one value for each run.")
    n = next(iter(lengths.values()))
    if not n:
        raise InputError(f"{where}: the table has no rows.")
    if runs is not None and runs != n:
        raise InputError(f"runs is {runs}, but the table has {n} rows; leave runs out.")
    return Points(columns, "table", {})


def _column(where: str, name: str, values: Any) -> Array:
    x = np.asarray(values)
    if x.ndim != 1:
        raise InputError(f'{where}: column "{name}" has the shape {x.shape}; expected one value for each run.')
    if x.dtype.kind in "fiu":
        bad = np.flatnonzero(~np.isfinite(x))
        if len(bad):
            raise InputError(f'{where}: column "{name}", row {bad[0]} is {x[bad[0]]}; expected finite numbers.')
        return x.astype(float)
    if x.dtype.kind == "U":
        return x
    raise InputError(f'{where}: column "{name}" has neither numbers nor words.')


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
