"""Histories of inputs: values at given times, from a file or a mapping, as the table of lines that a run reads.

A line of the table holds for the same time as every other line. A history with steps at its own times, "hold", is such
a table if its times are multiples of that time. A piecewise linear one is replaced by its values in the middle of each
line, so that each line has the mean of the history over its time: the integral of an input is exact at the ends of the
lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.buffers import check_memory
from bellcrank.errors import InputError, brief, check_known
from bellcrank.record.table_files import checked_table, read_table

Array = np.ndarray[Any, Any]
KINDS = ("hold", "linear")
TIME_ROUNDING = 1e-6  # part of a line: times may be off by this much from a multiple of it


@dataclass(frozen=True, eq=False)
class History:
    """Values of inputs at increasing times from 0; the last ones hold for the rest of a run.

    Parameters
    ----------
    where : str
        Origin, for messages.
    t : ndarray, shape (rows,)
        Times, s.
    columns : mapping of str to ndarray
        Values by the name of the input, (rows,) each.
    kind : {"hold", "linear"}
        A value holds until the next time, or values are joined by straight lines.
    """

    where: str
    t: Array
    columns: Mapping[str, Array]
    kind: str

    def lines(self, interval: float | None) -> tuple[dict[str, Array], float]:
        """Return the values in lines of equal length, and that length.

        Parameters
        ----------
        interval : float, optional
            Length of a line, s; by default that between two rows of a "hold" whose rows have equal distances.

        Returns
        -------
        tuple of dict of str to ndarray, and float
            Values by name, (lines,) each, and the length of a line, s.

        Raises
        ------
        InputError
            If the times are not multiples of the length, or no length is given and none follows from the times.
        """
        h = self._own_interval() if interval is None else interval
        count = round(float(self.t[-1]) / h) + 1
        check_memory(f"{self.where} in lines of {h:g} s", 8.0 * count * len(self.columns), "take a longer input_step")
        if self.kind == "linear":
            middle = np.minimum(h * (np.arange(count) + 0.5), self.t[-1])
            middle[-1] = self.t[-1]
            return {name: np.interp(middle, self.t, x) for name, x in self.columns.items()}, h
        off = np.abs(self.t / h - np.round(self.t / h))
        if off.max() > TIME_ROUNDING:
            row = int(off.argmax())
            raise InputError(
                f"{self.where}: t is {self.t[row]:g} in row {row}, which is no multiple of the input_step of {h:g} s; "
                "expected times at which a line of the table begins. Give another input_step, or "
                'kind="linear" to interpolate.'
            )
        row_of_line = np.searchsorted(np.round(self.t / h), np.arange(count), side="right") - 1
        return {name: x[row_of_line] for name, x in self.columns.items()}, h

    def _own_interval(self) -> float:
        """Return the distance of the rows; raise an error if it is no length for the lines."""
        gaps = np.diff(self.t)
        if self.kind == "linear":
            raise InputError(
                f"{self.where}: linear interpolation needs the time that each value holds in the run; expected "
                "input_step=..., such as the step of the run."
            )
        if len(gaps) and np.ptp(gaps) > TIME_ROUNDING * gaps.min():
            row = int(np.abs(gaps - gaps[0]).argmax())
            raise InputError(
                f"{self.where}: the rows have different distances ({gaps[0]:g} s at first, {gaps[row]:g} s after row "
                f"{row}); expected input_step=..., a time of which all times are multiples."
            )
        return float(self.t[-1] / len(gaps)) if len(gaps) else 1.0


@explain_argument_errors
def history(source: Any, kind: str = "hold") -> History:
    """Return the history of inputs from a file or a mapping of columns, for `bc.simulate(..., inputs=...)`.

    Parameters
    ----------
    source : str, Path or mapping
        A .csv or .parquet file, or {name: values}. The column t has the times in seconds, from 0 and increasing; each
        other column has the name of an input.
    kind : {"hold", "linear"}
        "hold": a value holds until the time of the next one. "linear": values are joined by straight lines, which a
        run with input_step=h replaces by their values in the middle of each h.

    Returns
    -------
    History
        The history; its last values hold for the rest of a run.

    Raises
    ------
    ReadError
        If the file cannot be read, has text or numbers that are not finite, or if its times do not increase.
    InputError
        If the times do not begin at 0, or there is no column besides t.

    Examples
    --------
    >>> bc.history({"t": [0.0, 0.1, 0.2], "push": [0.0, 1.0, 0.5]}).columns["push"].tolist()
    [0.0, 1.0, 0.5]
    """
    check_known("kind", kind, KINDS, "history")
    if isinstance(source, Mapping):
        where, table = "history", {str(name): np.asanyarray(x) for name, x in source.items()}
    elif isinstance(source, str | Path):
        where, table = str(source), read_table(Path(source))
    else:
        raise InputError(f"history: source is {brief(source)}; expected a file, or a mapping of columns with t.")
    columns = checked_table(table, where, least_rows=1)
    t = columns.pop("t")
    if abs(t[0]) > TIME_ROUNDING:
        raise InputError(f"{where}: the first time is {t[0]:g} s; expected 0, the start of every run. Subtract it.")
    if not columns:
        raise InputError(f"{where}: there is only the column t; expected a column for each input, with its name.")
    return History(where, t, columns, kind)
