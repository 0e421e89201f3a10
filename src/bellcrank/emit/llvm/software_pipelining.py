"""Software pipelining: a block of states computes the first sines and cosines of the next block.

They are interleaved with the block's own operations, and keep the multipliers busy while a recursion from body to body
waits for its last result. Each block then has a workspace of its own, %ws for this one and %then for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.scheduling import Item

if TYPE_CHECKING:
    from bellcrank.emit.llvm.llvm_printer import LLVMPrinter

INTERLEAVED_ANGLES = 2  # angles whose sines and cosines are interleaved, to hide the latency of their polynomials


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
