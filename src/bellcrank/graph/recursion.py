"""Recursion over a tree of cells: a graph in which identical bodies share one cell, run as a rolled loop.

It is a Graph like any other (named inputs, one named output, count, work, span, evaluate), but it does not hold a node
for each operation: there are few `cells`, and each place of the tree refers to one of them. Targets without support for
recursions use `nodes`, which writes the recursion out once, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from bellcrank.graph import recursion_interpreter
from bellcrank.graph.cells import RESULT, Cell, CellLoops, channel_output, loop_fission
from bellcrank.graph.graph import Array, Count, Coverage, Graph, Shape, structure
from bellcrank.graph.interpreter import checked_inputs, operation_costs
from bellcrank.graph.loop_graph import LoopGraph
from bellcrank.nodes.ops import KINDS

if TYPE_CHECKING:
    from bellcrank.graph.loops.statements import LoopProgram


@dataclass(frozen=True)
class Run:
    """Places [begin, end) that repeat a sequence of cells.

    `rows` is the first table row of each cell of the sequence.
    """

    cells: tuple[int, ...]
    begin: int
    end: int
    rows: tuple[int, ...]

    @property
    def repeats(self) -> int:
        """Number of repetitions of the sequence."""
        return (self.end - self.begin) // len(self.cells)

    def row_stride(self, k: int) -> int:
        """Return the distance in table rows between two repetitions of the cell at position `k` of the sequence."""
        return self.cells.count(self.cells[k])

    def places_of_cell(self, k: int) -> Array:
        """Return the places of the cell at position `k` of the sequence."""
        return np.arange(self.begin + k, self.end, len(self.cells))


@dataclass(frozen=True, eq=False)
class PlaceTree:
    """The places of a recursion, parents before children.

    `children` has the shape (places, most children), with -1 where there are fewer. `elements` gives for an input and
    for the result the elements that belong to a place, (places, most), with -1 where there are fewer.
    """

    parent: Array
    children: Array
    elements: Mapping[str, Array]
    runs: tuple[Run, ...]
    chained: bool  # true if each place of a run is the child of the one before; else no two are connected

    @cached_property
    def cell_of_place(self) -> Array:
        """The cell of each place."""
        return np.concatenate([np.tile(run.cells, run.repeats) for run in self.runs])

    @cached_property
    def row_of_place(self) -> Array:
        """The row of each place in the table of its cell."""
        rows = np.zeros(len(self.parent), int)
        for run in self.runs:
            for k, first in enumerate(run.rows):
                rows[run.places_of_cell(k)] = first + run.row_stride(k) * np.arange(run.repeats)
        return rows


class Recursion(LoopGraph):
    """A recursion over a tree: cells, and for each a table with one row for every place that uses it."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        output: tuple[str, int],
        cells: Sequence[Cell],
        tables: Sequence[Array],
        tree: PlaceTree,
        has_parallel_runs: bool = False,
        shape: Shape = (),
        divide: Callable[[int | None, int], Recursion] | None = None,
    ) -> None:
        """Describe a recursion.

        Parameters
        ----------
        name
            Name of the graph.
        inputs
            Shapes of the inputs, by name.
        output
            Name of the output and its number of elements.
        cells
            The different cells.
        tables
            For each cell, a table of constants with one row for every place that uses it.
        tree
            The places and their connections.
        shape
            Shape of the output; one axis unless given.
        divide
            Makes the same recursion with other segments; see `divided` for its arguments.
        """
        shape = shape or (output[1],)
        super().__init__(
            name, inputs, {output[0]: shape}, output=output, cells=tuple(cells), tables=tuple(tables), tree=tree,
            has_parallel_runs=has_parallel_runs, shape=shape, divide=divide,
        )  # fmt: skip

    output: tuple[str, int]  # name and number of elements
    shape: Shape  # shape of the output
    cells: tuple[Cell, ...]
    tables: tuple[Array, ...]
    tree: PlaceTree
    has_parallel_runs: bool  # true if many runs are alike and independent, so that they can be vectorised (waves.py)
    divide: Callable[[int | None, int], Recursion] | None

    @property
    def outwards(self) -> tuple[bool, ...]:
        """Direction of each channel."""
        return self.cells[0].outwards

    @cached_property
    def counts(self) -> list[int]:
        """Number of places of each cell."""
        counts: list[int] = np.bincount(self.tree.cell_of_place, minlength=len(self.cells)).tolist()
        return counts

    @cached_property
    def wanted(self) -> tuple[tuple[bool, ...], ...]:
        """For each channel, a flag for each element: true if any cell reads it."""
        flags = []
        for k in range(len(self.outwards)):
            read = np.zeros(self.cells[0].graph.outputs[channel_output(k)].size, bool)
            for cell in self.cells:
                for n in cell.graph.nodes:
                    if n.op == "input" and n.args[0] in cell.sources(k):
                        read[n.args[1]] = True
            flags.append(tuple(read.tolist()))
        return tuple(flags)

    @cached_property
    def cell_loops(self) -> tuple[CellLoops, ...]:
        """The cells after loop fission."""
        loops = tuple(loop_fission(cell, self.wanted) for cell in self.cells)
        self._check(loops)
        return loops

    def _check(self, cuts: Sequence[CellLoops]) -> None:
        """Raise CompileError if the cells do not store every element that a place of the tree has."""
        coverage, elements = Coverage(self.name, self.shapes), self.tree.elements[RESULT]
        coverage.note(self.output[0], np.flatnonzero(~self.stored))
        for run in self.tree.runs:
            for k, cell in enumerate(run.cells):
                for body in cuts[cell].bodies:
                    for place in body.writes:
                        if place.kind == "output":
                            coverage.note(self.output[0], elements[run.places_of_cell(k), place.element])
        coverage.check()

    @cached_property
    def stored(self) -> Array:
        """Flags of the output elements that belong to a place; frames fixed to the ground have none and are unused."""
        elements = self.tree.elements[RESULT]
        flags = np.zeros(self.output[1], bool)
        flags[elements[elements >= 0]] = True
        return flags

    def check_whole(self) -> None:
        """Raise CompileError if an element of the output is not stored; a separate kernel must store all."""
        coverage = Coverage(self.name, self.shapes)
        coverage.note(self.output[0], np.flatnonzero(self.stored))
        coverage.check()

    def divided(self, most: int | None, shortest: int) -> Graph:
        """Divide long branches into at most `most` segments of at least `shortest` bodies, where they are divided."""
        return self.divide(most, shortest) if self.divide else self

    # -- cost

    def count(self) -> Count:
        """Count the operations of all places."""
        kinds = dict.fromkeys(KINDS, 0)
        for cell, n in zip(self.cells, self.counts, strict=True):
            for kind, c in cell.graph.count().by_kind.items():
                kinds[kind] += n * c
        return Count(kinds)

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return sum(n * cell.graph.work(cost) for cell, n in zip(self.cells, self.counts, strict=True))

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the length of the longest dependent path; `cost` is by operation name."""
        return recursion_interpreter.span(self, operation_costs(cost))

    @property
    def size(self) -> int:
        """Number of nodes of all places."""
        return sum(n * cell.graph.size for cell, n in zip(self.cells, self.counts, strict=True))

    # -- reference evaluation

    def evaluate(self, **values: Any) -> dict[str, Array]:
        """Evaluate with numpy; `values` are the inputs by name, with any leading axes."""
        arrays = checked_inputs(self.name, self.inputs, values)
        return {self.output[0]: recursion_interpreter.evaluate(self, arrays)}

    other_ways = (
        'Loops over identical bodies exist for target="cpu" and target="cuda", and for the quantities that '
        "docs/size.md lists."
    )

    def write_out(self) -> Graph:
        """Return the equivalent graph of nodes, however large."""
        return recursion_interpreter.expand(self)

    def loops(self) -> LoopProgram:
        """Return the recursion as loops over the places of each run."""
        from bellcrank.graph.loops.recursions import recursion_loops

        return recursion_loops(self)

    @property
    def extent(self) -> str:
        """Number of places and cells, for messages."""
        return f"{len(self.tree.parent)} places of {len(self.cells)} kinds"

    def code_key(self, known: dict[int, Any]) -> tuple[Any, ...]:
        """Return the cells, the constants of every place, and the tree; `known` as in `structure`."""
        cells = tuple((structure(c.graph, known), c.outwards, c.children, c.on_ground) for c in self.cells)
        tree = self.tree
        arrays = (*self.tables, tree.parent, tree.children, *tree.elements.values())
        numbers = tuple((x.shape, x.dtype.str, x.tobytes()) for x in arrays)
        result_key = tuple(self.inputs.items()), self.output, self.shape
        return *result_key, cells, numbers, tuple(tree.elements), tree.runs, tree.chained

    def __str__(self) -> str:
        """Return a summary of the cells; the cells are graphs and print themselves."""
        rows = [
            f"  {n:>7} x {name}: {work} operations, {constants} constants of its own, {kept_count} numbers kept"
            for n, name, work, constants, kept_count in self.kinds
        ]
        return "\n".join([repr(self), *rows])

    @property
    def kinds(self) -> list[tuple[int, str, int, int, int]]:
        """For each cell: number of places, name, operations, constants in its table, values stored between loops."""
        return [
            (n, cell.graph.name, cell.graph.count().arithmetic, table.shape[1], cut.stored_values)
            for n, cell, table, cut in zip(self.counts, self.cells, self.tables, self.cell_loops, strict=True)
        ]


def has_parallel_runs(graph: Graph) -> TypeGuard[Recursion]:
    """Return whether `graph` is a recursion with many runs that are alike and independent."""
    return isinstance(graph, Recursion) and graph.has_parallel_runs


def recursions(graph: Graph) -> list[Recursion]:
    """Return the recursions among `graph` and the graphs that it calls."""
    return [g for g in (graph, *graph.calls) if isinstance(g, Recursion)]
