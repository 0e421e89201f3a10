"""Prediction of the duration of a step before compilation, by the cost model of emit/cpu/costs.py on its graph."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.emit.cpu.costs import costs, parts
from bellcrank.graph import Graph
from bellcrank.graph.inline import inline_small


@dataclass(frozen=True)
class StepTime:
    """Seconds per step on one core: of a single run, and of each run in a large batch."""

    one: float
    batch: float

    def __str__(self) -> str:
        return f"{1e9 * self.one:.0f} ns a step, {1e9 * self.batch:.0f} ns in a batch"


def step_time(tick: Graph) -> StepTime:
    """Return the predicted duration of a `tick`."""
    graph_parts = parts(inline_small(tick))
    return StepTime(costs(alone=True).seconds(graph_parts), costs().seconds(graph_parts))
