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

    @property
    def number(self) -> int:
        """Number of columns."""
        return self.count.constant

    @property
    def rows(self) -> int:
        """Number of rows of the matrix `given`."""
        return len(self.graph.elements) - self.shared

    @property
    def results(self) -> int:
        """Number of rows of the matrix of results."""
        return self.graph.outputs["y"].size

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

    common = [Element(("in", "shared"), Index(i)) for i in range(shared)]
    reads = *common, *matrix("in", "given", len(graph.elements) - shared)
    body = Block(graph, reads, tuple(enumerate(matrix("out", "x", graph.outputs["y"].size))))
    return ColumnLoop(Index(number), (Counter(k, ZERO),), (), (body,), independent=True, graph=graph, shared=shared)
