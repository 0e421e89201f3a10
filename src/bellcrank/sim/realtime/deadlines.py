"""Deadline statistics of a real-time loop: execution time of a period, wake-up latency, and overruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.cpu.realtime_loop import KEPT_EVENTS, bin_edges
from bellcrank.sim.realtime.deadline_text import full_text

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
        return {
            "count": self.count, "min": self.least, "mean": self.mean, "p50": self.percentile(0.5),
            "p99": self.percentile(0.99), "max": self.most,
            "histogram": {
                "edges": self.edges[first : last + 1].tolist(), "counts": self.counts[first:last].tolist(),
            },
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
