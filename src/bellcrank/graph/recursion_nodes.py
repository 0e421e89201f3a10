"""Expansion of a recursion into a graph with one node per operation, for targets without support for recursions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.graph.cells import RESULT, channel_output
from bellcrank.graph.graph import Graph
from bellcrank.nodes.evaluation import SCALAR_OPERATIONS, topological_order
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import PARAMETERS, Tape

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion


def expand(r: Recursion) -> Graph:
    """Return the recursion `r` as one graph of nodes."""
    return _Expansion(r).graph()


class _Expansion:
    """All places on one tape, as one trace of the whole tree would have them."""

    def __init__(self, r: Recursion) -> None:
        self.r, self.tape, n = r, Tape(), len(r.tree.parent)
        self.symbols = {name: self.tape.inputs(name, (math.prod(shape),)) for name, shape in r.inputs.items()}
        self.known: list[dict[Node, Any]] = [{} for _ in range(n)]
        self.sent_values: dict[tuple[int, int], list[Any]] = {}
        self.cell_of: list[tuple[int, int]] = []  # the cell of each place, and the row of its table
        for run in r.tree.runs:
            p = len(run.cells)
            for i in range(run.end - run.begin):
                self.cell_of.append((run.cells[i % p], run.rows[i % p] + i // p * run.row_stride(i % p)))

    def graph(self) -> Graph:
        r, n = self.r, len(self.r.tree.parent)
        for k, outwards in enumerate(r.outwards):
            for i in range(n) if outwards else reversed(range(n)):
                given = zip(self.cell(i).outputs[channel_output(k)].flat, r.wanted[k], strict=True)
                self.sent_values[k, i] = [self.value(i, x) if w else 0.0 for x, w in given]
        out = np.full(r.output[1], 0.0, dtype=object)
        for i in range(n):
            for j, x in enumerate(self.cell(i).outputs[RESULT].flat):
                out[r.tree.elements[RESULT][i, j]] = self.value(i, x)
        return Graph(r.name, r.inputs, {r.output[0]: out.reshape(r.shape)}, self.tape)

    def cell(self, i: int) -> Graph:
        return self.r.cells[self.cell_of[i][0]].graph

    def value(self, i: int, x: Any) -> Any:
        """Return the counterpart on the new tape of a node of the cell at place i."""
        if not isinstance(x, Node):
            return x
        known_here = self.known[i]
        for n in topological_order(x, known=known_here):
            args = [known_here[a] if isinstance(a, Node) else a for a in n.args]
            known_here[n] = self.input_value(i, *n.args) if n.op == "input" else SCALAR_OPERATIONS[n.op](*args)
        return known_here[x]

    def input_value(self, i: int, name: str, element: int) -> Any:
        r, (cell, row) = self.r, self.cell_of[i]
        if name == PARAMETERS:
            return float(r.tables[cell][row, element])
        if not name.startswith("from"):
            return self.symbols[name][r.tree.elements[name][i, element]]
        channel, _, child = name.removeprefix("from").partition(".")
        source = r.tree.children[i, int(child)] if child else r.tree.parent[i]
        return self.sent_values[int(channel), int(source)][element]
