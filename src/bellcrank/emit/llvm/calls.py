"""Calls that an LLVM printer emits: of other graphs, of loops over columns, and of the next block's first work.

Arguments are stored in the workspace, and results stay there until they are used.

With software pipelining, a block of states computes the first sines and cosines of the next block. They are interleaved
with the block's own operations, and keep the multipliers busy while a recursion from body to body waits for its last
result. Each block then has a workspace of its own, %ws for this one and %then for the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.register_allocation import contiguous_location, read_elements
from bellcrank.emit.llvm.scheduling import Item
from bellcrank.graph import Graph, Node
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.llvm.column_layout import RowAssignment
    from bellcrank.emit.llvm.llvm_printer import LLVMPrinter

INTERLEAVED_ANGLES = 2  # angles whose sines and cosines are interleaved, to hide the latency of their polynomials


def emit_call(s: LLVMPrinter, item: Item) -> None:
    """Emit the call `item` by printer `s`; arguments are stored unless they are contiguous, results stay in place."""
    call_node, *results = item.defines
    function, *values = call_node.args
    if call_node.serial in s.columns:
        _emit_column_loop(s, call_node, results)
        return
    assert s.called is not None
    name, _ = s.called[id(function)]
    arrays = _argument_addresses(s, function, values)
    outputs = [math.prod(shape) for shape in function.shapes.values()]
    base, s.size = s.result_slots.allocate(results, sum(outputs), s.size)
    arrays += [s.slot(place) for place, _ in zip(accumulate([base, *outputs]), outputs, strict=False)]
    s.w.do(f"call void @{name}({', '.join(f'ptr {a}' for a in ('%ws', *arrays))})")
    for n in results:
        s.slots[n.serial] = base + n.args[1]


def _argument_addresses(s: LLVMPrinter, function: Graph, values: Sequence[Node | float]) -> list[str]:
    """Return the address of each array that a function takes."""
    sizes = [math.prod(shape) for shape in function.inputs.values()]
    start, room = s.argument_area
    if room < sum(sizes):
        start, room = s.size, sum(sizes)
        s.argument_area, s.size = (start, room), s.size + room
    addresses, position = [], 0
    used = read_elements(function)
    for array, size in zip(function.inputs, sizes, strict=True):
        elements = values[position : position + size]
        row = contiguous_location([(i, x) for i, x in enumerate(elements) if (array, i) in used], s.slots)
        if row is not None:
            addresses.append(s.w.at(f"%{row[0]}", row[1] * s.w.align))
        else:
            for i, x in enumerate(elements):
                if (array, i) in used:
                    s.w.store(s.value(x), s.slot(start + position + i))
            addresses.append(s.slot(start + position))
        position += size
    return addresses


def _emit_column_loop(s: LLVMPrinter, call: Node, results: Sequence[Node]) -> None:
    """Call a loop over columns.

    Columns are stored in the workspace, and shared numbers are read in place. Results go to an output, or they stay in
    the workspace until they are used.
    """
    code = s.columns[call.serial]
    loop, layout, shared = code.loop, code.layout, call.args[1 : 1 + code.loop.shared]
    s.store_values([x for x in shared if x.serial not in s.slots])
    assignment = code.assign_rows(_rows_read_last(s, call)) if s.w.lanes > 1 else None
    s.loop_functions.append(code.text([s.slots[x.serial] for x in shared], assignment))
    start = loop_argument_slot(s, call)
    for i, x in enumerate(loop.given(call), start):
        if not isinstance(x, Node) or s.slots.get(x.serial) != i:
            s.w.store(s.value(x), s.slot(i))
    arguments, name = f"ptr %ws, ptr {s.slot(start)}", code.name
    if layout is not None:
        s.coverage.note(layout.array, layout.elements)
        s.w.do(f"call void @{name}({arguments}, ptr %out_{symbol(layout.array)})")
        return
    size = assignment.extra_rows * loop.number if assignment else math.prod(call.args[0].shapes["x"])
    base = s.contiguous_slots(size)
    s.w.do(f"call void @{name}({arguments}, ptr {s.slot(base)})")
    if assignment:
        _update_slots(s, call, results, assignment, base)
    else:
        s.slots.update((x.serial, base + x.args[1]) for x in results)


def _update_slots(s: LLVMPrinter, call: Node, results: Sequence[Node], assignment: RowAssignment, base: int) -> None:
    """Update the slots after a loop: record the results, forget overwritten values, and free unused rows."""
    loop = s.columns[call.serial].loop
    n, start = loop.number, loop_argument_slot(s, call)
    for i, x in enumerate(loop.given(call)):
        if i // n in assignment.overwritable and isinstance(x, Node) and s.slots.get(x.serial) == start + i:
            del s.slots[x.serial]
    begins = [start + n * i for i in range(assignment.argument_rows)] + [
        base + n * i for i in range(assignment.extra_rows)
    ]
    s.slots.update((x.serial, begins[assignment.result_rows[x.args[1] // n]] + x.args[1] % n) for x in results)
    s.free_slots += [begins[place] + k for place in assignment.free_rows for k in range(n)]


def _rows_read_last(s: LLVMPrinter, call: Node) -> list[int]:
    """Return the rows of a loop's arguments that nothing reads after the loop."""
    loop = s.columns[call.serial].loop
    columns, n, later = loop.given(call), loop.number, s.read_after(call)
    rows = [columns[i : i + n] for i in range(0, len(columns), n)]
    return [i for i, row in enumerate(rows) if not any(isinstance(x, Node) and x.serial in later for x in row)]


def loop_argument_slot(s: LLVMPrinter, call: Node) -> int:
    """Return the slot, as printer `s` counts them, where the columns of the loop of `call` begin; values wait there."""
    if call.serial not in s.loop_argument_slots:
        loop = s.columns[call.serial].loop
        room = loop.rows * loop.number + s.trig_width  # vectors may reach beyond the last column
        s.loop_argument_slots[call.serial] = s.contiguous_slots(room)
    return s.loop_argument_slots[call.serial]


def argument_positions(s: LLVMPrinter) -> dict[int, tuple[Node, int]]:
    """Return the call and the position of each argument of the loops over columns of printer `s`, by serial."""
    positions: dict[int, tuple[Node, int]] = {}
    for call in (item.defines[0] for chunk in s.chunks for item in chunk if item.kind == "call"):
        for i, x in enumerate(s.columns[call.serial].loop.given(call)):
            if isinstance(x, Node):
                positions.setdefault(x.serial, (call, i))
    return positions


def prologue(s: LLVMPrinter) -> str:
    """Return the prologue by printer `s`: the first sines and cosines of the first block, also if out of range."""
    s.begin_body()
    _emit_prologue(s)
    return s.body_text()


def _emit_prologue(s: LLVMPrinter) -> None:
    *items, angles = s.prologue
    for item in items:
        s.emit_item(item)
    s.w.store(s.w.total(s.check_terms), s.slot(0))
    s.emit_item(angles)


def interleave_next_block(s: LLVMPrinter, name: str) -> str:
    """Interleave the prologue of the next block with the lines of printer `s`; return how function `name` ends."""
    w, lines, s.for_next_block = s.w, s.w.lines, True
    s.begin_body()
    _emit_prologue(s)
    prologue_lines, w.lines, s.for_next_block = w.lines, [], False
    for i, line in enumerate(lines):
        w.lines += [
            line,
            *prologue_lines[len(prologue_lines) * i // len(lines) : len(prologue_lines) * (i + 1) // len(lines)],
        ]
    out_of_range = sincos.out_of_range(w, s.range_bits)
    inputs = ", ".join(f"ptr %next_{n}, i64 %stride_in_{n}" for n in s.inputs)
    return f"""  br i1 {out_of_range}, label %redo, label %done
redo:
  call void @{name}_first(ptr %then, {inputs})
  br label %done
done:
"""


def interleaved_sincos(s: LLVMPrinter, item: Item) -> None:
    """Emit sines and cosines of `item` without a call, interleaved, into the slots where `s._trig` would put them."""
    w, results = s.w, dict[tuple[str, int], str]()
    s.range_bits = "zeroinitializer"
    for start in range(0, len(item.uses), INTERLEAVED_ANGLES):
        angles = item.uses[start : start + INTERLEAVED_ANGLES]
        values = [s.value(a) for a in angles]
        lines_before, columns = w.lines, []
        for a, value in zip(angles, values, strict=True):
            w.lines = []
            results["sin", a.serial], results["cos", a.serial], results["stray", a.serial] = sincos.emit_sincos(
                w, value
            )
            columns.append(w.lines)
        w.lines = lines_before + [line for lines in zip(*columns, strict=True) for line in lines]
        kind = f"<{w.lanes} x i{8 * w.bytes}>"
        for a in angles:
            s.range_bits = w.let(f"or {kind} {s.range_bits}, {results['stray', a.serial]}")
        for n in item.defines:
            if n.operands[0] in angles:
                w.store(results[n.op, n.operands[0].serial], s.slot(s.slots[n.serial]), kind)
