"""Recursion as loops: for each channel, a procedure for every repeated sequence of cells, with an index of the place.

Values that a cell sends to the next one are carried by the loop, and are stored only where other loops read them: at
the ends of a run, and at bodies with several children. Values that later loops need lie in memory:

    angles, sines, cosines       of all places, each contiguous, so that one statement computes them
    sent                         (slot of the place, element of all channels); along branches only the ends of runs
    kept                         (place, field)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.graph.cells import ANGLES_CHANNEL, RESULT, CellOperand
from bellcrank.graph.loops.statements import (
    Block,
    Carried,
    Choose,
    Counter,
    Element,
    Index,
    Invoke,
    Lookup,
    Loop,
    LoopProgram,
    Operand,
    Procedure,
    SinCos,
    Statement,
    Variable,
    copy,
    index_of,
)
from bellcrank.graph.recursion import Recursion

Array = np.ndarray[Any, Any]
MAX_DIRECT_CALLS = 40  # runs that are called one by one; with more, a loop over a table calls them
PATTERN, BEGIN, REPEATS, ROWS = range(4)  # columns of the table of runs; first rows of the constants follow


def recursion_loops(r: Recursion) -> LoopProgram:
    """Return the recursion `r` as loops."""
    return RecursionLoops(r).program()


class RecursionLoops:
    """Memory, tables and procedures of a recursion."""

    def __init__(self, r: Recursion) -> None:
        self.r, self.places = r, len(r.tree.parent)
        counts = [cut.angle_count for cut in r.cell_loops]
        cell_of = np.concatenate([np.tile(run.cells, run.repeats) for run in r.tree.runs])
        angles_before = np.concatenate([[0], np.cumsum(np.array(counts, int)[cell_of])])
        self.angle_count = int(angles_before[-1])
        self.angle_of = angles_before[:-1, None] + np.arange(max(1, *counts))[None]
        wanted = [(k, e) for k, flags in enumerate(r.wanted) for e in np.flatnonzero(flags).tolist()]
        self.field = {element: f for f, element in enumerate(wanted)}
        self.kept_width = max(cut.stored_values for cut in r.cell_loops)
        self.patterns = list(dict.fromkeys(run.cells for run in r.tree.runs))
        self.tables: dict[str, Array] = {}  # index tables that are used
        self.procedures = {
            (k, pattern): procedure
            for k in (ANGLES_CHANNEL, *range(len(r.outwards)))
            for pattern in self.patterns
            if (procedure := CellLoop(self, k, pattern).procedure()) is not None
        }

    def program(self) -> LoopProgram:
        """Return all statements, with memory and tables."""
        body = self.channel(ANGLES_CHANNEL)
        if self.angle_count:
            body.append(SinCos(self.angle_count, *(Element((kind, 0)) for kind in ("angle", "sine", "cosine"))))
        for k in range(len(self.r.outwards)):
            body += self.channel(k)
        memory = {
            **{(kind, 0): self.angle_count for kind in ("angle", "sine", "cosine")},
            ("sent", 0): (int(self.slots.max(initial=-1)) + 1) * len(self.field),
            ("kept", 0): self.places * self.kept_width,
        }
        constants = {k: table for k, table in enumerate(self.r.tables) if table.size}
        return LoopProgram(tuple(body), memory, constants, self.tables)

    @cached_property
    def slots(self) -> Array:
        """The slot of the values that each place sends; -1 if they are carried only.

        Along a branch only the ends of runs have slots. Memory for all would be several times what the loops touch, and
        be returned to the system after each call.
        """
        if not self.r.tree.chained:
            return np.arange(self.places)
        parent = self.r.tree.parent
        ends = np.unique([x for run in self.r.tree.runs for x in (run.begin, run.end - 1, parent[run.begin])])
        slots = np.full(self.places, -1)
        slots[ends[ends >= 0]] = np.arange(int((ends >= 0).sum()))
        return slots

    def channel(self, k: int) -> list[Statement]:
        """Return the calls of all procedures of channel `k`, in order."""
        forwards = k == ANGLES_CHANNEL or self.r.outwards[k]
        runs = self.r.tree.runs if forwards else self.r.tree.runs[::-1]
        procedures = {pattern: self.procedures.get((k, pattern)) for pattern in self.patterns}
        if len(runs) <= MAX_DIRECT_CALLS:
            calls = [(procedures[run.cells], (run.begin, run.repeats, *run.rows)) for run in runs]
            return [Invoke(f, tuple(map(Index, numbers))) for f, numbers in calls if f is not None]
        width, turn = ROWS + max(map(len, self.patterns)), Variable("n")
        rows = [(self.patterns.index(run.cells), run.begin, run.repeats, *run.rows) for run in self.r.tree.runs]
        self.tables["runs"] = np.array([(*row, *[0] * (width - len(row))) for row in rows])
        start, step = (0, 1) if forwards else (len(runs) - 1, -1)

        def column(j: int) -> Index:
            return index_of(Lookup("runs", Index(j, ((width, turn),))))

        cases = {
            p: Invoke(f, tuple(map(column, range(BEGIN, ROWS + len(pattern)))))
            for p, (pattern, f) in enumerate(procedures.items())
            if f is not None
        }
        choice = Choose(column(PATTERN), cases)
        return [Loop(Index(len(runs)), (Counter(turn, Index(start), step),), (), (choice,))] if cases else []

    def lookup(self, table: str, values: Array, index: Index) -> Index:
        """Return the entry of the `table` of `values` at `index`."""
        self.tables[table] = values
        return index_of(Lookup(table, index))

    def sent(self, place: Index, channel: int, e: int) -> Element:
        """Return where element `e` that `place` sends through `channel` lies."""
        slot = self.lookup("slot", self.slots, place) if self.r.tree.chained else place
        return Element(("sent", 0), slot.times(len(self.field)).plus(self.field[channel, e]))


class CellLoop:
    """Procedure for a run of cells in one channel, from `begin`, with a given number of repeats."""

    def __init__(self, owner: RecursionLoops, channel: int, pattern: tuple[int, ...]) -> None:
        self.owner, self.r, self.channel, self.pattern = owner, owner.r, channel, pattern
        self.forwards = channel == ANGLES_CHANNEL or self.r.outwards[channel]
        self.carries = channel != ANGLES_CHANNEL and self.r.tree.chained
        self.bodies = [self.r.cell_loops[cell].body(channel) for cell in pattern]
        self.begin, self.repeats = Variable("begin"), Variable("count")
        self.first_rows = [Variable(f"row_{j}") for j in range(len(pattern))]
        self.place, self.rows = Variable("i"), [Variable(f"row_{j}") for j in range(len(pattern))]
        self.previous: dict[int, Variable] = {}  # values that the cell before sent

    def procedure(self) -> Procedure | None:
        """Return the procedure; None if the run has nothing to compute."""
        if not any(body.writes for body in self.bodies):
            return None
        tree, order = self.r.tree, range(len(self.pattern))
        begin, end = index_of(self.begin), index_of(self.begin).plus(index_of(self.repeats).times(len(order)))
        first_place, last_place, neighbours, table = begin, end.plus(-1), tree.parent, "parent"
        if not self.forwards:
            order, first_place, last_place = order[::-1], last_place, first_place
            neighbours, table = tree.children[:, 0], "child0"
        first: dict[int, float | Operand] = {}
        received = sorted({x.element for x in self.bodies[order[0]].reads if self.is_carried(x)})
        if received:
            before = self.owner.lookup(table, neighbours, first_place)
            first = {e: self.owner.sent(before, self.channel, e) for e in received}
        self.previous = arriving = {e: Variable("c") for e in received}
        blocks = [self.block(j) for j in order]
        leaving = self.previous if self.carries else {}
        carried = {e: arriving.get(e) or Variable("c") for e in {**arriving, **leaving}}
        values = tuple(Carried(c, first.get(e, 0.0), leaving[e]) for e, c in carried.items())
        loop = Loop(index_of(self.repeats), self.counters(blocks), values, tuple(blocks))
        stores = [copy(carried[e], self.owner.sent(last_place, self.channel, e)) for e in leaving]
        channel = "angles" if self.channel == ANGLES_CHANNEL else f"channel{self.channel}"
        name = f"{channel}_{self.owner.patterns.index(self.pattern)}"
        return Procedure(name, (self.begin, self.repeats, *self.first_rows), (loop, *stores))

    def counters(self, blocks: Sequence[Block]) -> tuple[Counter, ...]:
        """Return the counters of place and table rows that `blocks` use; an inward loop begins with the last ones."""
        read = {x.array for block in blocks for x in block.reads if isinstance(x, Element)}
        counters = [(self.place, self.begin, len(self.pattern))]
        for row, first_row, cell in zip(self.rows, self.first_rows, self.pattern, strict=True):
            if ("table", cell) in read:
                counters.append((row, first_row, self.pattern.count(cell)))
        if self.forwards:
            return tuple(Counter(x, index_of(start), step) for x, start, step in counters)
        last_turn = index_of(self.repeats).plus(-1)
        return tuple(Counter(x, index_of(start).plus(last_turn.times(step)), -step) for x, start, step in counters)

    def is_carried(self, x: CellOperand) -> bool:
        """Return whether `x` is a value that the cell before sends in this loop."""
        in_channel = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and in_channel and (x.kind == "parent" or x.child == 0)

    def block(self, j: int) -> Block:
        """Return the operations of cell `j` of the pattern."""
        body, place = self.bodies[j], index_of(self.place).plus(j)
        reads = tuple(self.previous[x.element] if self.is_carried(x) else self.element(x, place, j) for x in body.reads)
        is_shared = self.forwards and self.r.cells[self.pattern[j]].children > 1  # also read later, by other children
        sent: dict[int, Variable] = {}
        writes: list[tuple[int, Operand]] = []
        for k, x in enumerate(body.writes):
            if x.kind == "handed":
                sent[x.element] = Variable("t")
                writes.append((k, sent[x.element]))
            if x.kind != "handed" or not self.carries or is_shared:
                writes.append((k, self.element(x, place, j)))
        self.previous = sent
        return Block(body.graph, reads, tuple(writes))

    def element(self, x: CellOperand, place: Index, j: int) -> Element:
        """Return where operand `x` of cell `j` lies, for the cell at `place`."""
        owner, tree = self.owner, self.r.tree
        if x.kind == "table":
            width = self.r.tables[self.pattern[j]].shape[1]
            return Element(("table", self.pattern[j]), index_of(self.rows[j]).times(width).plus(x.element))
        if x.kind == "kept":
            return Element(("kept", 0), place.times(owner.kept_width).plus(x.element))
        if x.kind in ("angle", "sine", "cosine"):
            return Element((x.kind, 0), self.index(f"angle_{x.element}", owner.angle_of[:, x.element], place, j))
        if x.kind == "input":
            return Element(
                ("in", x.name), self.index(f"in_{x.name}_{x.element}", tree.elements[x.name][:, x.element], place, j)
            )
        if x.kind == "output":
            values = tree.elements[RESULT][:, x.element]
            return Element(("out", self.r.output[0]), self.index(f"out_{x.element}", values, place, j))
        if x.kind == "parent":
            place = owner.lookup("parent", tree.parent, place)
        elif x.kind == "child":
            place = owner.lookup(f"child{x.child}", tree.children[:, x.child], place)
        return owner.sent(place, int(x.name), x.element)

    def index(self, table: str, values: Array, place: Index, j: int) -> Index:
        """Return the index that follows from the place: by a linear formula if there is one, else by a table.

        Parameters
        ----------
        table
            Name of the table.
        values
            Index for every place.
        place
            The place.
        j
            Cell of the pattern.
        """
        places = np.concatenate([run.places_of_cell(j) for run in self.r.tree.runs if run.cells == self.pattern])
        numbers = values[places]
        slope = 1
        if places[-1] > places[0]:
            slope = int((numbers[-1] - numbers[0]) // (places[-1] - places[0]))
        offset = numbers - slope * places
        if (offset == offset[0]).all():
            return place.times(slope).plus(int(offset[0]))
        return self.owner.lookup(table, values, place)
