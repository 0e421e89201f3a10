"""Text summary of a record: a table of its columns, its provenance, and why its runs stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.model.parts import Array
from bellcrank.quoting import single_line
from bellcrank.record.contents import Stop, Stops
from bellcrank.text_table import table

if TYPE_CHECKING:
    from bellcrank.record.record import Record

MAX_TABLE_ROWS = 60  # maximum number of table rows; a humanoid has hundreds of columns
MAX_VALUE_CHARACTERS = 2000  # characters: longer values are abbreviated


def summary(run: Record) -> str:
    """Return the summary of `run`."""
    t = run.t
    span = f"{np.nanmax(t) - np.nanmin(t):.6g} s" if np.isfinite(t).any() else "no time"
    if len(run) == 1 and np.isfinite(t).any():
        first, last = np.nanmin(t), np.nanmax(t)
        span = f"at {first:.6g} s" if first == last else f"at {first:.6g} to {last:.6g} s"
    batch = f"{run.runs} runs {run.batch} of " if run.batch else ""
    head = f"{repr(run)[1:].partition(':')[0]}: {batch}{len(run)} row{'s' * (len(run) != 1)}, {span}"
    rows = [(name, *_numbers(run[name]), run.column(name).unit) for name in run.columns[:MAX_TABLE_ROWS]]
    parts = [table(("column", "first", "last", "min", "max", "unit"), rows, right=(1, 2, 3, 4))]
    if len(run.columns) > MAX_TABLE_ROWS:
        parts.append(f"... and {len(run.columns) - MAX_TABLE_ROWS} more")
    facts = [f"{key}: {value_text(value)}" for key, value in run.provenance.items()]
    return "\n".join([single_line(head), *parts, *map(single_line, (*facts, *stop_lines(run)))])


def _numbers(values: Array) -> tuple[str, ...]:
    """Return the first and last value of the first run, and the minimum and maximum of all runs."""
    first_run = values.reshape(-1, values.shape[-1])[:1].ravel() if values.size else values.ravel()
    first_run, every = first_run[~np.isnan(first_run)], values[~np.isnan(values)]
    if not first_run.size or not every.size:
        return ("-",) * 4
    return tuple(f"{x:.6g}" for x in (first_run[0], first_run[-1], every.min(), every.max()))


def value_text(value: object) -> str:
    """Return a `value` of the provenance as one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(x)}" for key, x in value.items())
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:60]}... ({len(text)} letters)"


def _reason_counts(stops: Sequence[Stop]) -> list[tuple[str, int]]:
    return Counter(s.reason for s in stops).most_common()


def stop_lines(run: Record) -> list[str]:
    """Return a line for the stop of each run of `run` if they are few, otherwise the number of runs by reason."""
    if len(run.stops) > 8:
        counts = run.stops.counts() if isinstance(run.stops, Stops) else dict(_reason_counts(run.stops))
        return [f"stopped: {', '.join(f'{n} x {reason}' for reason, n in counts.items())}"]
    lanes = list(np.ndindex(*run.batch))
    return [
        f"stopped{f' {lane}' if lane else ''} at {s.time:.6g} s: {s.reason}{f' ({s.message})' if s.message else ''}"
        for lane, s in zip(lanes, run.stops, strict=False)
    ]
