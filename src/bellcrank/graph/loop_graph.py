"""Graphs that consist of loops: the interface of any graph, without a node for each operation.

    Recursion        loops over identical bodies of a tree (recursion.py)
    LinearSystem     factorisation and substitution (linear_solve.py)
    ColumnGraph      a loop over the columns of a matrix (columns.py)

Their `loops` are statements of graph/loops/, which targets print. For targets without loops, and for derivatives, the
operations are written out once, up to a limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from bellcrank import progress
from bellcrank.buffers import free_memory
from bellcrank.errors import InputError
from bellcrank.graph.graph import Array, Graph, Shape
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape
from bellcrank.quoting import single_line

MAX_WRITTEN_OPERATIONS = 5_000_000  # operations; larger graphs are not written out
BYTES_PER_OPERATION = 1_600  # bytes per operation written out


class LoopGraph(Graph):
    """Base of graphs that consist of loops; nodes are only created on demand."""

    opaque = True  # no output is known before the loops have run
    results: Mapping[str, Shape]  # shapes of the outputs
    other_ways = "Use fewer bodies."  # what to do where the graph is too large to be written out

    def __init__(self, name: str, inputs: Mapping[str, Shape], results: Mapping[str, Shape], **fields: Any) -> None:
        """Set the fields of every graph, and those of the subclass.

        Parameters
        ----------
        name
            Name of the graph.
        inputs
            Shapes of the inputs, by name.
        results
            Shapes of the outputs, by name.
        fields
            The fields that a subclass declares.
        """
        for field, value in {"name": name, "inputs": dict(inputs), "results": dict(results), **fields}.items():
            object.__setattr__(self, field, value)

    @property
    @abstractmethod
    def extent(self) -> str:
        """Size of the loops, for messages: "300 places of 3 kinds"."""

    @abstractmethod
    def write_out(self) -> Graph:
        """Return the equivalent graph of nodes, however large; see `written`."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of the outputs, by name."""
        return dict(self.results)

    @property
    def calls(self) -> list[Graph]:
        """Called graphs: none."""
        return []

    @property
    def size(self) -> int:
        """Number of arithmetic operations."""
        return self.count().arithmetic

    @cached_property
    def written(self) -> Graph:
        """The equivalent graph of nodes; InputError where it would be too large."""
        operations = self.count().arithmetic
        if operations > MAX_WRITTEN_OPERATIONS:
            raise InputError(
                f"{self.name} has {self.extent}, and this request needs its {operations:,} operations one by one; at "
                f"most {MAX_WRITTEN_OPERATIONS:,} are written out. {self.other_ways}"
            )
        if BYTES_PER_OPERATION * operations > (free := free_memory()):
            raise InputError(
                f"{self.name}, operation by operation: {operations:,} of them, some "
                f"{BYTES_PER_OPERATION * operations / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free. Nothing was "
                "started. Use fewer bodies."
            )
        with progress.progress_message(f"writing out {operations:,} operations of {single_line(self.name)}"):
            return self.write_out()

    @cached_property
    def outputs(self) -> Mapping[str, Array]:
        """Outputs of the equivalent graph of nodes."""
        return self.written.outputs

    @cached_property
    def tape(self) -> Tape:
        """Tape of the equivalent graph of nodes."""
        return self.written.tape

    @cached_property
    def nodes(self) -> list[Node]:
        """Nodes of the equivalent graph of nodes."""
        return self.written.nodes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.extent}, {self.count().arithmetic} operations>"

    __str__ = __repr__
