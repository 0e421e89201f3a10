"""Loops over a run of cells of a recursion: what cells read and write, and what is carried from cell to cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.graph.cells import ANGLES_CHANNEL, RESULT, CellOperand
from bellcrank.graph.loops.statements import (
    Block,
    Carried,
    Element,
    Index,
    Lookup,
    Operand,
    Statement,
    Variable,
    copy,
    index_of,
)
from bellcrank.graph.recursion import Recursion

Array = np.ndarray[Any, Any]


def neighbours(r: Recursion, kind: str) -> Array:
    """Return the neighbour of each place of `r`: of the `kind` "parent", or "child0", ..."""
    return r.tree.parent if kind == "parent" else r.tree.children[:, int(kind.removeprefix("child"))]


class Runs(ABC):
    """All runs of a recursion, with the tables of integers that their loops use."""

    def __init__(self, r: Recursion) -> None:
        self.r, self.tables = r, dict[str, Array]()
        wanted = [(k, e) for k, flags in enumerate(r.wanted) for e in np.flatnonzero(flags).tolist()]
        self.field = {element: f for f, element in enumerate(wanted)}  # of each element that any cell reads

    @abstractmethod
    def slot(self, neighbour: str, place: Index, channel: int) -> Index:
        """Return the slot of what a `neighbour` of `place`, or with "" itself, sends through `channel`."""

    def lookup(self, table: str, values: Array, index: Index) -> Index:
        """Return the entry of the `table` of `values` at `index`."""
        self.tables[table] = values
        return index_of(Lookup(table, index))

    def sent(self, neighbour: str, place: Index, channel: int, e: int) -> Element:
        """Return where element `e` lies that a `neighbour` of `place`, or with "" itself, sends through `channel`."""
        slot = self.slot(neighbour, place, channel)
        return Element(("sent", 0), slot.times(len(self.field)).plus(self.field[channel, e]))


class RunLoop(ABC):
    """Loop over the cells of a run in one channel."""

    def __init__(self, owner: Runs, channel: int, pattern: tuple[int, ...], carries: bool) -> None:
        """Select the cells.

        Parameters
        ----------
        owner
            All runs.
        channel
            Number of the channel, or ANGLES_CHANNEL.
        pattern
            Cells of one turn.
        carries
            Whether each cell is the neighbour of the one before.
        """
        self.owner, self.r, self.channel, self.pattern = owner, owner.r, channel, pattern
        self.forwards = channel == ANGLES_CHANNEL or self.r.outwards[channel]
        self.carries = carries and channel != ANGLES_CHANNEL
        self.bodies = [self.r.cell_loops[cell].body(channel) for cell in pattern]
        self.previous: dict[int, Variable] = {}  # values that the cell before sent

    @abstractmethod
    def loop(self, carried: tuple[Carried, ...], blocks: Sequence[Block]) -> tuple[Statement, ...]:
        """Return the loop over the `blocks` of all cells, with `carried` values."""

    @abstractmethod
    def ends(self) -> tuple[Index, Index]:
        """Return the first and the last place of the run."""

    @abstractmethod
    def place(self, j: int) -> Index:
        """Return the place of cell `j` of the pattern."""

    @abstractmethod
    def row(self, j: int) -> Index:
        """Return the row of cell `j` in its table of constants."""

    @abstractmethod
    def memory(self, x: CellOperand, j: int) -> Element:
        """Return where the kept value or the angle `x` of cell `j` lies."""

    @abstractmethod
    def index(self, table: str, values: Array, j: int) -> Index:
        """Return the index that follows from the place of cell `j`: by a formula, or by a `table` of all `values`."""

    @property
    def has_work(self) -> bool:
        """Return whether any cell of the run computes something."""
        return any(body.writes for body in self.bodies)

    def statements(self) -> tuple[Statement, ...]:
        """Return the loop over the run, and the stores of what its last cell sends."""
        order = range(len(self.pattern))
        (first_place, last_place), source = self.ends(), "parent"
        if not self.forwards:
            order, first_place, last_place, source = order[::-1], last_place, first_place, "child0"
        received = sorted({x.element for x in self.bodies[order[0]].reads if self.is_carried(x)})
        first = {e: self.owner.sent(source, first_place, self.channel, e) for e in received}
        self.previous = arriving = {e: Variable("c") for e in received}
        blocks = [block for j in order for block in self.blocks(j)]
        leaving = self.previous if self.carries else {}
        carried = {e: arriving.get(e) or Variable("c") for e in {**arriving, **leaving}}
        values = tuple(Carried(c, first.get(e, 0.0), leaving[e]) for e, c in carried.items())
        stores = [(carried[e], self.owner.sent("", last_place, self.channel, e)) for e in leaving]
        return *self.loop(values, blocks), *([copy(stores)] if stores else [])

    def is_carried(self, x: CellOperand) -> bool:
        """Return whether `x` is a value that the cell before sends in this loop."""
        in_channel = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and in_channel and (x.kind == "parent" or x.child == 0)

    def blocks(self, j: int) -> list[Block]:
        """Return the operations of cell `j` of the pattern."""
        body = self.bodies[j]
        reads = tuple(self.previous[x.element] if self.is_carried(x) else self.element(x, j) for x in body.reads)
        is_shared = self.forwards and self.r.cells[self.pattern[j]].children > 1  # also read later, by other children
        sent: dict[int, Variable] = {}
        writes: list[tuple[int, Operand]] = []
        for k, x in enumerate(body.writes):
            if x.kind == "handed":
                sent[x.element] = Variable("t")
                writes.append((k, sent[x.element]))
            if x.kind != "handed" or not self.carries or is_shared:
                writes.append((k, self.element(x, j)))
        self.previous = sent
        return [Block(body.graph, reads, tuple(writes))]

    def element(self, x: CellOperand, j: int) -> Element:
        """Return where operand `x` of cell `j` of the pattern lies."""
        tree, cell = self.r.tree, self.pattern[j]
        if x.kind == "table":
            return Element(("table", cell), self.row(j).times(self.r.tables[cell].shape[1]).plus(x.element))
        if x.kind == "input":
            values = tree.elements[x.name][:, x.element]
            return Element(("in", x.name), self.index(f"in_{x.name}_{x.element}", values, j))
        if x.kind == "output":
            values = tree.elements[RESULT][:, x.element]
            return Element(("out", self.r.output[0]), self.index(f"out_{x.element}", values, j))
        if x.kind in ("parent", "child", "handed"):
            neighbour = {"parent": "parent", "child": f"child{x.child}", "handed": ""}[x.kind]
            return self.owner.sent(neighbour, self.place(j), int(x.name), x.element)
        return self.memory(x, j)
