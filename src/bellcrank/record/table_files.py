"""Tables of numbers from CSV and Parquet files: points of studies, measurements, and histories of inputs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import ReadError, check_known
from bellcrank.record.formats import read_parquet_table

Array = np.ndarray[Any, Any]


def read_table(path: Path) -> dict[str, Any]:
    """Return the columns of the CSV or Parquet file `path` by name; a column that is not all numbers is text."""
    try:
        if path.suffix.lower() == ".parquet":
            table = read_parquet_table(path, "study")
            return {name: table.column(name).to_numpy() for name in table.column_names}
        if path.suffix.lower() != ".csv":
            raise ReadError(f"{path}: a table ends in .csv or .parquet.")
        with open(path, newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row and not row[0].startswith("#")]
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not rows:
        raise ReadError(f"{path} is empty; expected a line of names, and a line of values for each run.")
    for k, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise ReadError(
                f"{path}: line {k} has {len(row)} cells and the first {len(rows[0])}; expected equal numbers."
            )
    return {name.strip(): _cells([row[i] for row in rows[1:]]) for i, name in enumerate(rows[0])}


def _cells(cells: list[str]) -> Array:
    try:
        return np.array([float(x) for x in cells])
    except ValueError:
        return np.array([x.strip() for x in cells])


def checked_table(table: Mapping[str, Any], where: str, least_rows: int = 3) -> dict[str, Array]:
    """Return the columns of a table as finite numbers of one length with increasing times.

    Parameters
    ----------
    table
        Columns by name; the times are "t".
    where
        The table, for messages.
    least_rows
        Fewest rows that are allowed.
    """
    check_known("column", "t", table, where, ReadError, advice=' The time column is named "t".')
    columns: dict[str, Array] = {}
    for name, x in table.items():
        x = np.asanyarray(x)
        if x.dtype.kind not in "fiu":
            raise ReadError(f'{where}: column "{name}" has text; expected numbers.')
        if np.ma.is_masked(x):
            raise ReadError(f'{where}: column "{name}" has masked entries; expected numbers. Omit these rows.')
        if x.shape != np.asarray(table["t"]).shape:
            raise ReadError(f'{where}: column "{name}" has the length {len(x)}, and t {len(table["t"])}.')
        bad = np.flatnonzero(~np.isfinite(x.astype(float)))
        if len(bad):
            raise ReadError(f'{where}: column "{name}", row {bad[0]} is {x[bad[0]]}; expected finite numbers.')
        columns[name] = np.asarray(x, float)
    t = columns["t"]
    if len(t) < least_rows:
        raise ReadError(f"{where}: {len(t)} rows; expected at least {'three' if least_rows == 3 else least_rows}.")
    reversals = np.flatnonzero(np.diff(t) <= 0)
    if len(reversals):
        k = int(reversals[0])
        raise ReadError(f"{where}: the time runs backwards: t is {t[k]:g} in row {k} and {t[k + 1]:g} in row {k + 1}.")
    return columns
