"""Measured experiments: columns over equal time steps, from records, files or mappings, checked before any run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, unknown
from bellcrank.identify.measurement import checked_table
from bellcrank.identify.regressors import MAX_MEASURED
from bellcrank.record import Record, load_record
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.systems import System
from bellcrank.studies.sampling_plans import read_table

Array = np.ndarray[Any, Any]
MIN_STEP_SECONDS = 1e-15  # s between samples
COLUMN_HEAD = re.compile(r"(.*?)\s*\[([^\]]*)\]")  # "boom.p [Pa]"


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
        if n not in table:
            raise InputError(f"{where}: {unknown('column', n, table)}")
        if n not in plant_units:
            raise InputError(f"observe: {unknown('column', n, plant_units)}")
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
