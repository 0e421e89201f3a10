"""Measurements, checked before any run, and runs of a plant as they were measured, with derivatives.

Experiments for `bc.fit` are columns over equal time steps, from records, files or mappings. Files of motions, for
regressors, have the columns t, JOINT.q, JOINT.v, JOINT.a and JOINT.tau, in any order.

Trees use forward sensitivities along a run. Closed loops and sampled controllers have none; differences of runs replace
them, all in the lanes of one batch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, check_known, unknown
from bellcrank.identify.closed_loops import Branch
from bellcrank.identify.regressors import MAX_MEASURED
from bellcrank.model import Mechanism
from bellcrank.record import Record, load_record
from bellcrank.record.table_files import checked_table, read_table
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.systems import System, system

Array = np.ndarray[Any, Any]
MIN_STEP_SECONDS = 1e-15  # s between samples
COLUMN_HEAD = re.compile(r"(.*?)\s*\[([^\]]*)\]")  # "boom.p [Pa]"
DIFFERENCE_SHARE = 1e-6  # share of a number's size, step of differences


@dataclass(frozen=True, eq=False)
class Experiment:
    """One measured run."""

    where: str
    t: Array  # from 0, in equal steps
    seen: Mapping[str, Array]  # columns that the model has to explain
    inputs: Mapping[str, Array]

    @property
    def gap(self) -> float:
        """Time step, s."""
        return float(self.t[1] - self.t[0])


def experiments(s: System, data: Any, observe: Sequence[str] | None) -> list[Experiment]:
    """Return the experiments of measured data; columns of the plant are observed, columns of inputs are fed to it.

    Parameters
    ----------
    s
        System.
    data
        A Record, a file (.csv, .parquet, .mcap, .npz), a mapping of columns with "t", or a list of these.
    observe
        Columns to observe; all that the plant has by default.
    """
    data_list = data if isinstance(data, (list, tuple)) else [data]
    if not data_list:
        raise InputError("data is empty; expected a record, a file or a mapping of columns.")
    return [
        _experiment(s, one, f"data[{k}]" if len(data_list) > 1 else "data", observe) for k, one in enumerate(data_list)
    ]


def _experiment(s: System, data: Any, where: str, observe: Sequence[str] | None) -> Experiment:
    table, column_units = _columns(data, where)
    table = checked_table(table, where)
    plant_units = observable_units(s)
    for name, unit in column_units.items():
        if unit and plant_units.get(name) and unit != plant_units[name]:
            raise InputError(f'{where}: column "{name}" is in {unit}, but the plant has it in {plant_units[name]}.')
    names = [n for n in table if n in plant_units] if observe is None else list(observe)
    for n in names:
        check_known("column", n, table, where)
        check_known("column", n, plant_units, "observe")
    if not names:
        raise InputError(f"{where}: none of the columns {', '.join(table)} is a column of the plant.")
    for name in s.inputs:
        if name not in table and name not in s.defaults:
            raise InputError(f'{where}: there is no column for the input "{name}".')
    t = _even_times(table, where)
    input_columns = {n: table[n] for n in s.inputs if n in table}
    return Experiment(where, t, {n: table[n] for n in names}, input_columns)


def _even_times(table: Mapping[str, Array], where: str) -> Array:
    """Return the times from 0 in equal steps, after a check of the magnitude of all numbers."""
    for n in table:
        bad = np.flatnonzero(~(np.abs(table[n]) < MAX_MEASURED))
        if len(bad):
            value = table[n][bad[0]]
            raise InputError(
                f'{where}: column "{n}", row {bad[0]} is {value:g}; expected numbers below {MAX_MEASURED:g}.'
            )
    t = table["t"] - table["t"][0]
    gap = (t[-1] - t[0]) / (len(t) - 1)
    if not gap > MIN_STEP_SECONDS:
        raise InputError(f"{where}: the steps of the time are {gap:g} s; expected more than {MIN_STEP_SECONDS:g} s.")
    worst = np.abs(t - gap * np.arange(len(t))).max()
    if worst > 1e-3 * gap:
        raise InputError(f"{where}: the steps of the time are not equal (off by {worst:g} s); resample it first.")
    return np.asarray(gap * np.arange(len(t)))


def _columns(data: Any, where: str) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return the columns, and their units as far as they are given."""
    if isinstance(data, Record):
        if data.batch:
            raise InputError(f"{where} is a record of {data.runs} runs; expected one. Give a list of records.")
        column_units = {n: data.column(n).unit for n in data.columns}
        return {n.removeprefix("input."): data[n] for n in data.columns}, column_units
    if isinstance(data, Mapping):
        return _split_heads(data)
    if isinstance(data, (str, Path)):
        path = Path(data)
        if path.suffix.lower() in (".mcap", ".npz"):
            return _columns(load_record(path), where)
        try:
            return _split_heads(read_table(path))
        except ReadError as error:
            raise InputError(str(error)) from None
    raise InputError(f"{where} is {data!r}; expected a Record, a file, or a mapping of columns.")


def _split_heads(table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    columns, column_units = {}, {}
    for head, x in table.items():
        shape = COLUMN_HEAD.fullmatch(str(head))
        name = shape[1] if shape else str(head)
        columns[name] = x
        column_units[name] = shape[2].strip() if shape else ""
    return columns, column_units


# -- motions and forces


def read_measurement(
    m: Mechanism, path: Path, actuated: Sequence[str] = (), guess: Any = None
) -> tuple[Array, Array, Array, Array]:
    """Return q, v, a and tau (samples, n each) from a file.

    Velocities and accelerations that are missing are computed by differences. With closed loops the driven joints are
    enough: the others follow, on the branch that is assembled from a guess.

    Parameters
    ----------
    m
        Mechanism.
    path
        File of the measurement.
    actuated
        Driven joints; all joints by default.
    guess
        Guess of a configuration on the branch.
    """
    table = checked_table(read_table(path), str(path))
    driven = tuple(actuated) or m.columns[1]
    if m.loops and not {f"{n}.q" for n in m.columns[0]} <= set(table):
        q, v, a, _ = Branch(m, driven, guess).motion(*_motion(table, driven, str(path)))
    elif m.nq != m.nv:
        raise InputError(f'"{m.name}" has quaternions; measurement files are for one-coordinate joints.')
    else:
        q, v, a = _motion(table, m.columns[1], str(path))
    return q, v, a, _stack_columns(table, driven, "tau", str(path))


def _motion(table: Mapping[str, Array], names: Sequence[str], where: str) -> tuple[Array, Array, Array]:
    t, q = table["t"], _stack_columns(table, names, "q", where)
    rates = [q]
    for kind in "va":
        is_measured = f"{names[0]}.{kind}" in table
        rates.append(_stack_columns(table, names, kind, where) if is_measured else time_derivative(rates[-1], t))
    return q, rates[1], rates[2]


def time_derivative(x: Array, t: Array) -> Array:
    """Return the derivative of `x` (samples, n) at the times `t` by differences."""
    return np.asarray(np.gradient(x, t, axis=0, edge_order=2)) if x.shape[1] else x


def _stack_columns(table: Mapping[str, Array], names: Sequence[str], kind: str, where: str) -> Array:
    for n in names:
        check_known("column", f"{n}.{kind}", table, where, ReadError)
    return np.stack([table[f"{n}.{kind}"] for n in names], axis=1)


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
