"""What a graph is made of, as something that can be compared: graphs of the same structure are the same code."""

from __future__ import annotations

from typing import Any

from bellcrank.graph.graph import Graph
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node


def structure(graph: Graph, known: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """Inputs, outputs and operations. Names of steps are left out; numbers are told apart to the last bit."""
    known = {} if known is None else known
    if id(graph) not in known and isinstance(graph, Recursion):
        known[id(graph)] = _of_recursion(graph, known)
    if id(graph) not in known:
        nodes = tuple((n.serial, n.op, *(_told(a, known) for a in n.args)) for n in graph.nodes)
        outputs = tuple((key, x.shape, *(_told(a, known) for a in x.flat)) for key, x in graph.outputs.items())
        known[id(graph)] = graph.only, tuple(graph.inputs.items()), outputs, nodes
    found: tuple[Any, ...] = known[id(graph)]
    return found


def _told(x: Any, known: dict[int, Any]) -> Any:
    if isinstance(x, Node):
        return x.serial
    if isinstance(x, float):
        return x.hex()  # for 0.0 equals -0.0
    return structure(x, known) if isinstance(x, Graph) else (type(x).__name__, x)


def _of_recursion(r: Recursion, known: dict[int, Any]) -> tuple[Any, ...]:
    """Its cells, the constants of every place, and which place hangs on which."""
    cells = tuple((structure(c.graph, known), c.outwards, c.children, c.on_ground) for c in r.cells)
    arrays = (*r.tables, r.tree.parent, r.tree.children, *r.tree.elements.values())
    numbers = tuple((x.shape, x.dtype.str, x.tobytes()) for x in arrays)
    return tuple(r.inputs.items()), r.output, cells, numbers, tuple(r.tree.elements), r.tree.runs, r.tree.chained
