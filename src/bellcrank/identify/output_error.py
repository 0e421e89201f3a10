"""bc.fit: numbers of a plant from records of it, through its runs, with standard errors and what the data cannot tell.

Output error: what a run says less what was measured, in units of the noise. The least squares are scipy's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.extras import extra
from bellcrank.identify.equation_error import equation_error
from bellcrank.identify.experiments import Experiment, experiments
from bellcrank.identify.least_squares import in_words
from bellcrank.identify.model_runs import Model, start_names, with_free
from bellcrank.sim import System
from bellcrank.sim.arguments import listed, many, positive
from bellcrank.sim.settings import Solver
from bellcrank.text import table

Array = np.ndarray[Any, Any]
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
UNTOLD = 1.0  # standard errors above this part of a number's size tell nothing of it
LEASH = 0.1  # of a number's size, in units of the noise: next to nothing where the data tell anything
TRIED = 16  # random points for each start, all in one batch
FAR = 1e6  # in units of the noise: what a run says that failed


@dataclass(frozen=True, eq=False)
class Fit:
    """Numbers found. errors: standard deviations, infinite for what the data do not tell, which stays as it was."""

    names: tuple[str, ...]
    values: Array
    errors: Array
    covariance: Array
    correlations: Array
    noise: Mapping[str, float]  # standard deviation of each observed column
    untold: tuple[str, ...]  # directions that the data do not tell, in words
    held: tuple[str, ...]  # numbers that were left as they were, because of that
    misfit: float  # root mean square of what is left, in units of the noise
    runs: int  # that the search took

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise InputError(f"the fit: {unknown('number', name, self.names)}")
        return float(self.values[self.names.index(name)])

    @property
    def parameters(self) -> dict[str, float]:
        """By name, as parameters= takes them."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __str__(self) -> str:
        rows = [
            (n, f"{x:.6g}", f"{e:.2g}", "not told" if n in self.held else "")
            for n, x, e in zip(self.names, self.values, self.errors)
        ]
        lines = [table(("number", "found", "error", ""), rows, right=(1, 2))]
        lines += [f"the data do not tell {words}" for words in self.untold]
        C = np.abs(np.triu(self.correlations, 1))
        lines += [
            f"{self.names[i]} and {self.names[j]} go together: correlation {self.correlations[i, j]:.3f}"
            for i, j in zip(*np.where(C > 0.95))
        ]
        return "\n".join(lines)


def fit(
    plant: Any,
    data: Any,
    free: Sequence[str],
    *,
    error: str = "output",
    observe: Sequence[str] | None = None,
    begin: Mapping[str, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
    noise: Mapping[str, float] | None = None,
    loss: str = "linear",
    starts: int = 1,
    seed: int = 0,
    q0: Mapping[str, float] | None = None,
    v0: Mapping[str, float] | None = None,
    x0: Mapping[str, float] | None = None,
    parameters: Mapping[str, float] | None = None,
    integrator: str | None = None,
    step: float = 1e-3,
    target: str | None = None,
    threads: int | None = None,
) -> Fit:
    """Finds numbers of a plant from what was measured of it.

        bc.fit(plant, "measured.csv", free=["bob.mass", "hinge.damping", "hinge.q"], q0={"hinge": 0.5})

    data: a Record, a CSV, Parquet or MCAP file, a mapping of columns with "t", or a list of these, one for each
    experiment. Columns with names of the plant's are observed (or those of observe=), those with names of inputs are
    fed. free: free numbers, any that mechanism.free knows, or elements of the start ("hinge.q"). begin: where the
    search begins; the plant's own numbers where nothing is said. bounds: (lowest, highest) by name. priors: (value,
    standard deviation) by name. noise: of columns, where it is known; else it is taken from what is left. loss: linear,
    or robust against outliers: "soft_l1", "huber", "cauchy", "arctan". starts: searches from as many points within the
    bounds, the best of many that are tried in one batch.
    error="equation" compares rates instead of runs (all states must be measured): there is no start to be found, but
    noise of the measured states biases it.
    """
    names = tuple(listed("free", free, "names"))
    s = with_free(plant, names)
    if error not in ("output", "equation"):
        raise InputError(f"error: {unknown('kind', error, ('output', 'equation'))}")
    if loss not in LOSSES:
        raise InputError(f"loss: {unknown('loss', loss, LOSSES)}")
    if not names or len(set(names)) < len(names):
        raise InputError(f"free is {list(names)}; expected names of numbers, each once.")
    measured = experiments(s, data, observe)
    given = {"q0": q0, "v0": v0, "x0": x0, "parameters": parameters}
    nominal = _nominal(s, names, given, begin)
    problem = _Problem(names, nominal, bounds, priors, loss, noise)
    if error == "equation":
        return problem.found(equation_error(s, names, measured, parameters), 1, seed)
    columns = tuple(measured[0].seen)
    for e in measured:
        if tuple(e.seen) != columns:
            raise InputError(f"{e.where} observes {', '.join(e.seen)}, and the first {', '.join(columns)}.")
    where = {k: x for k, x in {"target": target, "threads": threads}.items() if x is not None}
    model = Model(s, names, positive("step", step), integrator or Solver().integrator, given, columns, where)
    return problem.found(_Outputs(model, measured), many("starts", starts), seed)


@dataclass(eq=False)
class _Outputs:
    """Experiments as residuals by column."""

    model: Model
    measured: list[Experiment]
    runs: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.columns

    def off(self, x: Array) -> tuple[Array, Array]:
        """(columns, times of all experiments), and its slopes (columns, times, free)."""
        try:
            parts = [self.model.slopes(x, e) for e in self.measured]
        except InputError:
            if not self.runs:  # where the search begins, everything must be as it can be
                raise
            parts = [self._nowhere(e) for e in self.measured]
        self.runs += len(parts)
        seen = [np.stack(list(e.seen.values())) for e in self.measured]
        r = np.concatenate([y - z for (y, _), z in zip(parts, seen, strict=True)], axis=1)
        return r, np.concatenate([J for _, J in parts], axis=1)

    def _nowhere(self, e: Experiment) -> tuple[Array, Array]:
        """Of values that nothing can have, as a search may try them."""
        shape = (len(self.columns), len(e.t))
        return np.full(shape, np.nan), np.zeros((*shape, len(self.model.free)))

    def sizes(self) -> Array:
        return np.array([np.concatenate([e.seen[c] for e in self.measured]).std() for c in self.columns])

    def costs(self, x: Array, noise: Array) -> Array:
        total = np.zeros(len(x))
        for e in self.measured:
            z = np.stack(list(e.seen.values()))
            r = (self.model.seen(x, e) - z) / noise[:, None]
            total += np.where(np.isfinite(r), r * r, FAR).sum(axis=(1, 2))
        self.runs += len(x) * len(self.measured)
        return total


class _Problem:
    """Numbers with their sizes, bounds and priors."""

    def __init__(self, names: tuple[str, ...], nominal: Array, bounds: Any, priors: Any, loss: str, noise: Any) -> None:
        self.names, self.nominal, self.loss, self.noise = names, nominal, loss, dict(noise or {})
        for what, table_ in (("bounds", bounds or {}), ("priors", priors or {})):
            for n, pair in table_.items():
                if n not in names:
                    raise InputError(f"{what}: {unknown('free number', n, names)}")
                if len(pair) != 2 or (not np.isfinite(pair[1]) and what == "priors"):
                    raise InputError(f'{what}: "{n}" is {pair!r}; expected a pair of numbers.')
        pairs = [(bounds or {}).get(n, (-np.inf, np.inf)) for n in names]
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
        self.priors = {names.index(n): pair for n, pair in (priors or {}).items()}
        if any(not float(p[1]) > 0 for p in self.priors.values()):
            raise InputError("priors: a standard deviation is to be above zero.")

    def found(self, of: Any, starts: int, seed: int) -> Fit:
        columns = of.columns
        noise = np.array([self.noise.get(c, np.nan) for c in columns])
        known = np.isfinite(noise)
        scale = np.maximum(of.sizes(), 1e-12)
        sigma = np.where(known, noise, 0.05 * scale)
        active = np.ones(len(self.names), bool)
        x = self._first(of, sigma, starts, seed)
        for again in range(3):  # with a guess of the noise, with what is left, and without what is not told
            x = self._searched(of, x, sigma, active, 0.0 if again else LEASH)
            r, J = of.off(x)
            left = np.sqrt((r**2).mean(axis=1) * r.size / max(1, r.size - active.sum()))
            if self.loss != "linear":  # outliers are not the noise
                left = 1.4826 * np.median(np.abs(r - np.median(r, axis=1)[:, None]), axis=1)
            sigma = np.where(known, noise, np.maximum(left, 1e-9 * scale))
            words, held = self._told(J, sigma)
            if (held == ~active).all() and known.all():
                break
            active = ~held
            x = np.where(held, self.nominal, x)
        return self._result(of, x, sigma, active, words)

    def _searched(self, of: Any, x: Array, sigma: Array, active: Array, leash: float) -> Array:
        """scipy's least squares over the numbers that are told; a leash holds what may turn out not to be."""
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
                bad = ~np.isfinite(r)
                r = np.where(bad, FAR * sigma[:, None], r) / sigma[:, None]
                J = np.where(np.isfinite(J), J, 0.0) / sigma[:, None, None] * self.size
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
        return full(done.x)

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
        """Untold directions in words, and of each of them the number that is held."""
        A = (np.where(np.isfinite(J), J, 0.0) / sigma[:, None, None] * self.size).reshape(-1, len(self.names))
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
        rng = np.random.default_rng(seed)
        points = rng.uniform(self.low, self.high, (starts * TRIED, len(self.names)))
        points = np.vstack([self.nominal[None], points])
        order = np.argsort(of.costs(points, sigma))[:starts]
        all_ = np.ones(len(self.names), bool)
        ends = np.array([self._searched(of, points[k], sigma, all_, LEASH) for k in order])
        return np.asarray(ends[int(np.argmin(of.costs(ends, sigma)))])

    def _result(self, of: Any, x: Array, sigma: Array, active: Array, words: tuple[str, ...]) -> Fit:
        r, J = of.off(x)
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


def _nominal(s: System, names: Sequence[str], given: Mapping[str, Any], begin: Mapping[str, float] | None) -> Array:
    """Where the search begins."""
    m, starts = s.mechanism, start_names(s)
    for n in begin or {}:
        if n not in names:
            raise InputError(f"begin: {unknown('free number', n, names)}")
    usual = {f"{n}.q": x for n, x in zip(m.columns[0], m.neutral())} | {z.name: z.initial for z in s.states}
    found = []
    for n in names:
        if n in starts:
            vector, element = starts[n]
            value = (given[vector] or {}).get(element, usual.get(n, 0.0))
        else:
            value = (given["parameters"] or {}).get(n, s.parameters[n])
        found.append(float((begin or {}).get(n, value)))
    if not np.isfinite(found).all():
        raise InputError("begin: expected finite numbers.")
    return np.array(found)
