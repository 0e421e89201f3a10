"""Deadline statistics of a real-time loop: execution time of a period, wake-up latency, overruns, and their text.

The functions that write text take the plain data of Deadlines.plain(); missing entries are left out of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.cpu.realtime_loop import KEPT_EVENTS, bin_edges
from bellcrank.text_table import table

Report = Mapping[str, Any]
MEASURES = (("a period took", "measured"), ("woke up late by", "jitter"))
OWN_CLOCK = ("by its own clock", "own")  # the time of a period on the thread's own clock
BAR_CHARACTERS = 40  # characters of the longest bar
MAX_LISTED_PERIODS = 8  # late periods that are listed one by one


def full_text(report: Report) -> str:
    """Return the complete text of the `report`, for the end of a run."""
    parts = [summary(report), *(histogram(report, *measure) for measure in MEASURES), overruns(report), notes(report)]
    return "\n\n".join(part for part in parts if part)


def summary(report: Report) -> str:
    """Return the table of times and the counts of the `report`, for display during a run."""
    rows = []
    for title, key in (MEASURES[0], OWN_CLOCK, MEASURES[1]):
        times = report.get(key) or {}
        if key == "own" and not times:
            continue
        expected = report.get("predicted") if key == "measured" else None
        rows.append((title, _us(expected), *(_us(times.get(k)) for k in ("min", "mean", "p50", "p99", "max"))))
    head = ("us", "predicted", "min", "mean", "p50", "p99", "max")
    return f"{table(head, rows, right=range(1, 7))}\n" + "\n".join(count_lines(report))


def count_lines(report: Report) -> list[str]:
    """Return two lines with the counts of the `report`: steps, and late and skipped periods."""
    late, caught, skipped = (report.get(key, 0) for key in ("overruns", "caught_up", "skipped"))
    period, factor = report.get("period"), report.get("real_time_factor")
    step_parts = [f"{report.get('steps', 0)} steps" + (f" in periods of {_us(period)} us" if period else "")]
    if isinstance(factor, (int, float)):
        step_parts.append(f"real-time factor {factor:.4f}")
    if report.get("lost_rows"):
        step_parts.append(f"{report['lost_rows']} rows not recorded")
    late_parts = [f"{caught} caught up"] if caught else []
    late_parts += [f"{late - caught} skipped {_periods(skipped)}"] if skipped else []
    counts = f"{_periods(late)} ended late" + (": " if late_parts else "") + "; ".join(late_parts)
    return ["; ".join(step_parts), counts]


def one_line(report: Report) -> str:
    """Return the `report` in one line, for output that is not a terminal."""
    cost, late = (report.get(key) or {} for _, key in MEASURES)
    predicted = report.get("predicted")
    expected = "" if predicted is None else f" ({_us(predicted)} predicted)"
    took = f"a period took {_us(cost.get('mean'))} us{expected}, p99 {_us(cost.get('p99'))}"
    woke = f"woke up {_us(late.get('mean'))} us late, p99 {_us(late.get('p99'))}"
    return "; ".join([took, woke, *count_lines(report)])


def histogram(report: Report, title: str, key: str) -> str:
    """Return the histogram of one measure, with two bars for each power of two.

    The scale is linear; the count beside a bar shows rare cases.

    Parameters
    ----------
    report
        The report.
    title
        Title of the measure.
    key
        Key of the measure in the report.
    """
    bins = (report.get(key) or {}).get("histogram")
    if not bins or not sum(bins["counts"]):
        return ""
    bars = _merged(bins["edges"], bins["counts"])
    most, total = max(n for _, n in bars), sum(n for _, n in bars)
    ends = [_us(edge) for edge, _ in bars]
    width, count = max(map(len, ends)), max(len(str(n)) for _, n in bars)
    lines = [
        f"{end:>{width}} us  {n:>{count}}  {'#' * max(round(BAR_CHARACTERS * n / most), 1 if n else 0)}".rstrip()
        for end, (_, n) in zip(ends, bars, strict=True)
    ]
    return "\n".join([f"{title} at least (of {total})", *lines])


def _merged(edges: Sequence[float], counts: Sequence[int]) -> list[tuple[float, int]]:
    """Return lower ends and counts of bins of half an octave, from the first bin on."""
    bars: list[tuple[float, int]] = []
    for low, n in zip(edges, counts, strict=False):
        if bars and low < 1.414 * bars[-1][0]:
            low, before = bars.pop()
            n += before
        bars.append((low, n))
    return bars


def overruns(report: Report) -> str:
    """Return a table of the newest late periods of the `report`, and how each ended."""
    log = list(report.get("log") or ())[-MAX_LISTED_PERIODS:]
    if not log:
        return ""
    rows = []
    for entry in log:
        skipped = entry["skipped"]
        then = f"skipped {_periods(skipped)}" if skipped else "caught up"
        rows.append((f"{entry['time']:.3f} s", _us(entry["late"]), _us(entry["cost"]), then))
    all_of = report.get("overruns", len(log))
    title = "periods that ended late" + (f", the newest {len(log)} of {all_of}" if all_of > len(log) else "")
    return f"{title}\n{table(('at', 'woke up late, us', 'took, us', 'then'), rows, right=(0, 1, 2))}"


def notes(report: Report) -> str:
    """Return the notes of the `report`, one on each line."""
    return "\n".join(f"note: {note}" for note in report.get("notes") or ())


def _periods(n: int) -> str:
    return f"{n} period" + ("" if n == 1 else "s")


def _us(seconds: Any) -> str:
    if not isinstance(seconds, (int, float)):
        return "-"
    us = 1e6 * seconds
    return f"{us:.2f}" if us < 10.0 else f"{us:.1f}" if us < 100.0 else f"{us:.0f}"


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TimeStatistics:
    """Statistics of times in seconds, with a histogram of eight bins per power of two (percentiles to within 12 %)."""

    count: int
    least: float
    mean: float
    most: float
    counts: Array
    edges: Array

    def percentile(self, share: float) -> float:
        """Return a percentile.

        Parameters
        ----------
        share : float
            Part of all counts, 0 to 1.

        Returns
        -------
        float
            Upper end of the bin in which the share is reached, s.
        """
        if not self.count:
            return 0.0
        k = int(np.searchsorted(np.cumsum(self.counts), share * self.count))
        return min(float(self.edges[min(k + 1, len(self.edges) - 1)]), self.most)

    def plain(self) -> dict[str, Any]:
        """Return the statistics as plain data."""
        used = np.flatnonzero(self.counts)
        first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        histogram = {"edges": self.edges[first : last + 1].tolist(), "counts": self.counts[first:last].tolist()}
        return {
            "count": self.count, "min": self.least, "mean": self.mean, "p50": self.percentile(0.5),
            "p99": self.percentile(0.99), "max": self.most, "histogram": histogram,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Deadlines:
    """Deadline report of a real-time loop; times in seconds."""

    period: float
    predicted: float  # execution time of a period, estimated from the graph
    cost: TimeStatistics
    jitter: TimeStatistics
    own: TimeStatistics  # execution time on the clock of the thread: without the time of other threads on its core
    steps: int
    overruns: int
    skipped: int
    caught_up: int  # late periods after which nothing had to be skipped
    lost: int
    real_time_factor: float
    log: tuple[dict[str, float], ...]
    notes: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "period": self.period, "predicted": self.predicted, "measured": self.cost.plain(),
            "jitter": self.jitter.plain(), "own": self.own.plain(), "steps": self.steps, "overruns": self.overruns,
            "skipped": self.skipped, "caught_up": self.caught_up, "lost_rows": self.lost,
            "real_time_factor": self.real_time_factor, "log": list(self.log), "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        return full_text(self.plain())


def deadline_report(
    words: Mapping[str, int],
    costs: Array,
    delays: Array,
    owns: Array,
    log: Array,
    step: float,
    predicted: float,
    notes: Sequence[str],
) -> Deadlines:
    """Return the deadline report of a loop from the raw counters of its shared memory.

    Parameters
    ----------
    words
        Integer counters of the loop, by name.
    costs, delays, owns
        Histogram counts of execution time, wake-up latency and execution time on the thread's clock.
    log
        Ring buffer of late periods: step, latency, execution time (ns) and skipped periods.
    step
        Length of a step, s.
    predicted
        Estimated execution time of a period, s.
    notes
        Remarks for the report.
    """
    edges = bin_edges() * 1e-9

    def times(counts: Array, name: str) -> TimeStatistics:
        n = int(counts.sum())
        least, most, total = (words[f"{name}_{what}"] for what in ("least", "most", "sum"))
        return TimeStatistics(n, least * 1e-9 if n else 0.0, total * 1e-9 / max(n, 1), most * 1e-9, counts, edges)

    cost, jitter, cpu = times(costs, "cost"), times(delays, "delay"), times(owns, "own")
    period = words["period"] * 1e-9
    done_periods = cost.count
    log_rows = [log[k % KEPT_EVENTS] for k in range(max(0, words["logged"] - KEPT_EVENTS), words["logged"])]
    log_entries = tuple(
        {"time": int(n) * step, "late": int(late) * 1e-9, "cost": int(spent) * 1e-9, "skipped": int(skipped)}
        for n, late, spent, skipped in log_rows
    )
    factor = done_periods / (done_periods + words["skipped"]) if done_periods else 0.0
    return Deadlines(
        period, predicted, cost, jitter, cpu, words["steps"], words["overruns"], words["skipped"], words["caught_up"],
        words["lost"], factor, log_entries, tuple(notes),
    )  # fmt: skip
