"""Copy elision: remove the places of a recursion that only forward values; their neighbours connect directly.

Inwards, such a place forwards the values of its one child. Outwards it forwards elements of its parent, starting at an
offset that is the same for all elements of a channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.graph.cells import Cell, channel_output
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ElidedRecursion:
    """A recursion after copy elision.

    `offsets` is for each place and outward channel the offset at which its parent stores the values meant for it.
    """

    r: Recursion
    offsets: Array  # (places, channels)


def forwarding_offsets(cell: Cell) -> tuple[int, ...] | None:
    """Return the offset of each channel if `cell` only forwards values; None if it does anything else."""
    if cell.children != 1 or cell.on_ground or any(n.op != "input" for n in cell.graph.nodes):
        return None
    offsets_of_channel = []
    for k, outwards in enumerate(cell.outwards):
        given = [(e, x) for e, x in enumerate(cell.graph.outputs[channel_output(k)].flat) if isinstance(x, Node)]
        steps = {x.args[1] - e for e, x in given if x.args[0] in cell.sources(k)}
        if len(steps) != 1 or len(given) != sum(x.args[0] in cell.sources(k) for _, x in given):
            return None
        offsets_of_channel.append(steps.pop())
        if not outwards and offsets_of_channel[-1]:
            return None
    return tuple(offsets_of_channel)


def elide_copies(r: Recursion) -> ElidedRecursion:
    """Remove the forwarding places of recursion `r`."""
    parent, children = r.tree.parent.copy(), r.tree.children.copy()
    offsets = np.zeros((len(parent), len(r.outwards)), int)
    offsets_of_cell = [
        forwarding_offsets(cell) if not table.size else None for cell, table in zip(r.cells, r.tables, strict=True)
    ]
    remaining_runs = []
    for run in r.tree.runs:
        step = offsets_of_cell[run.cells[0]] if run.end - run.begin == 1 else None
        if step is None:
            remaining_runs.append(run)
            continue
        place, up, below = run.begin, int(parent[run.begin]), int(children[run.begin, 0])
        children[up] = np.where(children[up] == place, below, children[up])
        parent[below] = up
        offsets[below] = offsets[place] + step
    return ElidedRecursion(
        Recursion(
            r.name,
            r.inputs,
            r.output,
            r.cells,
            r.tables,
            replace(r.tree, parent=parent, children=children, runs=tuple(remaining_runs)),
            True,
            r.shape,
        ),
        offsets,
    )
