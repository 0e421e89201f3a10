"""LLVM IR of a rolled loop over identical cells (rolled_code.py): its loads, operations, carried values and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.emit.cpu.plan import order
from bellcrank.emit.cpu.speller import Speller
from bellcrank.graph import Node
from bellcrank.graph.cells import RESULT, Body, Place
from bellcrank.graph.recursion import Run
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.cpu.rolled_code import Rolled

Array = np.ndarray[Any, Any]
ANGLES = -1  # channel number of the loop that runs before all channels


class Loop:
    """Function of a run of cells in one channel, from `begin`, with a given number of repeats."""

    def __init__(self, all_of: Rolled, channel: int, pattern: tuple[int, ...], name: str) -> None:
        """Select the cells.

        Parameters
        ----------
        all_of
            The loops of the recursion.
        channel
            Number of the channel, or ANGLES.
        pattern
            Cells of one repeat.
        name
            Name of the function.
        """
        self.all, self.r, self.w, self.at = all_of, all_of.r, all_of.w, all_of.at
        self.channel, self.pattern, self.name = channel, pattern, name
        self.forwards = channel == ANGLES or self.r.outwards[channel]
        self.carries = channel != ANGLES and self.r.tree.chained
        self.bodies = [self._body(cell) for cell in pattern]
        self.runs: list[Run] = all_of.runs_of[pattern]
        self.given: dict[int, str] = {}  # values that the cell before handed on
        self.bases: dict[tuple[str, str], str] = {}

    def _body(self, cell: int) -> Body:
        cut = self.r.cuts[cell]
        return cut.angles if self.channel == ANGLES else cut.bodies[self.channel]

    def text(self) -> str:
        """Return the function."""
        w, p = self.w, len(self.pattern)
        w.lines = []
        most = max(len(x) for x in self.all.patterns)
        numbers = ", ".join(f"i64 %{n}" for n in ("begin", "count", *(f"row{j}" for j in range(most))))
        head = f"define internal void @{self.name}({self.all.parameters}, {numbers}) noinline nounwind {{\n"
        if not any(body.writes for body in self.bodies):
            return head + "  ret void\n}"
        ways = list(range(p)) if self.forwards else list(reversed(range(p)))
        first = self.bodies[ways[0]]
        carried = self._carried(first)
        # the first place that the loop visits
        start = "%begin"
        if not self.forwards:
            last = w.let(f"mul i64 %count, {p}")
            start = w.let(f"add i64 %begin, {w.let(f'sub i64 {last}, {p}')}")
        begins = self._initial(carried, start, ways[0])
        entry, w.lines = w.lines, []
        self.given = {e: w.name("c") for e in carried}
        carries = dict(self.given)
        for j in ways:
            self._cell(j, self.bodies[j], first=j == ways[0])
        step = p if self.forwards else -p
        w.do(f"%next = add i64 %i, {step}")
        w.do("%turn = add i64 %t, 1")
        w.do("%more = icmp ult i64 %turn, %count")
        phis = [
            f"%i = phi i64 [{start}, %entry], [%next, %loop]",
            "%t = phi i64 [0, %entry], [%turn, %loop]",
            *(f"{carries[e]} = phi {w.type} [{begins[e]}, %entry], [{self.given[e]}, %loop]" for e in carried),
        ]
        body, w.lines = w.lines, []
        self._finish(ways[-1])
        lines = [
            "entry:",
            *entry,
            "br label %loop",
            "loop:",
            *phis,
            *body,
            "br i1 %more, label %loop, label %done",
            "done:",
            *w.lines,
        ]
        return head + "\n".join(f"  {line}" if not line.endswith(":") else line for line in lines) + "\n  ret void\n}"

    # -- carried values

    def _carried(self, body: Body) -> list[int]:
        """Return the elements of the channel that the first cell gets from the one before."""
        if not self.carries:
            return []
        return sorted({x.element for x in body.reads if self._comes(x)})

    def _comes(self, x: Place) -> bool:
        """Return True if it is a value that the cell before hands on in this loop."""
        mine = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and mine and (x.kind == "parent" or x.child == 0)

    def _initial(self, carried: Sequence[int], start: str, way: int) -> dict[int, str]:
        """Load the values that other loops handed on to the first cell of the run."""
        if not carried:
            return {}
        p = len(self.pattern)
        here = start if self.forwards else self.w.let(f"add i64 {start}, {p - 1}")
        if self.forwards:
            other = self._lookup("parent", self.r.tree.parent, here)
        else:
            other = self._lookup("child0", self.r.tree.children[:, 0], here)
        return {e: self.w.load(self._handed(other, self.channel, e)) for e in carried}

    def _finish(self, way: int) -> None:
        """Store the values that the last cell of the run hands on to other loops."""
        if not self.carries:
            return
        p = len(self.pattern)
        last = self.w.let(f"add i64 %i, {p - 1}") if self.forwards else "%i"
        self.bases = {}
        for e, value in self.handed_now.items():
            self.w.store(value, self._handed(last, self.channel, e))

    # -- one cell

    def _cell(self, j: int, body: Body, first: bool) -> None:
        w = self.w
        self.bases = {}
        place = w.let(f"add i64 %i, {j}")
        speller = Speller(body.graph, w.lanes, self.all.trig_width, self.all.dtype, [], called={})
        speller.w = w
        for n in order(body.graph):
            if n.op == "input":
                speller.names[n.serial] = self._read(body.reads[n.args[1]], place, j)
            elif n.op in ("sin", "cos"):
                speller.names[n.serial] = self._sine(speller, n)
            elif not speller.inline(n):
                speller.names[n.serial] = speller._operation(n)
        values = [speller._value(x) if isinstance(x, Node) else w.immediate(x) for x in body.graph.outputs["y"]]
        self.handed_now = {}
        for value, x in zip(values, body.writes, strict=True):
            if x.kind == "handed":
                self.handed_now[x.element] = value
            if x.kind != "handed" or not self.carries or self._shared(j):
                w.store(value, self._written(x, place, j))
        self.given = self.handed_now

    def _sine(self, speller: Speller, n: Node) -> str:
        """Compute the sine or cosine of a value that is not a joint angle; those are computed by one call before."""
        return self.w.function(n.op, [speller._value(n.args[0])])

    def _shared(self, j: int) -> bool:
        """Return True if this cell has several children, so that the values it hands on are also read later."""
        return self.forwards and self.r.cells[self.pattern[j]].children > 1

    def _read(self, x: Place, place: str, j: int) -> str:
        w = self.w
        if self._comes(x):
            value = self.given[x.element]
            return value
        if x.kind == "table":
            return self._constant(x.element, j)
        if x.kind == "input":
            return w.load(self._element(f"%in_{symbol(x.name)}", x.name, x.element, place, j))
        if x.kind == "parent":
            return w.load(self._handed(self._lookup("parent", self.r.tree.parent, place), int(x.name), x.element))
        if x.kind == "child":
            other = self._lookup(f"child{x.child}", self.r.tree.children[:, x.child], place)
            return w.load(self._handed(other, int(x.name), x.element))
        if x.kind == "kept":
            return w.load(self._kept(place, x.element))
        return w.load(self._angle(x, place, j))

    def _written(self, x: Place, place: str, j: int) -> str:
        if x.kind == "output":
            return self._element(f"%out_{symbol(self.r.output[0])}", RESULT, x.element, place, j)
        if x.kind == "handed":
            return self._handed(place, int(x.name), x.element)
        return self._kept(place, x.element) if x.kind == "kept" else self._angle(x, place, j)

    # -- addresses

    def _constant(self, column: int, j: int) -> str:
        """Load a constant from the row of the table that belongs to this place; it is the same in all lanes."""
        w, cell = self.w, self.pattern[j]
        width = self.r.tables[cell].shape[1] * w.bytes
        row = self._based("row", str(j), lambda: self._row(j, width, f"@{self.all.tag}_table{cell}"))
        x = w.load(w.at(row, column * w.bytes), w.element, w.bytes)
        if w.lanes == 1:
            return x
        one = w.let(f"insertelement {w.type} poison, {w.element} {x}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")

    def _row(self, j: int, width: int, table: str) -> str:
        """Return the address of a row; rows follow each other, and an inward loop begins with the last of the run."""
        w = self.w
        turn = "%t"
        if not self.forwards:
            turn = w.let(f"sub i64 {w.let('sub i64 %count, 1')}, %t")
        each = self.pattern.count(self.pattern[j])
        row = w.let(f"add i64 %row{j}, {w.let(f'mul i64 {turn}, {each}')}")
        return w.let(f"getelementptr i8, ptr {table}, i64 {w.let(f'mul i64 {row}, {width}')}", "p")

    def _element(self, array: str, name: str, element: int, place: str, j: int) -> str:
        values = self.r.tree.elements[name][:, element]
        return self._indexed(array, f"{symbol(name)}_{element}", values, place, j)

    def _angle(self, x: Place, place: str, j: int) -> str:
        start = {"angle": 0, "sine": 1, "cosine": 2}[x.kind] * self.at.room * self.w.align
        return self.w.at(self._indexed("%ws", f"angle_{x.element}", self.at.angle_of[:, x.element], place, j), start)

    def _indexed(self, array: str, name: str, values: Array, place: str, j: int) -> str:
        """Return the address of an element whose index follows from the place: by a formula if there is one."""
        w = self.w

        def made() -> str:
            at = np.concatenate([run.at(j) for run in self.runs])
            mine = values[at]
            slope = int((mine[-1] - mine[0]) // (at[-1] - at[0])) if at[-1] > at[0] else 1
            offset = mine - slope * at
            if (offset == offset[0]).all():
                number = w.let(f"add i64 {w.let(f'mul i64 {place}, {slope}')}, {int(offset[0])}")
            else:
                number = self._lookup(name, values, place)
            return w.let(f"getelementptr i8, ptr {array}, i64 {w.let(f'mul i64 {number}, {w.align}')}", "p")

        return self._based(array + name, place, made)

    def _lookup(self, name: str, values: Array, place: str) -> str:
        w = self.w

        def made() -> str:
            table = self.all.index(name, values)
            at = w.let(f"getelementptr i32, ptr @{table}, i64 {place}", "p")
            return w.let(f"sext i32 {w.let(f'load i32, ptr {at}, align 4')} to i64")

        return self._based(name, place, made)

    def _handed(self, place: str, channel: int, e: int) -> str:
        width = len(self.at.field) * self.w.align

        def made() -> str:
            at = self._lookup("slot", self.at.slot, place) if self.r.tree.chained else place
            return self._row_of(self.at.handed_at, at, width)

        base = self._based("handed", place, made)
        return self.w.at(base, self.at.field[channel, e] * self.w.align)

    def _kept(self, place: str, f: int) -> str:
        base = self._based("kept", place, lambda: self._row_of(self.at.kept_at, place, self.at.kept * self.w.align))
        return self.w.at(base, f * self.w.align)

    def _row_of(self, start: int, place: str, width: int) -> str:
        w = self.w
        offset = w.let(f"add i64 {w.let(f'mul i64 {place}, {width}')}, {start * w.align}")
        return w.let(f"getelementptr i8, ptr %ws, i64 {offset}", "p")

    def _based(self, what: str, place: str, made: Callable[[], str]) -> str:
        """Return an address that several reads of a cell share, computed once."""
        if (what, place) not in self.bases:
            self.bases[what, place] = made()
        return self.bases[what, place]
