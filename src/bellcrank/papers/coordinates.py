"""Coordinates with a short critical path, and the limit of the speed-up of long chains (nikravesh1989, section 5).

The paper concludes from figure 7: the critical path grows linearly with the number of joints, "the maximum speed-up
will approach a constant", which is the ratio of both rates of growth; coordinates whose critical path does not grow
would lift that limit, and the authors were working on their automatic choice.

The first table lists, for mechanisms with loops, the sets of independent coordinates with the shortest and the longest
critical path of the minimal form (19). The second examines the statement by method: work, span and their ratio for
chains of general revolute joints, and the ratio of the growth of both from half as many joints. With unit costs, as in
figure 7, every operation is one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from bellcrank.build.coordinate_search import CoordinateSet, coordinate_sets
from bellcrank.build.graphs import graph
from bellcrank.papers.operation_counts import chain
from bellcrank.text_table import Table
from bellcrank.zoo import load

UNIT_COSTS = dict.fromkeys(("div", "sqrt", "sin", "cos"), 1.0)
MECHANISMS = ("slider_fourbar", "four_bar", "parallel_cranks", "n_four_bar:2", "andrews", "double_wishbone")
METHODS = ("joint_coordinates", "crba", "joint_coordinates_recursive", "aba", "absolute", "dca")
SIZES = (2, 4, 8, 16, 32)
MAX_TRACED_JOINTS = {"joint_coordinates": 16}  # the work grows with the cube


def tables() -> list[Table]:
    """Return the sets of coordinates, and the limits of the speed-up."""
    return [_set_table(), _limit_table()]


def shortest_and_longest(name: str) -> tuple[CoordinateSet, CoordinateSet, int]:
    """Return the coordinates of the mechanism `name` with the shortest and longest path, and the number of sets."""
    sets = coordinate_sets(load(name), ("crba",), progress=False).sets
    return sets[0], sets[-1], len(sets)


def _set_table() -> Table:
    rows = []
    for name in MECHANISMS:
        best, worst, count = shortest_and_longest(name)
        rows.append(
            (name, str(count), ", ".join(best.independent), f"{best.span:g}", str(best.operations),
             ", ".join(worst.independent), f"{worst.span:g}", str(worst.operations))
        )  # fmt: skip
    head = ("mechanism", "sets", "shortest path", "span", "operations", "longest path", "span", "operations")
    title = "Closed loops: independent coordinates with the shortest and the longest critical path, minimal form"
    return Table(title, head, rows, (1, 3, 4, 6, 7))


@cache
def work_and_span(method: str, n: int) -> tuple[float, float]:
    """Return work and span of forward dynamics of a general chain of `n` joints by `method`, in unit costs."""
    g = graph(chain(n), "forward_dynamics", method)
    return g.work(UNIT_COSTS), g.span(UNIT_COSTS)


def speedup_limits(method: str, sizes: Sequence[int] = SIZES) -> dict[int, float]:
    """Return work / span of forward dynamics by `method` for chains of the given `sizes`."""
    able = [n for n in sizes if n <= MAX_TRACED_JOINTS.get(method, max(sizes))]
    return {n: work / span for n in able for work, span in [work_and_span(method, n)]}


def growth_ratio(method: str, n: int) -> float:
    """Return the growth of work over that of span from n / 2 to `n` joints.

    This is the limit of the speed-up if both grow linearly.

    Parameters
    ----------
    method
        Method of forward dynamics.
    n
        Number of joints.
    """
    (work, span), (work_before, span_before) = work_and_span(method, n), work_and_span(method, n // 2)
    return (work - work_before) / (span - span_before)


def _limit_table() -> Table:
    rows = []
    for method in METHODS:
        limits = speedup_limits(method)
        last = max(limits)
        (_, span), (_, before) = work_and_span(method, last), work_and_span(method, last // 2)
        cells = [f"{limits[n]:.1f}" if n in limits else "" for n in SIZES]
        rows.append((method, *cells, f"{growth_ratio(method, last):.1f}", f"{(span - before) / (last // 2):.1f}"))
    head = ("work / span by joints", *map(str, SIZES), "limit", "path for each joint")
    caption = (
        "limit: growth of work over growth of span for the last doubling; the speed-up approaches it if both grow "
        "linearly.\nWhere the work grows faster than the path, there is no constant, and the limit grows as well."
    )
    title = 'Long chains: "the maximum speed-up will approach a constant"?'
    return Table(title, head, rows, range(1, 8), caption)
