"""Loops over a run of cells of a recursion: what cells read and write, and what is carried from cell to cell.

WaveLoops are the procedures for parallel runs (graph/waves.py), one for each channel and the runs of equal shape. A
bundle is as many runs as there are lanes. What a run keeps for later lies beside that of the other runs of its bundle,
so that lanes need no gathering:

    angles, sines, cosines       of a shape: (bundle, place in the run, index, lane)
    kept                         likewise
    sent                         (first or last place of a run, element of all channels), one number each
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.graph.cells import ANGLES_CHANNEL, RESULT, CellOperand
from bellcrank.graph.loops.statements import (
    LANE,
    ZERO,
    ArrayName,
    Block,
    Carried,
    Counter,
    Element,
    Index,
    Invoke,
    Lookup,
    Loop,
    LoopProgram,
    Operand,
    Procedure,
    Statement,
    Variable,
    copy,
    index_of,
)
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.waves import WaveCode

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


class WaveLoop(RunLoop):
    """Statements for one run of a shape in one channel, or for a run in each lane."""

    owner: WaveLoops

    def __init__(self, owner: WaveLoops, channel: int, shape: int) -> None:
        self.number, self.shape = shape, owner.shapes[shape]
        super().__init__(owner, channel, self.shape.cells, self.shape.places > 1)
        self.turn = Variable("t")

    def loop(self, carried: tuple[Carried, ...], blocks: Sequence[Block]) -> tuple[Statement, ...]:
        """Return the loop over the `blocks` of all cells, with `carried` values; a single place needs none."""
        if self.shape.places == 1:
            return tuple(blocks)
        repeats = self.shape.repeats
        counter = Counter(self.turn, ZERO) if self.forwards else Counter(self.turn, Index(repeats - 1), -1)
        return (Loop(Index(repeats), (counter,), carried, tuple(blocks)),)

    @property
    def round(self) -> Index:
        """Number of the repetition of the cells."""
        return ZERO if self.shape.places == 1 else index_of(self.turn)

    def ends(self) -> tuple[Index, Index]:
        """Return the first and the last place of the run."""
        begin = self.owner.lookup(f"begins{self.number}", self.shape.begins, self.owner.run(self.shape))
        return begin, begin.plus(self.shape.places - 1)

    def place_in_run(self, j: int) -> Index:
        """Return the place of cell `j`, counted from the first one of the run."""
        return self.round.times(len(self.pattern)).plus(j)

    def place(self, j: int) -> Index:
        """Return the place of cell `j`."""
        return self.ends()[0].plus(self.place_in_run(j))

    def row(self, j: int) -> Index:
        """Return the row of cell `j` in its table of constants."""
        first = self.owner.lookup(f"rows{self.number}_{j}", self.shape.rows(j), self.owner.run(self.shape))
        return first.plus(self.round.times(self.pattern.count(self.pattern[j])))

    def memory(self, x: CellOperand, j: int) -> Element:
        """Return where the kept value or the angle `x` of cell `j` lies."""
        width = self.owner.widths(self.shape)[x.kind]
        index = self.place_in_run(j).times(width).plus(x.element)
        return Element((x.kind, self.number), self.owner.beside(self.shape, width, index))

    def index(self, table: str, values: Array, j: int) -> Index:
        """Return the index that follows from the place: with a constant step along each run, or by a table.

        Parameters
        ----------
        table
            Name of the table.
        values
            Index for every place.
        j
            Cell of the pattern.
        """
        numbers = values[self.shape.places_of_cell(j)]
        steps = np.unique(np.diff(numbers, axis=1))
        if len(steps) > 1:
            return self.owner.lookup(table, values, self.place(j))
        first = self.owner.lookup(f"{table}_{self.number}_{j}", numbers[:, 0], self.owner.run(self.shape))
        return first.plus(self.round.times(int(steps[0]) if len(steps) else 0))


class WaveLoops(Runs):
    """Memory, tables and procedures for runs in lanes; a procedure takes the first bundle and the end of bundles."""

    loop = WaveLoop

    def __init__(self, r: Recursion, shapes: Sequence[WaveCode], lanes: int) -> None:
        """Describe the loops of the recursion `r` over runs of the `shapes`, for a number of `lanes`."""
        super().__init__(r)
        self.shapes, self.lanes, self.bundle = shapes, lanes, Variable("b")
        # Values of parallel runs are stored next to each other.
        ways = [way for shape in shapes for way in (shape.begins, shape.begins + shape.places - 1)]
        parents = [r.tree.parent[shape.begins] for shape in shapes]
        ends = np.array(list(dict.fromkeys(x for x in np.concatenate([*ways, *parents]).tolist() if x >= 0)))
        self.slots = np.full(len(r.tree.parent) + 1, -1)  # the last entry stands for a missing neighbour
        self.slots[ends] = np.arange(len(ends))
        self.slot_count = len(ends)
        self.procedures: dict[tuple[int, int], Procedure] = {}
        for k in (ANGLES_CHANNEL, *range(len(r.outwards))):
            for i in range(len(shapes)):
                loop = self.loop(self, k, i)
                if loop.has_work:
                    self.procedures[k, i] = self.procedure(f"{'angles' if k == ANGLES_CHANNEL else k}_{i}", loop)

    def procedure(self, name: str, loop: WaveLoop) -> Procedure:
        """Return the procedure `name` that executes the `loop` of each bundle."""
        first, end = Variable("first"), Variable("last")
        count, counter = index_of(end).plus(index_of(first).times(-1)), Counter(self.bundle, index_of(first))
        return Procedure(name, (first, end), (Loop(count, (counter,), (), loop.statements()),))

    def program(self) -> LoopProgram:
        """Return all procedures with memory and tables; their caller knows which ones may run at the same time."""
        memory: dict[ArrayName, int] = {}
        for kind in ("angle", "sine", "cosine", "kept"):
            for i, shape in enumerate(self.shapes):
                memory[kind, i] = len(shape.runs) * shape.places * self.widths(shape)[kind]
        memory["sent", 0] = self.slot_count * len(self.field)
        constants = {k: table for k, table in enumerate(self.r.tables) if table.size}
        return LoopProgram(tuple(map(Invoke, self.procedures.values())), memory, constants, self.tables)

    def widths(self, shape: WaveCode) -> dict[str, int]:
        """Return the numbers of each kind that a place of a run of the `shape` has."""
        cuts = [self.r.cell_loops[cell] for cell in shape.cells]
        angles = max(cut.angle_count for cut in cuts)
        return dict.fromkeys(("angle", "sine", "cosine"), angles) | {"kept": max(cut.stored_values for cut in cuts)}

    def run(self, shape: WaveCode) -> Index:
        """Return the number of the run of a `shape`."""
        return Index(0, ((self.lanes, self.bundle), (1, LANE)))

    def beside(self, shape: WaveCode, width: int, index: Index) -> Index:
        """Return where number `index` of those of a run of `shape` lies in memory; each place has `width` of them."""
        bundle = index_of(self.bundle).times(shape.places * width)
        return bundle.plus(index).times(self.lanes).plus(index_of(LANE))

    def slot(self, neighbour: str, place: Index, channel: int) -> Index:
        """Return the slot of what a `neighbour` of `place`, or with "" itself, sends through `channel`."""
        if not neighbour:
            return self.lookup("slot", self.slots[:-1], place)
        return self.lookup(neighbour, self.slots[neighbours(self.r, neighbour)], place)
