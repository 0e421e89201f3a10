"""Loop over the columns of matrices: x[:, k] = y of a graph from its input (shared, given[:, k]).

Matrices are stored row by row, so that elements of consecutive columns lie side by side. No column depends on another.
Any printer of loops prints this one; emit/llvm/column_code.py computes several columns together, in tiles of sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.graph.graph import Graph
from bellcrank.graph.loops.statements import ZERO, Block, Counter, Element, Index, Loop, Variable, index_of
from bellcrank.nodes.node import Node, Value


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnLoop(Loop):
    """Independent loop over columns, made by `column_loop`."""

    graph: Graph  # of one column
    shared: int  # number of elements of its input that all columns share: the first ones
    rows: int  # number of the other elements: rows of the matrix `given`

    @property
    def number(self) -> int:
        """Number of columns."""
        return self.count.constant

    def is_shared(self, n: Node) -> bool:
        """Return whether the node `n` of the graph is an input that all columns share."""
        return n.op == "input" and n.args[1] < self.shared

    def given(self, call: Node) -> tuple[Value, ...]:
        """Return the elements of the matrix `given` that the node `call` passes, row by row."""
        return call.args[1 + self.shared :]


def column_loop(graph: Graph, shared: int, number: int) -> ColumnLoop:
    """Return the loop over a `number` of columns of the `graph` of one; all columns share its `shared` first inputs."""
    k = Variable("k")

    def matrix(kind: str, name: str, rows: int) -> list[Element]:
        return [Element((kind, name), index_of(k).plus(number * i)) for i in range(rows)]

    counters, rows = (Counter(k, ZERO),), len(graph.elements) - shared
    reads = *(Element(("in", "shared"), Index(i)) for i in range(shared)), *matrix("in", "given", rows)
    body = Block(graph, reads, tuple(enumerate(matrix("out", "x", graph.outputs["y"].size))))
    return ColumnLoop(Index(number), counters, (), (body,), independent=True, graph=graph, shared=shared, rows=rows)
