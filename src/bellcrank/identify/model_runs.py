"""Model runs of experiments, with their derivatives by the numbers to identify.

Trees use forward sensitivities along the run. Closed loops and sampled controllers have none; differences of runs
replace them, all in the lanes of one batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.identify.experiments import Array, Experiment
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.system.systems import System, system

MAX_STEPS = 1e9  # of one run: a quarter of an hour at a microsecond per step
DIFFERENCE_SHARE = 1e-6  # share of a number's size, step of differences


def with_free(plant: Any, free: Sequence[str]) -> System:
    """Return the system of `plant` with the numbers `free` made free parameters, unless they belong to the start."""
    s = system(plant)
    starts = start_elements(s)
    missing = [n for n in free if n not in s.parameters and n not in starts]
    try:
        return replace(s, mechanism=s.mechanism.free(*missing)) if missing else s
    except InputError as error:
        raise InputError(f"free: {unknown('number', missing[0], [*s.parameters, *starts])} ({error})") from None


def start_elements(s: System) -> dict[str, tuple[str, str]]:
    """Return, by column name, the start vector of system `s` and the name of the element in it."""
    q, v = s.mechanism.columns
    elements = {f"{n}.q": ("q0", n) for n in q} | {f"{n}.v": ("v0", n) for n in v}
    return elements | {z.name: ("x0", z.name) for z in s.states}


def start_defaults(s: System) -> dict[str, float]:
    """Return the values of the elements of the start of system `s`, where they are not zero, by column name."""
    positions = zip(s.mechanism.columns[0], s.mechanism.neutral(), strict=True)
    return {f"{n}.q": x for n, x in positions} | {z.name: z.initial for z in s.states}


def run_points(
    sim: Simulator, seconds: float, names: Sequence[str], x: Array, given: Mapping[str, Any], **settings: Any
) -> Record:
    """Run a plant at points of some numbers, in one batch without warnings.

    Parameters
    ----------
    sim
        Simulator of the plant.
    seconds
        Duration, s.
    names
        Names of the numbers: parameters, or elements of the start.
    x
        Points, (points, names).
    given
        Starts, parameters and inputs of all runs.
    settings
        Further arguments of Simulator.run.
    """
    options, starts = dict(given), start_elements(sim.system)
    for k, name in enumerate(names):
        vector, element = starts.get(name, ("parameters", name))
        options[vector] = {**(options.get(vector) or {}), element: x[:, k]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sim.run(seconds, batch=len(x), progress=False, **options, **settings)


def _pad_to_length(column: Array, e: Experiment) -> Array:
    """Return a column (runs, times), padded with NaN for times that no run reached."""
    missing = len(e.t) - column.shape[1]
    return np.pad(column, ((0, 0), (0, missing)), constant_values=np.nan) if missing else column


@dataclass(frozen=True, eq=False)
class PlantModel:
    """Plant with numbers to identify, run as the experiments were."""

    system: System
    free: tuple[str, ...]
    step: float
    integrator: str | None
    fixed_values: Mapping[str, Any]  # q0, v0, x0 and parameters of all experiments
    columns: tuple[str, ...]
    run_options: Mapping[str, Any]  # target, threads

    @property
    def uses_differences(self) -> bool:
        """True if derivatives are differences of runs."""
        return bool(self.system.mechanism.loops or self.system.sampled)

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self.system, self.integrator)

    @cached_property
    def _sensitivity_simulator(self) -> Simulator:
        return Simulator(self.system, self.integrator, sensitivities=self.free)

    def columns_at(self, x: Array, e: Experiment) -> Array:
        """Return columns (points, columns, times) of experiment `e` at `x` (points, free); NaN where a run failed."""
        run = self._run(self._simulator, np.atleast_2d(x), e)
        return np.stack([_pad_to_length(run[n], e) for n in self.columns], axis=1)

    def column_slopes(self, x: Array, e: Experiment) -> tuple[Array, Array]:
        """Return columns (columns, times) and slopes (columns, times, free) of experiment `e` at values `x`."""
        if self.uses_differences:
            h = DIFFERENCE_SHARE * np.maximum(np.abs(x), 1e-3)
            columns = self.columns_at(np.vstack([x[None], x + np.diag(h), x - np.diag(h)]), e)
            n = len(x)
            J = (columns[1 : n + 1] - columns[n + 1 :]) / (2.0 * h[:, None, None])
            return columns[0], np.moveaxis(J, 0, -1)
        run = self._run(self._sensitivity_simulator, x[None], e)
        y = np.stack([_pad_to_length(run[n], e)[0] for n in self.columns])
        J = np.stack([[_pad_to_length(run[f"d({n})/d({k})"], e)[0] for k in self.free] for n in self.columns])
        return y, np.moveaxis(J, 1, -1)

    def _run(self, sim: Simulator, x: Array, e: Experiment) -> Any:
        inputs = {n: np.broadcast_to(u, (len(x), len(u))) for n, u in e.inputs.items()}
        given = {**self.fixed_values, "inputs": inputs or None, "input_step": e.gap if inputs else None}
        options = {"step": self._step(e), "every": e.gap, **self.run_options}
        return run_points(sim, float(e.t[-1]), self.free, x, given, **options)

    def _step(self, e: Experiment) -> float | None:
        if self._simulator.integrator.adaptive:
            return None
        return e.gap / max(1, round(e.gap / self.step))
