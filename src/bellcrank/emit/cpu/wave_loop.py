"""LLVM IR of one loop over bundles of runs (waves.py), where a lane is a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.emit.cpu.lanes import Writer
from bellcrank.emit.cpu.plan import order
from bellcrank.emit.cpu.rolled_loop import ANGLES
from bellcrank.emit.cpu.speller import Speller
from bellcrank.graph import Node
from bellcrank.graph.cells import RESULT, Body, Place
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.cpu.waves import Waves

Array = np.ndarray[Any, Any]


class WaveLoop:
    """Function of a channel and a shape: void @name(ws, arrays, first bundle, end of the bundles)."""

    def __init__(self, all_of: Waves, channel: int, shape: int) -> None:
        """Select the runs.

        Parameters
        ----------
        all_of
            The loops of the recursion.
        channel
            Number of the channel, or ANGLES.
        shape
            Number of the shape.
        """
        self.all, self.r, self.at = all_of, all_of.r, all_of.at
        self.channel, self.number, self.shape = channel, shape, all_of.shapes[shape]
        self.w = Writer(all_of.lanes, all_of.dtype)
        self.forwards = channel == ANGLES or self.r.outwards[channel]
        cuts = [self.r.cuts[c] for c in self.shape.cells]
        self.bodies = [cut.angles if channel == ANGLES else cut.bodies[channel] for cut in cuts]
        self.before: list[str] = []  # lines executed once per bundle
        self.known: dict[object, Any] = {}  # addresses that are computed once
        self.given: dict[int, str] = {}  # values that the cell before handed on

    def text(self) -> str:
        """Return the function."""
        w, p = self.w, len(self.shape.cells)
        lanes = range(w.lanes)
        first = self.w.let(f"mul i64 %b, {w.lanes}")
        self.begins = [self._number(f"begins{self.number}", self._plus(first, l)) for l in lanes]
        ways = list(range(p)) if self.forwards else list(reversed(range(p)))
        carried = sorted({x.element for x in self.bodies[ways[0]].reads if self._comes(x)})
        starts = self._initial(carried)
        self.first = first
        self._bases()
        self.before, w.lines = w.lines, []
        phis = self.given = {e: w.name("c") for e in carried}
        turn = "%t" if self.forwards else w.let(f"sub i64 {self.shape.repeats - 1}, %t")
        self.turn = w.let(f"mul i64 {turn}, {p}")
        self.round = turn
        for j in ways:
            self._cell(j)
        w.do("%next = add i64 %t, 1")
        w.do(f"%more = icmp ult i64 %next, {self.shape.repeats}")
        body, w.lines = w.lines, []
        self._finish(ways[-1])
        after = w.lines
        carry = [f"{phis[e]} = phi {w.type} [{starts[e]}, %bundle], [{self.given[e]}, %loop]" for e in carried]
        inside = ["br label %loop", "loop:", "%t = phi i64 [0, %bundle], [%next, %loop]", *carry, *body]
        lines = [*self.before, *inside, "br i1 %more, label %loop, label %done", "done:", *after]
        return self._framed([line if line.endswith(":") else f"  {line}" for line in lines])

    def _framed(self, lines: list[str]) -> str:
        """Return the function with the loop over bundles."""
        name = self.all.name(self.channel, self.number)
        return "\n".join(
            [
                f"define internal void @{name}({self.all.parameters}, i64 %first, i64 %last) noinline nounwind {{",
                "entry:",
                "  br label %bundle",
                "bundle:",
                "  %b = phi i64 [%first, %entry], [%b.next, %done]",
                *lines,
                "  %b.next = add i64 %b, 1",
                "  %again = icmp ult i64 %b.next, %last",
                "  br i1 %again, label %bundle, label %end",
                "end:",
                "  ret void",
                "}",
            ]
        )

    def _bases(self) -> None:
        """Emit the addresses of the bundle's parts of the workspace."""
        w = self.w
        for what, at, width in (("angles", self.at.angles_at, self.at.angles), ("kept", self.at.kept_at, self.at.kept)):
            size = self.shape.places * width[self.number] * w.align
            offset = w.let(f"add i64 {w.let(f'mul i64 %b, {size}')}, {at[self.number] * w.bytes}")
            w.do(f"%{what} = getelementptr i8, ptr %ws, i64 {offset}")

    @property
    def stride(self) -> int:
        """Bytes from one number of a place to the next."""
        return self.w.align

    # -- carried values

    def _comes(self, x: Place) -> bool:
        """Return True if it is a value that the cell before hands on in this loop."""
        return x.kind == "parent" or (x.kind == "child" and x.child == 0)

    def _initial(self, carried: list[int]) -> dict[int, str]:
        """Load the values that other loops handed on to the first cell of each run."""
        if not carried:
            return {}
        ends = self.begins
        if not self.forwards:
            ends = [self._plus(x, self.shape.places - 1) for x in self.begins]
        slots = [self._number(self._before(), x) for x in ends]
        return {e: self._gathered([self._handed(slot, e) for slot in slots]) for e in carried}

    def _before(self) -> str:
        """Return the table of slots of the values that are handed to the first cell of a run."""
        return "parent" if self.forwards else "child0"

    def _finish(self, way: int) -> None:
        """Store the values that the last cell of each run hands on."""
        if not self.given or self.channel == ANGLES:
            return
        ends = [self._plus(x, self.shape.places - 1) for x in self.begins] if self.forwards else self.begins
        slots = [self._number("slot", x) for x in ends]
        self.known = {}
        for e, value in self.given.items():
            self._scattered(value, [self._handed(slot, e) for slot in slots])

    # -- one cell

    def _cell(self, j: int) -> None:
        w, body = self.w, self.bodies[j]
        self.kept_here = self._row("kept", j, self.at.kept[self.number])
        self.angles_here = self._row("angles", j, self.at.angles[self.number])
        speller = Speller(body.graph, w.lanes, w.lanes, self.all.dtype, [], called={})
        speller.w = w
        for n in order(body.graph):
            if n.op == "input":
                speller.names[n.serial] = self._read(body.reads[n.args[1]], j)
            elif n.op in ("sin", "cos"):
                speller.names[n.serial] = self._sine(speller, n)
            elif not speller.inline(n):
                speller.names[n.serial] = speller._operation(n)
        values = [speller._value(x) if isinstance(x, Node) else w.immediate(x) for x in body.graph.outputs["y"]]
        self._write(body, values, j)

    def _sine(self, speller: Speller, n: Node) -> str:
        """Compute the sine or cosine of an angle that depends on a neighbour."""
        return self.w.function(n.op, [speller._value(n.args[0])])

    def _row(self, what: str, j: int, width: int) -> str:
        """Return the address of the numbers of this place."""
        w = self.w
        offset = w.let(f"mul i64 {self._plus(self.turn, j)}, {width * self.stride}")
        return w.let(f"getelementptr i8, ptr %{what}, i64 {offset}", "p")

    def _read(self, x: Place, j: int) -> str:
        w = self.w
        if self._comes(x):
            return self.given[x.element]
        if x.kind == "child":
            slots = [self._number(f"child{x.child}", place) for place in self._places(j)]
            return self._gathered([self._handed(slot, x.element) for slot in slots])
        if x.kind == "kept":
            return w.load(w.at(self.kept_here, x.element * self.stride))
        if x.kind in ("sine", "cosine"):
            start = {"sine": 1, "cosine": 2}[x.kind] * self.at.room * w.bytes
            return w.load(w.at(self.angles_here, start + x.element * self.stride))
        if x.kind == "table":
            return self._gathered(self._constants(x.element, j))
        return self._gathered(self._elements(f"%in_{symbol(x.name)}", x.name, x.element, j))

    def _turn(self, value: str, element: int) -> None:
        """Store an angle, whose sine and cosine are computed later."""
        self.w.store(value, self.w.at(self.angles_here, element * self.stride))

    def _write(self, body: Body, values: list[str], j: int) -> None:
        w, given = self.w, dict[int, str]()
        for value, x in zip(values, body.writes, strict=True):
            if x.kind == "handed":
                given[x.element] = value
            elif x.kind == "output":
                name = f"%out_{symbol(self.r.output[0])}"
                self._scattered(value, self._elements(name, RESULT, x.element, j))
            elif x.kind == "kept":
                w.store(value, w.at(self.kept_here, x.element * self.stride))
            else:
                self._turn(value, x.element)
        self.given = given
        if given and self.forwards and self.r.cells[self.shape.cells[j]].children > 1 and self.shape.places > 1:
            slots = [self._number("slot", place) for place in self._places(j)]
            for e, value in given.items():
                self._scattered(value, [self._handed(slot, e) for slot in slots])

    # -- lane by lane

    def _gathered(self, pointers: list[str]) -> str:
        w = self.w
        values = [w.load(pointer, w.element, w.bytes) for pointer in pointers]
        if w.lanes == 1:
            return values[0]
        result = "poison"
        for lane, value in enumerate(values):
            result = w.let(f"insertelement {w.type} {result}, {w.element} {value}, i64 {lane}")
        return result

    def _scattered(self, value: str, pointers: list[str]) -> None:
        w = self.w
        for lane, pointer in enumerate(pointers):
            one = value if w.lanes == 1 else w.let(f"extractelement {w.type} {value}, i64 {lane}")
            w.store(one, pointer, w.element, w.bytes)

    def _places(self, j: int) -> list[str]:
        key = "places", j, id(self.w.lines)
        if key not in self.known:
            here = self._plus(self.turn, j)
            self.known[key] = [self.w.let(f"add i64 {begin}, {here}") for begin in self.begins]
        found: list[str] = self.known[key]
        return found

    def _plus(self, x: str, number: int) -> str:
        return self.w.let(f"add i64 {x}, {number}") if number else x

    def _number(self, table: str, at: str) -> str:
        """Load an element of a table of integers."""
        w = self.w
        place = w.let(f"getelementptr i32, ptr {self._whole_numbers(table)}, i64 {at}", "p")
        return w.let(f"sext i32 {w.let(f'load i32, ptr {place}, align 4')} to i64")

    def _whole_numbers(self, table: str) -> str:
        return f"@{self.all.tag}_{table}"

    def _numbers(self, cell: int) -> str:
        return f"@{self.all.tag}_table{cell}"

    def _handed(self, slot: str, element: int) -> str:
        w, width = self.w, len(self.at.field)
        key = "handed", slot
        if key not in self.known:
            row = w.let(f"add i64 {w.let(f'mul i64 {slot}, {width}')}, {self.at.handed_at}")
            self.known[key] = w.let(f"getelementptr {w.element}, ptr %ws, i64 {row}", "p")
        return w.at(self.known[key], self.at.field[self.channel, element] * w.bytes)

    def _constants(self, column: int, j: int) -> list[str]:
        """Return addresses in the rows of the table that belong to these places."""
        w, cell = self.w, self.shape.cells[j]
        key = "rows", j
        if key not in self.known:
            here, w.lines = w.lines, self.before
            self.known[key] = [
                self._number(f"rows{self.number}_{j}", self._plus(self.first, lane)) for lane in range(w.lanes)
            ]
            w.lines = here
        each, width = self.shape.cells.count(cell), self.r.tables[cell].shape[1]
        found = []
        for row in self.known[key]:
            at = w.let(f"add i64 {row}, {w.let(f'mul i64 {self.round}, {each}')}")
            at = w.let(f"mul i64 {at}, {width}")
            base = self._numbers(cell)
            found.append(w.let(f"getelementptr {w.element}, ptr {base}, i64 {self._plus(at, column)}", "p"))
        return found

    def _elements(self, array: str, name: str, element: int, j: int) -> list[str]:
        """Return addresses of elements: with a constant stride along each run, or by a table."""
        w, values = self.w, self.r.tree.elements[name][:, element]
        numbers = values[self.shape.at(j)]
        steps = np.unique(np.diff(numbers, axis=1))
        if len(steps) > 1:
            found = [self._number(f"{symbol(name)}_{element}", place) for place in self._places(j)]
            return [w.let(f"getelementptr {w.element}, ptr {array}, i64 {number}", "p") for number in found]
        key = "elements", array, element, j
        if key not in self.known:
            table = self.all.index(f"from_{symbol(name)}_{element}_{self.number}_{j}", numbers[:, 0])
            here, w.lines = w.lines, self.before
            starts = [self._number(table, self._plus(self.first, lane)) for lane in range(w.lanes)]
            self.known[key] = [w.let(f"getelementptr {w.element}, ptr {array}, i64 {x}", "p") for x in starts]
            w.lines = here
        on = w.let(f"mul i64 {self.round}, {int(steps[0]) if len(steps) else 0}")
        return [w.let(f"getelementptr {w.element}, ptr {start}, i64 {on}", "p") for start in self.known[key]]
