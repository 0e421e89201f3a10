"""The longest dependent path of a Recursion, exactly, without writing it out.

Of every cell it is found once how much later what it hands on is known than what it was handed. That makes each channel
a recursion over the tree with maxima for sums, and numbers of a few dozen for a place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.graph.cells import RESULT, Cell, handed, taken

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion

Array = np.ndarray[Any, Any]
NEVER = -np.inf


def span(r: Recursion, weight: Mapping[str, float]) -> float:
    widths = [len(w) for w in r.wanted]
    later = [_later(cell, widths, weight) for cell in r.cells]
    known = [np.full((len(r.tree.parent), width), NEVER) for width in widths]
    cell_of = np.concatenate([np.tile(run.cells, run.repeats) for run in r.tree.runs]).tolist()
    parent, children = r.tree.parent.tolist(), r.tree.children.tolist()

    def arrived(i: int, channels: int) -> Array:
        """When each thing that place i was handed so far is known; the last number is what waits for nobody."""
        cell, parts = r.cells[cell_of[i]], []
        for k in range(channels):
            if r.outwards[k]:
                parts += [] if cell.on_ground else [known[k][parent[i]]]
            else:
                parts += [known[k][children[i][j]] for j in range(cell.children)]
        return np.concatenate([*parts, [0.0]])

    def after(i: int, output: str, channels: int) -> Array:
        times = arrived(i, channels)
        matrix = later[cell_of[i]][output]
        paths = np.concatenate([matrix[:, : len(times) - 1], matrix[:, -1:]], axis=1) + times
        found: Array = np.max(paths, axis=1, initial=NEVER)
        return found

    n, longest = len(parent), 0.0
    for k, outwards in enumerate(r.outwards):
        for i in range(n) if outwards else reversed(range(n)):
            known[k][i] = after(i, handed(k), k + 1)
    for i in range(n):
        longest = max(longest, float(after(i, RESULT, len(widths)).max(initial=0.0)))
    return longest


def _later(cell: Cell, widths: list[int], weight: Mapping[str, float]) -> dict[str, Array]:
    """Of each output, (its elements, all that the cell is handed and at last nothing): the path between."""
    column: dict[tuple[str, int], int] = {}
    for k, width in enumerate(widths):
        sources = cell.sources(k)
        assert sources in ([], [taken(k)]) or not cell.outwards[k]
        for source in sources:
            for e in range(width):
                column[source, e] = len(column)
    wide = len(column) + 1
    finish: dict[int, Array] = {}
    for node in cell.graph.nodes:
        if node.op == "input":
            finish[node.serial] = np.full(wide, NEVER)
            finish[node.serial][column.get(node.args, wide - 1)] = 0.0
        else:
            finish[node.serial] = weight[node.op] + np.max([finish[a.serial] for a in node.operands], axis=0)
    found = {}
    for name, array in cell.graph.outputs.items():
        rows = [finish[x.serial] if hasattr(x, "serial") else np.full(wide, NEVER) for x in array.flat]
        found[name] = np.array(rows).reshape(len(rows), wide)
    return found
