"""A graph that is a recursion over a tree of cells: alike parts exist once, and are run for as many as there are.

It is a Graph like any other (named inputs, one named output, count, work, span, evaluate), but it does not hold a node
for each operation: `cells` are few, and `cell_of` says which of them each place of the tree is. Whoever asks for
`nodes`, as targets do that know nothing of recursions, gets them: written out, once, if there are not too many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank import patience
from bellcrank.errors import InputError
from bellcrank.graph import recursion_nodes, recursion_numbers, recursion_span
from bellcrank.graph.cells import RESULT, Cell, Cut, cut, handed
from bellcrank.graph.coverage import Coverage
from bellcrank.graph.graph import Array, Count, Graph, Shape
from bellcrank.graph.numbers import checked
from bellcrank.graph.span import weights
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import KINDS
from bellcrank.nodes.tape import Tape
from bellcrank.quoting import line
from bellcrank.room import free_memory

MOST_WRITTEN = 5_000_000  # operations that are written out one by one
WRITTEN = 1_600  # bytes that each of them takes


@dataclass(frozen=True)
class Run:
    """Places [begin, end) where the same cells come again and again, in this order; rows: where each of them begins in
    its table.
    """

    cells: tuple[int, ...]
    begin: int
    end: int
    rows: tuple[int, ...]

    @property
    def repeats(self) -> int:
        return (self.end - self.begin) // len(self.cells)

    def step(self, k: int) -> int:
        """Rows from one kth cell to the next."""
        return self.cells.count(self.cells[k])

    def at(self, k: int) -> Array:
        """The places of its kth cell."""
        return np.arange(self.begin + k, self.end, len(self.cells))


@dataclass(frozen=True, eq=False)
class Tree:
    """Places, parents before children. children: (places, most children), -1 where there are fewer. elements: for an
    input and for the result, which elements are those of a place, (places, most), -1 where there are fewer.
    """

    parent: Array
    children: Array
    elements: Mapping[str, Array]
    runs: tuple[Run, ...]
    chained: bool  # whether in a run each hangs on the one before; else none hangs on another


class Recursion(Graph):
    """cells, and for each a table with a row for every place that is it."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        output: tuple[str, int],
        cells: Sequence[Cell],
        tables: Sequence[Array],
        tree: Tree,
        abreast: bool = False,
        shape: Shape = (),
    ) -> None:
        for key, value in (("name", name), ("inputs", dict(inputs))):
            object.__setattr__(self, key, value)
        self.__dict__.update(output=output, cells=tuple(cells), tables=tuple(tables), tree=tree, abreast=abreast)
        self.__dict__.update(recut=None, shape=shape or (output[1],))

    output: tuple[str, int]  # its name, and how many elements it has
    shape: Shape  # in which they lie
    cells: tuple[Cell, ...]
    tables: tuple[Array, ...]
    tree: Tree
    abreast: bool  # whether many of its runs are alike and wait for each other not: they go side by side (waves.py)
    recut: Callable[..., Recursion] | None  # the same in fewer runs: so many of a row at most, if there may be many

    @property
    def shapes(self) -> dict[str, Shape]:
        return {self.output[0]: self.shape}

    opaque = True  # what it gives is known when it has run, and not before

    @property
    def calls(self) -> list[Graph]:
        return []

    @property
    def outwards(self) -> tuple[bool, ...]:
        return self.cells[0].outwards

    @cached_property
    def counts(self) -> list[int]:
        """Of every cell, how many there are."""
        found = [0] * len(self.cells)
        for run in self.tree.runs:
            for cell in run.cells:
                found[cell] += run.repeats
        return found

    @cached_property
    def wanted(self) -> tuple[tuple[bool, ...], ...]:
        """Of what each channel carries, what any cell reads."""
        found = []
        for k in range(len(self.outwards)):
            read = np.zeros(self.cells[0].graph.outputs[handed(k)].size, bool)
            for cell in self.cells:
                for n in cell.graph.nodes:
                    if n.op == "input" and n.args[0] in cell.sources(k):
                        read[n.args[1]] = True
            found.append(tuple(read.tolist()))
        return tuple(found)

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        found = tuple(cut(cell, self.wanted) for cell in self.cells)
        self._check(found)
        return found

    def _check(self, cuts: Sequence[Cut]) -> None:
        """Raise CompileError if the cells do not store every element that a place of the tree has."""
        coverage, elements = Coverage(self.name, self.shapes), self.tree.elements[RESULT]
        coverage.note(self.output[0], np.flatnonzero(~self.stored))
        for run in self.tree.runs:
            for k, cell in enumerate(run.cells):
                for body in cuts[cell].bodies:
                    for place in body.writes:
                        if place.kind == "output":
                            coverage.note(self.output[0], elements[run.at(k), place.element])
        coverage.check()

    @cached_property
    def stored(self) -> Array:
        """Which elements of the output some place has. (Frames on the ground have none: nobody reads them.)"""
        elements = self.tree.elements[RESULT]
        found = np.zeros(self.output[1], bool)
        found[elements[elements >= 0]] = True
        return found

    def check_whole(self) -> None:
        """Raise CompileError if an element of the output is not stored, as a kernel of its own must."""
        coverage = Coverage(self.name, self.shapes)
        coverage.note(self.output[0], np.flatnonzero(self.stored))
        coverage.check()

    # -- what it costs

    def count(self) -> Count:
        kinds = dict.fromkeys(KINDS, 0)
        for cell, n in zip(self.cells, self.counts, strict=True):
            for kind, c in cell.graph.count().by_kind.items():
                kinds[kind] += n * c
        return Count(kinds)

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        return sum(n * cell.graph.work(cost) for cell, n in zip(self.cells, self.counts, strict=True))

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        return recursion_span.span(self, weights(cost))

    @property
    def size(self) -> int:
        return sum(n * cell.graph.size for cell, n in zip(self.cells, self.counts, strict=True))

    # -- the definition

    def evaluate(self, **values: Any) -> dict[str, Array]:
        arrays = checked(self.name, self.inputs, values)
        return {self.output[0]: recursion_numbers.result(self, arrays)}

    # -- written out, for whoever knows no recursion

    @cached_property
    def written(self) -> Graph:
        """The same as one graph of nodes."""
        operations = self.count().arithmetic
        if operations > MOST_WRITTEN:
            raise InputError(
                f"{self.name} is {operations:,} operations of {len(self.cells)} kinds of parts, and what is asked for "
                f"needs them one by one; at most {MOST_WRITTEN:,} are written out. Loops over parts are made for "
                'target="cpu" and target="cuda", and for the quantities that docs/size.md lists.'
            )
        if WRITTEN * operations > (free := free_memory()):
            raise InputError(
                f"{self.name}, operation by operation: {operations:,} of them, some "
                f"{WRITTEN * operations / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free. Nothing was begun. Take fewer "
                "bodies."
            )
        with patience.said(f"writing out {operations:,} operations of {line(self.name)}"):
            return recursion_nodes.written(self)

    @cached_property
    def outputs(self) -> Mapping[str, Array]:
        return self.written.outputs

    @cached_property
    def tape(self) -> Tape:
        return self.written.tape

    @cached_property
    def nodes(self) -> list[Node]:
        return self.written.nodes

    def __repr__(self) -> str:
        n = len(self.tree.parent)
        return f"<Recursion {self.name}: {n} places of {len(self.cells)} kinds, {self.count().arithmetic} operations>"

    def __str__(self) -> str:
        """What it is made of; the cells are graphs, and print themselves."""
        rows = [
            f"  {n:>7} x {name}: {work} operations, {constants} constants of its own, {kept} numbers kept"
            for n, name, work, constants, kept in self.kinds
        ]
        return "\n".join([repr(self), *rows])

    @property
    def kinds(self) -> list[tuple[int, str, int, int, int]]:
        """Of every cell: how many there are, its name, operations, constants in its table, numbers kept for later."""
        return [
            (n, cell.graph.name, cell.graph.count().arithmetic, table.shape[1], cut.kept)
            for n, cell, table, cut in zip(self.counts, self.cells, self.tables, self.cuts, strict=True)
        ]
