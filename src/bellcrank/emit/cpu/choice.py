"""Of graphs that compute the same, the one that will be fastest on this computer."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.target import By
from bellcrank.graph import Graph

EVEN = 1.05  # predicted times that are as good as equal


def cheapest(graphs: Sequence[tuple[By, Graph]], dtype: str = "float64") -> tuple[By, Graph]:
    """By predicted time; of those within the model's own noise, the one with the fewest operations.

    What has no less of anything than another is out before it is asked what things cost here.
    """
    from bellcrank.emit.cpu.costs import costs, parts  # what comes from the cache needs no choice

    has = [parts(g) for _, g in graphs]
    graphs = [pair for pair, mine in zip(graphs, has, strict=True) if not any(mine.exceeds(other) for other in has)]
    if len(graphs) == 1:
        return graphs[0]
    times = [costs(dtype).predicted(g) for _, g in graphs]
    even = [pair for pair, t in zip(graphs, times, strict=True) if t <= EVEN * min(times)]
    return min(even, key=lambda pair: pair[1].count().arithmetic)
