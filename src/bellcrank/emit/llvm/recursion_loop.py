"""LLVM IR of a rolled loop over identical cells (recursion_code.py): loads, operations, carried values and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Node
from bellcrank.graph.cells import RESULT, CellOperand, LoopBody
from bellcrank.graph.recursion import Run
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.llvm.recursion_code import RecursionCode

Array = np.ndarray[Any, Any]
ANGLES_CHANNEL = -1  # channel number of the loop that runs before all channels


class RecursionLoop:
    """Function of a run of cells in one channel, from `begin`, with a given number of repeats."""

    def __init__(self, owner: RecursionCode, channel: int, pattern: tuple[int, ...], name: str) -> None:
        """Select the cells.

        Parameters
        ----------
        owner
            The loops of the recursion.
        channel
            Number of the channel, or ANGLES.
        pattern
            Cells of one repeat.
        name
            Name of the function.
        """
        self.owner, self.r, self.w, self.layout = owner, owner.r, owner.w, owner.layout
        self.channel, self.pattern, self.name = channel, pattern, name
        self.forwards = channel == ANGLES_CHANNEL or self.r.outwards[channel]
        self.carries = channel != ANGLES_CHANNEL and self.r.tree.chained
        self.bodies = [self._body(cell) for cell in pattern]
        self.runs: list[Run] = owner.runs_of[pattern]
        self.carried_values: dict[int, str] = {}  # values that the cell before sent
        self.cell_addresses: dict[tuple[str, str], str] = {}

    def _body(self, cell: int) -> LoopBody:
        cut = self.r.cell_loops[cell]
        return cut.angles if self.channel == ANGLES_CHANNEL else cut.bodies[self.channel]

    def text(self) -> str:
        """Return the function."""
        w, p = self.w, len(self.pattern)
        w.lines = []
        max_pattern = max(len(x) for x in self.owner.patterns)
        numbers = ", ".join(f"i64 %{n}" for n in ("begin", "count", *(f"row{j}" for j in range(max_pattern))))
        head = f"define internal void @{self.name}({self.owner.parameters}, {numbers}) noinline nounwind {{\n"
        if not any(body.writes for body in self.bodies):
            return head + "  ret void\n}"
        cell_order = list(range(p)) if self.forwards else list(reversed(range(p)))
        first_body = self.bodies[cell_order[0]]
        carried = self._carried_elements(first_body)
        # the first place that the loop visits
        start = "%begin"
        if not self.forwards:
            last = w.let(f"mul i64 %count, {p}")
            start = w.let(f"add i64 %begin, {w.let(f'sub i64 {last}, {p}')}")
        initial_values = self._load_carried(carried, start, cell_order[0])
        entry, w.lines = w.lines, []
        self.carried_values = {e: w.name("c") for e in carried}
        carries = dict(self.carried_values)
        for j in cell_order:
            self._cell(j, self.bodies[j], first=j == cell_order[0])
        step = p if self.forwards else -p
        w.do(f"%next = add i64 %i, {step}")
        w.do("%turn = add i64 %t, 1")
        w.do("%more = icmp ult i64 %turn, %count")
        phis = [
            f"%i = phi i64 [{start}, %entry], [%next, %loop]",
            "%t = phi i64 [0, %entry], [%turn, %loop]",
            *(
                f"{carries[e]} = phi {w.type} [{initial_values[e]}, %entry], [{self.carried_values[e]}, %loop]"
                for e in carried
            ),
        ]
        body, w.lines = w.lines, []
        self._store_carried(cell_order[-1])
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

    def _carried_elements(self, body: LoopBody) -> list[int]:
        """Return the elements of the channel that the first cell gets from the one before."""
        if not self.carries:
            return []
        return sorted({x.element for x in body.reads if self._is_carried(x)})

    def _is_carried(self, x: CellOperand) -> bool:
        """Return True if it is a value that the cell before sends in this loop."""
        same_channel = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and same_channel and (x.kind == "parent" or x.child == 0)

    def _load_carried(self, carried: Sequence[int], start: str, way: int) -> dict[int, str]:
        """Load the values that other loops sent to the first cell of the run."""
        if not carried:
            return {}
        p = len(self.pattern)
        first_place = start if self.forwards else self.w.let(f"add i64 {start}, {p - 1}")
        if self.forwards:
            source_place = self._lookup("parent", self.r.tree.parent, first_place)
        else:
            source_place = self._lookup("child0", self.r.tree.children[:, 0], first_place)
        return {e: self.w.load(self._handed_address(source_place, self.channel, e)) for e in carried}

    def _store_carried(self, way: int) -> None:
        """Store the values that the last cell of the run sends to other loops."""
        if not self.carries:
            return
        p = len(self.pattern)
        last_place = self.w.let(f"add i64 %i, {p - 1}") if self.forwards else "%i"
        self.cell_addresses = {}
        for e, value in self.handed_values.items():
            self.w.store(value, self._handed_address(last_place, self.channel, e))

    # -- one cell

    def _cell(self, j: int, body: LoopBody, first: bool) -> None:
        w = self.w
        self.cell_addresses = {}
        place = w.let(f"add i64 %i, {j}")
        printer = LLVMPrinter(body.graph, w.lanes, self.owner.trig_width, self.owner.dtype, [], called={})
        printer.w = w
        for n in order(body.graph):
            if n.op == "input":
                printer.value_names[n.serial] = self._load_input(body.reads[n.args[1]], place, j)
            elif n.op in ("sin", "cos"):
                printer.value_names[n.serial] = self._sine(printer, n)
            elif not printer.inline(n):
                printer.value_names[n.serial] = printer.operation(n)
        values = [printer.value(x) if isinstance(x, Node) else w.immediate(x) for x in body.graph.outputs["y"]]
        self.handed_values = {}
        for value, x in zip(values, body.writes, strict=True):
            if x.kind == "handed":
                self.handed_values[x.element] = value
            if x.kind != "handed" or not self.carries or self._is_shared(j):
                w.store(value, self._store_address(x, place, j))
        self.carried_values = self.handed_values

    def _sine(self, printer: LLVMPrinter, n: Node) -> str:
        """Compute the sine or cosine of a value that is not a joint angle; those are computed by one call before."""
        return self.w.function(n.op, [printer.value(n.args[0])])

    def _is_shared(self, j: int) -> bool:
        """Return True if this cell has several children, so that the values it sends are also read later."""
        return self.forwards and self.r.cells[self.pattern[j]].children > 1

    def _load_input(self, x: CellOperand, place: str, j: int) -> str:
        w = self.w
        if self._is_carried(x):
            value = self.carried_values[x.element]
            return value
        if x.kind == "table":
            return self._load_constant(x.element, j)
        if x.kind == "input":
            return w.load(self._element_address(f"%in_{symbol(x.name)}", x.name, x.element, place, j))
        if x.kind == "parent":
            return w.load(
                self._handed_address(self._lookup("parent", self.r.tree.parent, place), int(x.name), x.element)
            )
        if x.kind == "child":
            other = self._lookup(f"child{x.child}", self.r.tree.children[:, x.child], place)
            return w.load(self._handed_address(other, int(x.name), x.element))
        if x.kind == "kept":
            return w.load(self._kept_address(place, x.element))
        return w.load(self._angle_address(x, place, j))

    def _store_address(self, x: CellOperand, place: str, j: int) -> str:
        if x.kind == "output":
            return self._element_address(f"%out_{symbol(self.r.output[0])}", RESULT, x.element, place, j)
        if x.kind == "handed":
            return self._handed_address(place, int(x.name), x.element)
        return self._kept_address(place, x.element) if x.kind == "kept" else self._angle_address(x, place, j)

    # -- addresses

    def _load_constant(self, column: int, j: int) -> str:
        """Load a constant from the row of the table that belongs to this place; it is the same in all lanes."""
        w, cell = self.w, self.pattern[j]
        width = self.r.tables[cell].shape[1] * w.bytes
        row = self._shared_address("row", str(j), lambda: self._row_address(j, width, f"@{self.owner.tag}_table{cell}"))
        x = w.load(w.at(row, column * w.bytes), w.element, w.bytes)
        if w.lanes == 1:
            return x
        one = w.let(f"insertelement {w.type} poison, {w.element} {x}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")

    def _row_address(self, j: int, width: int, table: str) -> str:
        """Return the address of a row; rows follow each other, and an inward loop begins with the last of the run."""
        w = self.w
        turn = "%t"
        if not self.forwards:
            turn = w.let(f"sub i64 {w.let('sub i64 %count, 1')}, %t")
        each = self.pattern.count(self.pattern[j])
        row = w.let(f"add i64 %row{j}, {w.let(f'mul i64 {turn}, {each}')}")
        return w.let(f"getelementptr i8, ptr {table}, i64 {w.let(f'mul i64 {row}, {width}')}", "p")

    def _element_address(self, array: str, name: str, element: int, place: str, j: int) -> str:
        values = self.r.tree.elements[name][:, element]
        return self._indexed_address(array, f"{symbol(name)}_{element}", values, place, j)

    def _angle_address(self, x: CellOperand, place: str, j: int) -> str:
        start = {"angle": 0, "sine": 1, "cosine": 2}[x.kind] * self.layout.padded_angles * self.w.align
        return self.w.at(
            self._indexed_address("%ws", f"angle_{x.element}", self.layout.angle_of[:, x.element], place, j), start
        )

    def _indexed_address(self, array: str, name: str, values: Array, place: str, j: int) -> str:
        """Return the address of an element whose index follows from the place: by a formula if there is one."""
        w = self.w

        def compute() -> str:
            places = np.concatenate([run.places_of_cell(j) for run in self.runs])
            element_numbers = values[places]
            slope = (
                int((element_numbers[-1] - element_numbers[0]) // (places[-1] - places[0]))
                if places[-1] > places[0]
                else 1
            )
            offset = element_numbers - slope * places
            if (offset == offset[0]).all():
                number = w.let(f"add i64 {w.let(f'mul i64 {place}, {slope}')}, {int(offset[0])}")
            else:
                number = self._lookup(name, values, place)
            return w.let(f"getelementptr i8, ptr {array}, i64 {w.let(f'mul i64 {number}, {w.align}')}", "p")

        return self._shared_address(array + name, place, compute)

    def _lookup(self, name: str, values: Array, place: str) -> str:
        w = self.w

        def compute() -> str:
            table = self.owner.index(name, values)
            address = w.let(f"getelementptr i32, ptr @{table}, i64 {place}", "p")
            return w.let(f"sext i32 {w.let(f'load i32, ptr {address}, align 4')} to i64")

        return self._shared_address(name, place, compute)

    def _handed_address(self, place: str, channel: int, e: int) -> str:
        width = len(self.layout.field_index) * self.w.align

        def compute() -> str:
            slot = self._lookup("slot", self.layout.slot, place) if self.r.tree.chained else place
            return self._record_address(self.layout.handed_at, slot, width)

        base = self._shared_address("handed", place, compute)
        return self.w.at(base, self.layout.field_index[channel, e] * self.w.align)

    def _kept_address(self, place: str, f: int) -> str:
        base = self._shared_address(
            "kept",
            place,
            lambda: self._record_address(self.layout.kept_at, place, self.layout.kept_width * self.w.align),
        )
        return self.w.at(base, f * self.w.align)

    def _record_address(self, start: int, place: str, width: int) -> str:
        w = self.w
        offset = w.let(f"add i64 {w.let(f'mul i64 {place}, {width}')}, {start * w.align}")
        return w.let(f"getelementptr i8, ptr %ws, i64 {offset}", "p")

    def _shared_address(self, kind: str, place: str, compute: Callable[[], str]) -> str:
        """Return an address that several reads of a cell share, computed once."""
        if (kind, place) not in self.cell_addresses:
            self.cell_addresses[kind, place] = compute()
        return self.cell_addresses[kind, place]
