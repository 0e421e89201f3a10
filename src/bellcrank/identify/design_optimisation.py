"""Design optimisation, `bc.minimize`: numbers such as a link's length or a spring that minimise a summary of runs.

Points are evaluated in batches: first a Sobol sequence over the ranges, then SLSQP of scipy from the best of them, with
gradients by differences of runs in the lanes of one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, generator
from bellcrank.errors import InputError, check_known
from bellcrank.identify.experiments import run_points, start_defaults, start_elements, with_free
from bellcrank.lazy_import import optional_import
from bellcrank.quoting import single_line
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import count, duration
from bellcrank.sim.system.element_forces import OverlapError
from bellcrank.studies.sampling_plans import Array, Range

MAX_TRIES = 10_000_000
DIFFERENCE_SHARE = 1e-5  # share of a range, step of differences


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of `minimize`: the numbers found and their summaries.

    Parameters
    ----------
    values : mapping of str to float
        Numbers found, by name.
    least : float
        Value of the minimised summary.
    before : float
        Its value at the plant's nominal numbers; NaN if bodies start inside each other there.
    summaries : mapping of str to float
        All summaries at the numbers found.
    runs : int
        Number of simulated runs.
    """

    values: Mapping[str, float]
    least: float
    before: float
    summaries: Mapping[str, float]
    runs: int

    def __str__(self) -> str:
        values_text = ", ".join(f"{single_line(n)} = {x:.6g}" for n, x in self.values.items())
        return f"{values_text}: {self.least:.6g}, from {self.before:.6g}, in {self.runs} runs"


@explain_argument_errors
def minimize(
    plant: Any,
    least: str,
    over: Mapping[str, Range],
    *,
    seconds: float,
    within: Mapping[str, tuple[float | None, float | None]] | None = None,
    tries: int = 32,
    seed: int = 0,
    integrator: str | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    **given: Any,
) -> Minimum:
    """Find numbers within ranges that minimise a summary of a run.

        bc.minimize(arm, "max(elbow.tau)", {"spring.stiffness": bc.uniform(100, 900)}, seconds=2.0)

    Parameters
    ----------
    plant : Mechanism or System
        Plant to simulate.
    least : str
        Summary as in `bc.simulate`, such as "max(elbow.tau)"; a leading minus, "-min(tip.z)", maximises it.
    over : mapping of str to Range
        `bc.uniform` ranges of free numbers, of any number that `mechanism.free` accepts, or of elements of the start.
    seconds : float
        Duration of a run, s.
    within : mapping of str to (float or None, float or None), optional
        (lowest, highest) of further summaries; None for no bound.
    tries : int, default 32
        Number of Sobol points before the search.
    seed : int, default 0
        Seed of the Sobol sequence.
    integrator : str, optional
        Integrator of the runs.
    step : float, optional
        Step size of the runs, s.
    tolerance : float, optional
        Tolerance of an integrator with adaptive step size.
    **given
        q0, v0, x0, inputs, input_step, parameters, target, threads as in `bc.simulate`.

    Returns
    -------
    Minimum
        Numbers found and their summaries.

    Raises
    ------
    InputError
        If an argument does not fit, or no run gives a finite summary.
    """
    if not over:
        raise InputError("over is empty; expected ranges by name.")
    for n, r in over.items():
        if not isinstance(r, Range) or r.kind != "uniform":
            raise InputError(f'over: "{n}" is {r!r}; expected bellcrank.uniform(low, high).')
    settings = {"step": step, "tolerance": tolerance}
    design = _Design(plant, least, over, within or {}, integrator, seconds, settings, given)
    return _search(design, count("tries", tries, MAX_TRIES), seed)


class _Design:
    """A summary of runs, times `sign`, as a function of numbers between `low` and `high`."""

    def __init__(
        self, plant: Any, least: str, over: Mapping[str, Range], within: Mapping[str, Any], integrator: str | None,
        seconds: float, settings: Mapping[str, Any], given: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.sign, self.summary_name = (-1.0, least[1:]) if least.startswith("-") else (1.0, least)
        self.names, self.within, self.run_options = tuple(over), within, dict(given)
        self.low, self.high = (np.array([getattr(r, k) for r in over.values()]) for k in ("a", "b"))
        self.system = with_free(plant, self.names)
        self.summary_names = list(dict.fromkeys([self.summary_name, *within]))
        self.seconds = duration("seconds", seconds)
        self.settings = {k: x for k, x in settings.items() if x is not None}
        self.sim = Simulator(self.system, integrator, summary=self.summary_names)
        if len(self.sim.saving.summary) != len(self.summary_names):
            raise InputError("a * in a summary matches several columns; expected one column each.")
        self.runs = 0

    def values(self, x: Array) -> dict[str, Array]:
        """Return summaries at points `x` (points, names); NaN where a run failed or is invalid."""
        try:
            return self._run_points(x)
        except InputError:
            if len(x) == 1:
                return {k: np.full(1, np.nan) for k in self.summary_names}
        halves = [self.values(part) for part in np.array_split(x, 2)]
        return {k: np.concatenate([h[k] for h in halves]) for k in self.summary_names}

    def _run_points(self, x: Array) -> dict[str, Array]:
        self.runs += len(x)
        run = run_points(self.sim, self.seconds, self.names, x, self.run_options, keep="final", **self.settings)
        is_finite = np.array([stop.reason != "not finite" for stop in run.stops])
        return {k: np.where(is_finite, np.asarray(run[k])[..., 0], np.nan) for k in self.summary_names}

    def bound_size(self, name: str) -> float:
        """Return a scale of the bounds of a summary."""
        return float(max(*(abs(bound or 0.0) for bound in self.within[name]), 1e-12))

    def violation(self, summaries: Mapping[str, Array]) -> Array:
        """Return the constraint violation, relative to the bounds; or infinity if it is not finite."""
        total = np.zeros(len(next(iter(summaries.values()))))
        for n, (low, high) in self.within.items():
            x, size = summaries[n], self.bound_size(n)
            total += np.maximum(0.0, (low - x) / size if low is not None else 0.0)
            total += np.maximum(0.0, (x - high) / size if high is not None else 0.0)
        return np.where(np.isfinite(total), total, np.inf)

    def nominal_summary(self) -> float:
        """Return the summary at the nominal numbers; NaN if bodies overlap in their start, which may be varied.

        Raises
        ------
        InputError
            If the plant or a start that is not varied is invalid.
        """
        try:
            return float(self._run_points(self.nominal[None])[self.summary_name][0])
        except OverlapError:
            if not set(self.names) & start_elements(self.system).keys():
                raise
            return float("nan")

    @property
    def nominal(self) -> Array:
        """Nominal values of the design numbers."""
        starts, values = start_elements(self.system), start_defaults(self.system)
        return np.array([values.get(n, 0.0) if n in starts else self.system.parameters[n] for n in self.names])


def _search(design: _Design, tries: int, seed: int) -> Minimum:
    sign, summary_name, low, high, within = design.sign, design.summary_name, design.low, design.high, design.within
    optimize, qmc = (optional_import(n, "study", "bellcrank.minimize") for n in ("scipy.optimize", "scipy.stats.qmc"))
    before = design.nominal_summary()
    for n in within:
        check_known("summary", n, design.summary_names, "within")
    points = low + (high - low) * qmc.Sobol(len(low), rng=generator(seed)).random_base2(int(np.ceil(np.log2(tries))))
    summaries = design.values(points)
    value = np.where(design.violation(summaries) <= 0, sign * summaries[summary_name], np.inf)
    if not np.isfinite(value).any():
        value = design.violation(summaries)
        if not np.isfinite(value).any():
            raise InputError(
                "no run within these ranges returned a finite summary; check one of them: bellcrank.simulate(...)."
            )
    begin = points[int(np.nanargmin(np.where(np.isfinite(value), value, np.inf)))]
    scale = max(float(np.nanmax(np.abs(summaries[summary_name]))), 1e-300)
    cache: dict[bytes, dict[str, tuple[float, Array]]] = {}

    def evaluate(z: Array) -> dict[str, tuple[float, Array]]:
        """Return summaries and their gradients at a point of the unit cube, from one batch."""
        key = z.tobytes()
        if key not in cache:
            # Central differences, one-sided at the faces of the cube.
            up, down = (np.minimum(DIFFERENCE_SHARE, room) for room in (1.0 - z, z))
            y = design.values(low + (high - low) * np.vstack([z[None], z + np.diag(up), z - np.diag(down)]))
            n, cache[key] = len(z), {}
            gap = up + down
            for k, v in y.items():
                cache[key][k] = float(v[0]), (v[1 : n + 1] - v[n + 1 :]) / gap
        return cache[key]

    constraints = []
    for n, (lo, hi) in within.items():
        size = design.bound_size(n)
        for bound, way in ((lo, 1.0), (hi, -1.0)):
            if bound is not None:
                constraints.append({
                    "type": "ineq",
                    "fun": lambda z, n=n, b=bound, w=way, s=size: w * (evaluate(z)[n][0] - b) / s,
                    "jac": lambda z, n=n, w=way, s=size: w * evaluate(z)[n][1] / s,
                })  # fmt: skip
    solution = optimize.minimize(
        lambda z: sign * evaluate(z)[summary_name][0] / scale, (begin - low) / (high - low),
        jac=lambda z: sign * evaluate(z)[summary_name][1] / scale, method="SLSQP", bounds=[(0.0, 1.0)] * len(low),
        constraints=constraints, options={"maxiter": 100, "ftol": 1e-10},
    )  # fmt: skip
    ends = np.vstack([np.clip(solution.x, 0.0, 1.0) * (high - low) + low, begin])
    end_summaries = design.values(ends)
    cost = np.where(design.violation(end_summaries) <= 1e-6, sign * end_summaries[summary_name], np.inf)
    best = int(np.argmin(cost)) if np.isfinite(cost).any() else 0
    best_summaries = {k: float(v[best]) for k, v in end_summaries.items()}
    found = dict(zip(design.names, ends[best].tolist(), strict=True))
    return Minimum(found, best_summaries[summary_name], before, best_summaries, design.runs)
