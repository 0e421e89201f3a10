"""Copy elision: remove the places of a recursion that only forward values; their neighbours connect directly.

Inwards, such a place forwards the values of its one child. Outwards it forwards elements of its parent, starting at an
offset that is the same for all elements of a channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.graph.cells import Cell, handed
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Slim:
    """A recursion after copy elision.

    `further` is for each place and outward channel the offset at which its parent stores the values meant for it.
    """

    r: Recursion
    further: Array  # (places, channels)


def passes(cell: Cell) -> tuple[int, ...] | None:
    """Return the offset of each channel if `cell` only forwards values; None if it does anything else."""
    if cell.children != 1 or cell.on_ground or any(n.op != "input" for n in cell.graph.nodes):
        return None
    found = []
    for k, outwards in enumerate(cell.outwards):
        given = [(e, x) for e, x in enumerate(cell.graph.outputs[handed(k)].flat) if isinstance(x, Node)]
        steps = {x.args[1] - e for e, x in given if x.args[0] in cell.sources(k)}
        if len(steps) != 1 or len(given) != sum(x.args[0] in cell.sources(k) for _, x in given):
            return None
        found.append(steps.pop())
        if not outwards and found[-1]:
            return None
    return tuple(found)


def slim(r: Recursion) -> Slim:
    """Remove the forwarding places of recursion `r`."""
    parent, children = r.tree.parent.copy(), r.tree.children.copy()
    further = np.zeros((len(parent), len(r.outwards)), int)
    known = [passes(cell) if not table.size else None for cell, table in zip(r.cells, r.tables, strict=True)]
    kept = []
    for run in r.tree.runs:
        step = known[run.cells[0]] if run.end - run.begin == 1 else None
        if step is None:
            kept.append(run)
            continue
        place, up, below = run.begin, int(parent[run.begin]), int(children[run.begin, 0])
        children[up] = np.where(children[up] == place, below, children[up])
        parent[below] = up
        further[below] = further[place] + step
    return Slim(
        Recursion(
            r.name,
            r.inputs,
            r.output,
            r.cells,
            r.tables,
            replace(r.tree, parent=parent, children=children, runs=tuple(kept)),
            True,
            r.shape,
        ),
        further,
    )
