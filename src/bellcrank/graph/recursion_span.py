"""Exact critical path (longest dependent path) of a Recursion, without writing it out.

For each cell, the path length from every received value to every sent value is computed once. Each channel then is a
recursion over the tree in the max-plus algebra, with a few dozen numbers per place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.graph.cells import RESULT, Cell, channel_input, channel_output

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion

Array = np.ndarray[Any, Any]
MINUS_INFINITY = -np.inf
MAX_STEP_NUMBERS = 1_000_000  # numbers in the arrays of one step


def span(r: Recursion, weight: Mapping[str, float]) -> float:
    """Return the length of the longest dependent path of recursion `r`, with a `weight` for each operation."""
    widths = [len(w) for w in r.wanted]
    path_lengths = [_path_lengths(cell, widths, weight) for cell in r.cells]
    finish_times = [np.full((len(r.tree.parent), width), MINUS_INFINITY) for width in widths]
    cell_of = np.concatenate([np.tile(run.cells, run.repeats) for run in r.tree.runs])

    def arrived(places: Array, cell: Cell, channels: int) -> Array:
        """Return the times at which the values received so far are known; the last column is time zero."""
        times = [np.zeros((len(places), 1))]
        for k in reversed(range(channels)):
            if r.outwards[k]:
                times += [] if cell.on_ground else [finish_times[k][r.tree.parent[places]]]
            else:
                times += [finish_times[k][r.tree.children[places, j]] for j in reversed(range(cell.children))]
        return np.concatenate(times[::-1], axis=1)

    def after(places: Array, cell_number: int, output: str, channels: int) -> Array:
        times = arrived(places, r.cells[cell_number], channels)
        matrix = path_lengths[cell_number][output]
        if not len(matrix):
            return np.empty((len(places), 0))
        if times.shape[1] < matrix.shape[1]:
            matrix = np.concatenate([matrix[:, : times.shape[1] - 1], matrix[:, -1:]], axis=1)
        share = max(1, MAX_STEP_NUMBERS // matrix.size)
        parts = [times[i : i + share, None, :] for i in range(0, len(places), share)]
        return np.concatenate([np.max(matrix + part, axis=2) for part in parts])

    for k, outwards in enumerate(r.outwards):
        for places in _independent_places(_depths(r.tree.parent) if outwards else _heights(r.tree.parent), cell_of):
            finish_times[k][places] = after(places, int(cell_of[places[0]]), channel_output(k), k + 1)
    last = [
        after(places, int(cell_of[places[0]]), RESULT, len(widths))
        for places in _independent_places(np.zeros_like(cell_of), cell_of)
    ]
    return max((float(x.max(initial=0.0)) for x in last), default=0.0)


def _independent_places(level: Array, cell_of: Array) -> list[Array]:
    """Group places of one level and one cell, which do not depend on each other; lower levels first."""
    order = np.lexsort((cell_of, level))
    changes = (np.diff(level[order]) != 0) | (np.diff(cell_of[order]) != 0)
    return np.split(order, np.flatnonzero(changes) + 1)


def _depths(parent: Array) -> Array:
    """Return the number of places between each place and the ground."""
    depths: list[int] = []
    for p in parent.tolist():
        depths.append(depths[p] + 1 if p >= 0 else 0)
    return np.array(depths)


def _heights(parent: Array) -> Array:
    """Return the number of places on the longest branch outward of each place."""
    heights, places = [0] * len(parent), parent.tolist()
    for i in reversed(range(len(heights))):
        if (p := places[i]) >= 0 and heights[p] <= heights[i]:
            heights[p] = heights[i] + 1
    return np.array(heights)


def _path_lengths(cell: Cell, widths: list[int], weight: Mapping[str, float]) -> dict[str, Array]:
    """Return for each output the path lengths, shape (its elements, received values and one more for time zero)."""
    column: dict[tuple[str, int], int] = {}
    for k, width in enumerate(widths):
        sources = cell.sources(k)
        assert sources in ([], [channel_input(k)]) or not cell.outwards[k]
        for source in sources:
            for e in range(width):
                column[source, e] = len(column)
    wide = len(column) + 1
    finish: dict[int, Array] = {}
    for node in cell.graph.nodes:
        if node.op == "input":
            finish[node.serial] = np.full(wide, MINUS_INFINITY)
            finish[node.serial][column.get(node.args, wide - 1)] = 0.0
        else:
            finish[node.serial] = weight[node.op] + np.max([finish[a.serial] for a in node.operands], axis=0)
    path_lengths = {}
    for name, array in cell.graph.outputs.items():
        rows = [finish[x.serial] if hasattr(x, "serial") else np.full(wide, MINUS_INFINITY) for x in array.flat]
        path_lengths[name] = np.array(rows).reshape(len(rows), wide)
    return path_lengths
