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

from bellcrank.graph.cells import ANGLES_CHANNEL, CellOperand
from bellcrank.graph.loops.runs import RunLoop, Runs, neighbours
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
    Procedure,
    SinCos,
    Statement,
    Variable,
    index_of,
)
from bellcrank.graph.recursion import Recursion

Array = np.ndarray[Any, Any]
MAX_DIRECT_CALLS = 40  # runs that are called one by one; with more, a loop over a table calls them
PATTERN, BEGIN, REPEATS, ROWS = range(4)  # columns of the table of runs; first rows of the constants follow


def recursion_loops(r: Recursion) -> LoopProgram:
    """Return the recursion `r` as loops."""
    return RecursionLoops(r).program()


class RecursionLoops(Runs):
    """Memory, tables and procedures of a recursion."""

    def __init__(self, r: Recursion) -> None:
        super().__init__(r)
        self.places = len(r.tree.parent)
        counts = [cut.angle_count for cut in r.cell_loops]
        angles_before = np.concatenate([[0], np.cumsum(np.array(counts, int)[r.tree.cell_of_place])])
        self.angle_count = int(angles_before[-1])
        self.angle_of = angles_before[:-1, None] + np.arange(max(1, *counts))[None]
        self.kept_width = max(cut.stored_values for cut in r.cell_loops)
        self.patterns = list(dict.fromkeys(run.cells for run in r.tree.runs))
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

    def slot(self, neighbour: str, place: Index, channel: int) -> Index:
        """Return the slot of what a `neighbour` of `place`, or with "" itself, sends through `channel`."""
        if neighbour:
            place = self.lookup(neighbour, neighbours(self.r, neighbour), place)
        return self.lookup("slot", self.slots, place) if self.r.tree.chained else place


class CellLoop(RunLoop):
    """Procedure for a run of cells in one channel, from `begin`, with a given number of repeats."""

    owner: RecursionLoops

    def __init__(self, owner: RecursionLoops, channel: int, pattern: tuple[int, ...]) -> None:
        super().__init__(owner, channel, pattern, owner.r.tree.chained)
        self.begin, self.repeats = Variable("begin"), Variable("count")
        self.first_rows = [Variable(f"row_{j}") for j in range(len(pattern))]
        self.first_place, self.rows = Variable("i"), [Variable(f"row_{j}") for j in range(len(pattern))]

    def procedure(self) -> Procedure | None:
        """Return the procedure; None if the run has nothing to compute."""
        if not self.has_work:
            return None
        channel = "angles" if self.channel == ANGLES_CHANNEL else f"channel{self.channel}"
        name = f"{channel}_{self.owner.patterns.index(self.pattern)}"
        return Procedure(name, (self.begin, self.repeats, *self.first_rows), self.statements())

    def loop(self, carried: tuple[Carried, ...], blocks: Sequence[Block]) -> tuple[Statement, ...]:
        """Return the loop over the `blocks` of all cells, with `carried` values."""
        return (Loop(index_of(self.repeats), self.counters(blocks), carried, tuple(blocks)),)

    def ends(self) -> tuple[Index, Index]:
        """Return the first and the last place of the run."""
        places = index_of(self.repeats).times(len(self.pattern))
        return index_of(self.begin), index_of(self.begin).plus(places).plus(-1)

    def counters(self, blocks: Sequence[Block]) -> tuple[Counter, ...]:
        """Return the counters of place and table rows that `blocks` use; an inward loop begins with the last ones."""
        read = {x.array for block in blocks for x in block.reads if isinstance(x, Element)}
        counters = [(self.first_place, self.begin, len(self.pattern))]
        for row, first_row, cell in zip(self.rows, self.first_rows, self.pattern, strict=True):
            if ("table", cell) in read:
                counters.append((row, first_row, self.pattern.count(cell)))
        if self.forwards:
            return tuple(Counter(x, index_of(start), step) for x, start, step in counters)
        last_turn = index_of(self.repeats).plus(-1)
        return tuple(Counter(x, index_of(start).plus(last_turn.times(step)), -step) for x, start, step in counters)

    def place(self, j: int) -> Index:
        """Return the place of cell `j`."""
        return index_of(self.first_place).plus(j)

    def row(self, j: int) -> Index:
        """Return the row of cell `j` in its table of constants."""
        return index_of(self.rows[j])

    def memory(self, x: CellOperand, j: int) -> Element:
        """Return where the kept value or the angle `x` of cell `j` lies."""
        if x.kind == "kept":
            return Element(("kept", 0), self.place(j).times(self.owner.kept_width).plus(x.element))
        return Element((x.kind, 0), self.index(f"angle_{x.element}", self.owner.angle_of[:, x.element], j))

    def index(self, table: str, values: Array, j: int) -> Index:
        """Return the index that follows from the place: by a linear formula if there is one, else by a table.

        Parameters
        ----------
        table
            Name of the table.
        values
            Index for every place.
        j
            Cell of the pattern.
        """
        place = self.place(j)
        places = np.concatenate([run.places_of_cell(j) for run in self.r.tree.runs if run.cells == self.pattern])
        numbers = values[places]
        slope = 1
        if places[-1] > places[0]:
            slope = int((numbers[-1] - numbers[0]) // (places[-1] - places[0]))
        offset = numbers - slope * places
        if (offset == offset[0]).all():
            return place.times(slope).plus(int(offset[0]))
        return self.owner.lookup(table, values, place)
