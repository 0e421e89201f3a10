"""Prediction of the duration of a step before compilation, by the cost model of emit/cpu/costs.py on its graph.

A single run waits for the critical path of its step if that takes longer than the work, as with small mechanisms and
with closed loops, whose correction is a chain of small systems of equations. A batch overlaps the steps of its runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.emit.cpu.costs import costs, critical_path_seconds, parts
from bellcrank.graph import Graph
from bellcrank.graph.inline import inline_small


@dataclass(frozen=True)
class PredictedStepTime:
    """Seconds per step on one core: of a single run, and of each run in a large batch."""

    one: float
    batch: float

    def __str__(self) -> str:
        return f"{1e9 * self.one:.0f} ns a step, {1e9 * self.batch:.0f} ns in a batch"


def step_time(tick: Graph) -> PredictedStepTime:
    """Return the predicted duration of a `tick`."""
    graph = inline_small(tick)
    graph_parts = parts(graph)
    work, path = costs(single_state=True).seconds(graph_parts), critical_path_seconds(graph)
    return PredictedStepTime(max(work, path), costs().seconds(graph_parts))
