"""Output-error identification, `bc.fit`: numbers of a plant from records of it, with standard errors.

The residuals are model outputs less measured ones, in units of the noise; the least squares are scipy's. Numbers that
the data do not identify are reported. Residuals of the equations are measured rates less those of the plant in the
measured state; they need no runs and no estimate of the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, check_known
from bellcrank.identify.experiments import (
    Array,
    Experiment,
    PlantModel,
    experiments,
    start_defaults,
    start_elements,
    time_derivative,
    with_free,
)
from bellcrank.identify.parameter_search import FAILED_RESIDUAL, Fit, FitProblem
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import MAX_EXPERIMENT_STEPS, as_tuple, check_work, count, duration, real_number
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.element_forces import OverlapError
from bellcrank.sim.system.systems import System

MAX_STARTS = 10_000
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")


@explain_argument_errors
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
    """Find numbers of a plant from measurements of it.

        bc.fit(plant, "measured.csv", free=["bob.mass", "hinge.damping", "hinge.q"], q0={"hinge": 0.5})

    Columns with names of the plant's columns are observed, columns with names of inputs are fed to it.

    Parameters
    ----------
    plant : Mechanism or System
        Plant to fit.
    data : Record, str, Path, mapping or sequence of these
        A record, a CSV, Parquet, MCAP or NPZ file, a mapping of columns with "t", or a list, one for each experiment.
    free : sequence of str
        Numbers to find: free numbers, any number that `mechanism.free` accepts, or elements of the start ("hinge.q").
    error : str, default "output"
        "output" compares runs. "equation" compares rates and needs measurements of all states: no start has to be
        found, but noise of the measured states causes a bias.
    observe : sequence of str, optional
        Columns to observe; all that the plant has by default.
    begin : mapping of str to float, optional
        Starting point of the search. Default: the plant's own numbers, and the first measured value of an element of
        the start that is observed in all experiments.
    bounds : mapping of str to (float, float), optional
        (lowest, highest) by name.
    priors : mapping of str to (float, float), optional
        (value, standard deviation) by name.
    noise : mapping of str to float, optional
        Known standard deviations of columns; the others are estimated from the residuals.
    loss : str, default "linear"
        "linear", or robust against outliers: "soft_l1", "huber", "cauchy", "arctan".
    starts : int, default 1
        Number of searches from points within the bounds, the best of many that are evaluated in one batch.
    seed : int, default 0
        Seed of these points.
    q0, v0, x0 : mapping of str to float, optional
        Start of the runs.
    parameters : mapping of str to float, optional
        Values of further free parameters.
    integrator : str, optional
        Integrator of the runs.
    step : float, default 1e-3
        Largest step size, s.
    target : str, optional
        Target of the runs, as in `bc.simulate`.
    threads : int, optional
        Number of threads.

    Returns
    -------
    Fit
        Numbers found, standard errors, and what the data do not identify.

    Raises
    ------
    InputError
        If an argument or the data do not fit.
    """
    names = tuple(as_tuple("free", free, "names"))
    s = with_free(plant, names)
    check_known("kind", error, ("output", "equation"), "error")
    check_known("loss", loss, LOSSES, "loss")
    if not names or len(set(names)) < len(names):
        raise InputError(f"free is {list(names)}; expected names of numbers, each once.")
    measured = experiments(s, data, observe)
    start_values = {"q0": q0, "v0": v0, "x0": x0, "parameters": parameters}
    nominal = _starting_point(s, names, start_values, begin, measured)
    problem = FitProblem(names, nominal, bounds, priors, loss, noise)
    duration("step", step)
    count("starts", starts, MAX_STARTS)
    for e in measured:
        check_work(f"{e.where}: the time", float(e.t[-1]), min(step, e.gap), MAX_EXPERIMENT_STEPS)
    if error == "equation":
        runs = {"q0": q0, "v0": v0, "x0": x0, "integrator": integrator, "target": target, "threads": threads}
        for n in [n for n, x in (runs | {"starts": None if starts == 1 else starts}).items() if x is not None]:
            raise InputError(f'{n}= is for runs, and error="equation" has none; omit it.')
        return problem.solve(_equation_error(s, names, measured, parameters), 1, seed)
    columns = tuple(measured[0].seen)
    for e in measured:
        if tuple(e.seen) != columns:
            raise InputError(f"{e.where} observes {', '.join(e.seen)}, but the first observes {', '.join(columns)}.")
    run_options = {k: x for k, x in {"target": target, "threads": threads}.items() if x is not None}
    model = PlantModel(s, names, step, integrator or Solver().integrator, start_values, columns, run_options)
    return problem.solve(_OutputResiduals(model, measured), starts, seed)


@dataclass(eq=False)
class _OutputResiduals:
    """Residuals of runs, by column."""

    model: PlantModel
    measured: list[Experiment]
    runs: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.columns

    def off(self, x: Array) -> tuple[Array, Array]:
        """Return residuals (columns, times of all experiments) at `x` and their slopes (columns, times, free)."""
        try:
            parts = [self.model.column_slopes(x, e) for e in self.measured]
        except OverlapError as error:
            if not self.runs:
                raise InputError(
                    f"begin: {error} The search begins there: give begin= for numbers of the start."
                ) from None
            parts = [self._nowhere(e) for e in self.measured]
        except InputError:
            if not self.runs:  # the starting point must be valid
                raise
            parts = [self._nowhere(e) for e in self.measured]
        self.runs += len(parts)
        seen = [np.stack(list(e.seen.values())) for e in self.measured]
        r = np.concatenate([y - z for (y, _), z in zip(parts, seen, strict=True)], axis=1)
        return r, np.concatenate([J for _, J in parts], axis=1)

    def _nowhere(self, e: Experiment) -> tuple[Array, Array]:
        """Return NaN residuals, for invalid values that a search may try."""
        shape = (len(self.columns), len(e.t))
        return np.full(shape, np.nan), np.zeros((*shape, len(self.model.free)))

    def sizes(self) -> Array:
        return np.array([np.concatenate([e.seen[c] for e in self.measured]).std() for c in self.columns])

    def costs(self, x: Array, noise: Array) -> Array:
        total = np.zeros(len(x))
        for e in self.measured:
            z = np.stack(list(e.seen.values()))
            r = (self.model.columns_at(x, e) - z) / noise[:, None]
            total += np.where(np.isfinite(r), r * r, FAILED_RESIDUAL).sum(axis=(1, 2))
        self.runs += len(x) * len(self.measured)
        return total


def _starting_point(
    s: System, names: Sequence[str], start_values: Mapping[str, Any], begin: Mapping[str, float] | None,
    measured: Sequence[Experiment],
) -> Array:  # fmt: skip
    """Return the starting point of the search."""
    starts = start_elements(s)
    for n in begin or {}:
        check_known("free number", n, names, "begin")
    default_values = start_defaults(s)
    for n in set(names) & starts.keys():
        first_values = [float(e.seen[n][0]) for e in measured if n in e.seen and e.t[0] == 0.0]
        if len(first_values) == len(measured) and np.isfinite(first_values).all():
            default_values[n] = float(np.mean(first_values))
    values = []
    for n in names:
        vector, element = starts.get(n, ("parameters", n))
        value = default_values.get(n, 0.0) if n in starts else s.parameters[n]
        value = (start_values[vector] or {}).get(element, value)
        values.append(real_number(f'begin of "{n}"', (begin or {}).get(n, value)))
    return np.array(values)


# -- equation error


def _equation_error(
    s: System, names: Sequence[str], measured: Sequence[Experiment], parameters: Mapping[str, float] | None
) -> _RateResiduals:
    """Return the equation-error residuals, after a check that the data have all states.

    Parameters
    ----------
    s
        System.
    names
        Free numbers.
    measured
        Experiments.
    parameters
        Values of further parameters.
    """
    m = s.mechanism
    if m.loops or m.nq != m.nv or s.sampled:
        raise InputError(
            'error="equation" is for trees of one-coordinate joints without sampled controllers; use error="output".'
        )
    for n in names:
        if n not in s.parameters:
            raise InputError(f'free: "{n}" belongs to the start, on which rates do not depend; use error="output".')
    for e in measured:
        for n in (*(f"{j}.q" for j in m.columns[0]), *(z.name for z in s.states)):
            if n not in e.seen:
                raise InputError(f'{e.where}: error="equation" needs all states, and there is no column "{n}".')
    return _RateResiduals(s, tuple(names), list(measured), dict(parameters or {}))


@dataclass(eq=False)
class _RateResiduals:
    """Residuals of accelerations and of the rates of further states, by column."""

    system: System
    names: tuple[str, ...]
    measured: list[Experiment]
    parameters: dict[str, float]
    runs: int = 0
    was_evaluated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the residuals."""
        s = self.system
        return (*(f"{n}.a" for n in s.mechanism.columns[1]), *(f"d({z.name})/dt" for z in s.states))

    @cached_property
    def _graphs(self) -> tuple[Any, Any]:
        rate = Simulator(self.system).program().ports.rate
        return rate, rate.jacobian(next(iter(rate.outputs)), "p")

    @cached_property
    def _states(self) -> tuple[Array, Array, Array, Array]:
        """Times, states, inputs and state rates of all samples."""
        s, m = self.system, self.system.mechanism
        parts = []
        for e in self.measured:
            q = np.stack([e.seen[f"{n}.q"] for n in m.columns[0]], axis=1)
            has = all(f"{n}.v" in e.seen for n in m.columns[1])
            v = np.stack([e.seen[f"{n}.v"] for n in m.columns[1]], axis=1) if has else time_derivative(q, e.t)
            x = np.stack([e.seen[z.name] for z in s.states], axis=1) if s.states else np.zeros((len(q), 0))
            u = np.zeros((len(q), len(s.inputs)))
            for k, n in enumerate(s.inputs):
                u[:, k] = e.inputs.get(n, s.defaults.get(n, 0.0))
            u[1:] = 0.5 * (u[1:] + u[:-1])  # an input holds from its sample on; central differences cover both sides
            dy = np.concatenate([time_derivative(v, e.t), time_derivative(x, e.t)], axis=1)
            inner = slice(2, -2)  # differences are less accurate at the ends
            parts.append([a[inner] for a in (e.t, np.concatenate([q, v, x], axis=1), u, dy)])
        t, y, u, dy = (np.concatenate(p) for p in zip(*parts, strict=True))
        return t, y, u, dy

    def off(self, x: Array) -> tuple[Array, Array]:
        """Return residuals (columns, samples) at values `x`, and their slopes (columns, samples, free)."""
        rate, slope = self._graphs
        t, y, u, dy = self._states
        try:
            p = self.system.parameters.vector({**self.parameters, **dict(zip(self.names, x.tolist(), strict=True))})
        except InputError:
            if not self.was_evaluated:  # the starting point must be valid
                raise
            return np.full(dy.T.shape, np.nan), np.zeros((*dy.T.shape, len(self.names)))
        self.was_evaluated = True
        arguments = {"t": t, "y": y, "u": u, "p": np.broadcast_to(p, (len(t), p.size))}
        rate_arguments = {k: arguments[k] for k in rate.inputs}
        nv = self.system.mechanism.nv
        model_rates = next(iter(rate.evaluate(**rate_arguments).values()))[:, nv:]
        places = [list(self.system.parameters).index(n) for n in self.names]
        J = next(iter(slope.evaluate(**{k: arguments[k] for k in slope.inputs}).values()))[:, nv:, places]
        return (model_rates - dy).T, np.moveaxis(np.asarray(J), 0, 1)

    def sizes(self) -> Array:
        """Return the standard deviation of each measured rate, as a scale."""
        return np.asarray(self._states[3].std(axis=0))

    def costs(self, x: Array, noise: Array) -> Array:
        """Return the sum of squares in units of `noise` at each of the points `x` (points, free)."""
        return np.array([float(((self.off(one)[0] / noise[:, None]) ** 2).sum()) for one in x])
