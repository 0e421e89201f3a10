"""LLVM IR of one loop over bundles of runs (wave_functions.py), where a lane is a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Node
from bellcrank.graph.cells import ANGLES_CHANNEL, RESULT, CellOperand, LoopBody
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.llvm.wave_functions import Waves

Array = np.ndarray[Any, Any]


class WaveLoop:
    """Function of a channel and a shape: void @name(ws, arrays, first bundle, end of the bundles)."""

    def __init__(self, owner: Waves, channel: int, shape: int) -> None:
        """Select the runs.

        Parameters
        ----------
        owner
            The loops of the recursion.
        channel
            Number of the channel, or ANGLES.
        shape
            Number of the shape.
        """
        self.owner, self.r, self.layout = owner, owner.r, owner.layout
        self.channel, self.shape_number, self.shape = channel, shape, owner.shapes[shape]
        self.w = Writer(owner.lanes, owner.dtype)
        self.forwards = channel == ANGLES_CHANNEL or self.r.outwards[channel]
        self.bodies = [self.r.cell_loops[cell].body(channel) for cell in self.shape.cells]
        self.bundle_lines: list[str] = []  # lines executed once per bundle
        self.cached_addresses: dict[object, Any] = {}  # addresses that are computed once
        self.carried_values: dict[int, str] = {}  # values that the cell before sent

    def text(self) -> str:
        """Return the function."""
        w, p = self.w, len(self.shape.cells)
        lanes = range(w.lanes)
        first = self.w.let(f"mul i64 %b, {w.lanes}")
        self.begins = [self._load_integer(f"begins{self.shape_number}", self._add_number(first, l)) for l in lanes]
        cell_order = list(range(p)) if self.forwards else list(reversed(range(p)))
        carried = sorted({x.element for x in self.bodies[cell_order[0]].reads if self._is_carried(x)})
        starts = self._load_carried(carried)
        self.first = first
        self._bundle_addresses()
        self.bundle_lines, w.lines = w.lines, []
        phis = self.carried_values = {e: w.name("c") for e in carried}
        turn = "%t" if self.forwards else w.let(f"sub i64 {self.shape.repeats - 1}, %t")
        self.turn = w.let(f"mul i64 {turn}, {p}")
        self.round = turn
        for j in cell_order:
            self._cell(j)
        w.do("%next = add i64 %t, 1")
        w.do(f"%more = icmp ult i64 %next, {self.shape.repeats}")
        body, w.lines = w.lines, []
        self._store_carried(cell_order[-1])
        after = w.lines
        carry = [f"{phis[e]} = phi {w.type} [{starts[e]}, %bundle], [{self.carried_values[e]}, %loop]" for e in carried]
        inside = ["br label %loop", "loop:", "%t = phi i64 [0, %bundle], [%next, %loop]", *carry, *body]
        lines = [*self.bundle_lines, *inside, "br i1 %more, label %loop, label %done", "done:", *after]
        return self._function_text([line if line.endswith(":") else f"  {line}" for line in lines])

    def _function_text(self, lines: list[str]) -> str:
        """Return the function with the loop over bundles."""
        name = self.owner.name(self.channel, self.shape_number)
        return "\n".join(
            [
                f"define internal void @{name}({self.owner.parameters}, i64 %first, i64 %last) noinline nounwind {{",
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

    def _bundle_addresses(self) -> None:
        """Emit the addresses of the bundle's parts of the workspace."""
        w = self.w
        for kind, offsets, width in (
            ("angles", self.layout.angles_at, self.layout.angles),
            ("kept", self.layout.kept_at, self.layout.kept_counts),
        ):
            size = self.shape.places * width[self.shape_number] * w.align
            offset = w.let(f"add i64 {w.let(f'mul i64 %b, {size}')}, {offsets[self.shape_number] * w.bytes}")
            w.do(f"%{kind} = getelementptr i8, ptr %ws, i64 {offset}")

    @property
    def stride(self) -> int:
        """Bytes from one number of a place to the next."""
        return self.w.align

    # -- carried values

    def _is_carried(self, x: CellOperand) -> bool:
        """Return True if it is a value that the cell before sends in this loop."""
        return x.kind == "parent" or (x.kind == "child" and x.child == 0)

    def _load_carried(self, carried: list[int]) -> dict[int, str]:
        """Load the values that other loops sent to the first cell of each run."""
        if not carried:
            return {}
        ends = self.begins
        if not self.forwards:
            ends = [self._add_number(x, self.shape.places - 1) for x in self.begins]
        slots = [self._load_integer(self._source_table(), x) for x in ends]
        return {e: self._gather([self._handed_address(slot, e) for slot in slots]) for e in carried}

    def _source_table(self) -> str:
        """Return the table of slots of the values that are handed to the first cell of a run."""
        return "parent" if self.forwards else "child0"

    def _store_carried(self, way: int) -> None:
        """Store the values that the last cell of each run sends."""
        if not self.carried_values or self.channel == ANGLES_CHANNEL:
            return
        ends = [self._add_number(x, self.shape.places - 1) for x in self.begins] if self.forwards else self.begins
        slots = [self._load_integer("slot", x) for x in ends]
        self.cached_addresses = {}
        for e, value in self.carried_values.items():
            self._scatter(value, [self._handed_address(slot, e) for slot in slots])

    # -- one cell

    def _cell(self, j: int) -> None:
        w, body = self.w, self.bodies[j]
        self.kept_here = self._place_address("kept", j, self.layout.kept_counts[self.shape_number])
        self.angles_here = self._place_address("angles", j, self.layout.angles[self.shape_number])
        printer = LLVMPrinter(body.graph, w.lanes, w.lanes, self.owner.dtype, [], called={})
        printer.w = w
        for n in order(body.graph):
            if n.op == "input":
                printer.value_names[n.serial] = self._load_input(body.reads[n.args[1]], j)
            elif n.op in ("sin", "cos"):
                printer.value_names[n.serial] = self._sine(printer, n)
            elif not printer.inline(n):
                printer.value_names[n.serial] = printer.operation(n)
        values = [printer.value(x) if isinstance(x, Node) else w.immediate(x) for x in body.graph.outputs["y"]]
        self._write(body, values, j)

    def _sine(self, printer: LLVMPrinter, n: Node) -> str:
        """Compute the sine or cosine of an angle that depends on a neighbour."""
        return self.w.function(n.op, [printer.value(n.args[0])])

    def _place_address(self, kind: str, j: int, width: int) -> str:
        """Return the address of the numbers of this place."""
        w = self.w
        offset = w.let(f"mul i64 {self._add_number(self.turn, j)}, {width * self.stride}")
        return w.let(f"getelementptr i8, ptr %{kind}, i64 {offset}", "p")

    def _load_input(self, x: CellOperand, j: int) -> str:
        w = self.w
        if self._is_carried(x):
            return self.carried_values[x.element]
        if x.kind == "child":
            slots = [self._load_integer(f"child{x.child}", place) for place in self._places(j)]
            return self._gather([self._handed_address(slot, x.element) for slot in slots])
        if x.kind == "kept":
            return w.load(w.at(self.kept_here, x.element * self.stride))
        if x.kind in ("sine", "cosine"):
            start = {"sine": 1, "cosine": 2}[x.kind] * self.layout.angle_count * w.bytes
            return w.load(w.at(self.angles_here, start + x.element * self.stride))
        if x.kind == "table":
            return self._gather(self._constant_addresses(x.element, j))
        return self._gather(self._element_addresses(f"%in_{symbol(x.name)}", x.name, x.element, j))

    def _store_angle(self, value: str, element: int) -> None:
        """Store an angle, whose sine and cosine are computed later."""
        self.w.store(value, self.w.at(self.angles_here, element * self.stride))

    def _write(self, body: LoopBody, values: list[str], j: int) -> None:
        w, handed_values = self.w, dict[int, str]()
        for value, x in zip(values, body.writes, strict=True):
            if x.kind == "handed":
                handed_values[x.element] = value
            elif x.kind == "output":
                name = f"%out_{symbol(self.r.output[0])}"
                self._scatter(value, self._element_addresses(name, RESULT, x.element, j))
            elif x.kind == "kept":
                w.store(value, w.at(self.kept_here, x.element * self.stride))
            else:
                self._store_angle(value, x.element)
        self.carried_values = handed_values
        if handed_values and self.forwards and self.r.cells[self.shape.cells[j]].children > 1 and self.shape.places > 1:
            slots = [self._load_integer("slot", place) for place in self._places(j)]
            for e, value in handed_values.items():
                self._scatter(value, [self._handed_address(slot, e) for slot in slots])

    # -- lane by lane

    def _gather(self, pointers: list[str]) -> str:
        w = self.w
        values = [w.load(pointer, w.element, w.bytes) for pointer in pointers]
        if w.lanes == 1:
            return values[0]
        result = "poison"
        for lane, value in enumerate(values):
            result = w.let(f"insertelement {w.type} {result}, {w.element} {value}, i64 {lane}")
        return result

    def _scatter(self, value: str, pointers: list[str]) -> None:
        w = self.w
        for lane, pointer in enumerate(pointers):
            one = value if w.lanes == 1 else w.let(f"extractelement {w.type} {value}, i64 {lane}")
            w.store(one, pointer, w.element, w.bytes)

    def _places(self, j: int) -> list[str]:
        key = "places", j, id(self.w.lines)
        if key not in self.cached_addresses:
            cell_offset = self._add_number(self.turn, j)
            self.cached_addresses[key] = [self.w.let(f"add i64 {begin}, {cell_offset}") for begin in self.begins]
        places: list[str] = self.cached_addresses[key]
        return places

    def _add_number(self, x: str, number: int) -> str:
        return self.w.let(f"add i64 {x}, {number}") if number else x

    def _load_integer(self, table: str, index: str) -> str:
        """Load an element of a table of integers."""
        w = self.w
        place = w.let(f"getelementptr i32, ptr {self._integer_table(table)}, i64 {index}", "p")
        return w.let(f"sext i32 {w.let(f'load i32, ptr {place}, align 4')} to i64")

    def _integer_table(self, table: str) -> str:
        return f"@{self.owner.tag}_{table}"

    def _constant_table(self, cell: int) -> str:
        return f"@{self.owner.tag}_table{cell}"

    def _handed_address(self, slot: str, element: int) -> str:
        w, width = self.w, len(self.layout.field_index)
        key = "handed", slot
        if key not in self.cached_addresses:
            row = w.let(f"add i64 {w.let(f'mul i64 {slot}, {width}')}, {self.layout.handed_at}")
            self.cached_addresses[key] = w.let(f"getelementptr {w.element}, ptr %ws, i64 {row}", "p")
        return w.at(self.cached_addresses[key], self.layout.field_index[self.channel, element] * w.bytes)

    def _constant_addresses(self, column: int, j: int) -> list[str]:
        """Return addresses in the rows of the table that belong to these places."""
        w, cell = self.w, self.shape.cells[j]
        key = "rows", j
        if key not in self.cached_addresses:
            lines_here, w.lines = w.lines, self.bundle_lines
            self.cached_addresses[key] = [
                self._load_integer(f"rows{self.shape_number}_{j}", self._add_number(self.first, lane))
                for lane in range(w.lanes)
            ]
            w.lines = lines_here
        cells_per_repeat, width = self.shape.cells.count(cell), self.r.tables[cell].shape[1]
        addresses = []
        for row in self.cached_addresses[key]:
            index = w.let(f"add i64 {row}, {w.let(f'mul i64 {self.round}, {cells_per_repeat}')}")
            index = w.let(f"mul i64 {index}, {width}")
            base = self._constant_table(cell)
            addresses.append(
                w.let(f"getelementptr {w.element}, ptr {base}, i64 {self._add_number(index, column)}", "p")
            )
        return addresses

    def _element_addresses(self, array: str, name: str, element: int, j: int) -> list[str]:
        """Return addresses of elements: with a constant stride along each run, or by a table."""
        w, values = self.w, self.r.tree.elements[name][:, element]
        numbers = values[self.shape.places_of_cell(j)]
        steps = np.unique(np.diff(numbers, axis=1))
        if len(steps) > 1:
            indices = [self._load_integer(f"{symbol(name)}_{element}", place) for place in self._places(j)]
            return [w.let(f"getelementptr {w.element}, ptr {array}, i64 {number}", "p") for number in indices]
        key = "elements", array, element, j
        if key not in self.cached_addresses:
            table = self.owner.index(f"from_{symbol(name)}_{element}_{self.shape_number}_{j}", numbers[:, 0])
            lines_here, w.lines = w.lines, self.bundle_lines
            starts = [self._load_integer(table, self._add_number(self.first, lane)) for lane in range(w.lanes)]
            self.cached_addresses[key] = [
                w.let(f"getelementptr {w.element}, ptr {array}, i64 {x}", "p") for x in starts
            ]
            w.lines = lines_here
        run_offset = w.let(f"mul i64 {self.round}, {int(steps[0]) if len(steps) else 0}")
        return [
            w.let(f"getelementptr {w.element}, ptr {start}, i64 {run_offset}", "p")
            for start in self.cached_addresses[key]
        ]
