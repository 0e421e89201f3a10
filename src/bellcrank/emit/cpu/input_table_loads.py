"""LLVM IR that loads the inputs of runs from the current line of each run's table."""

from __future__ import annotations

from bellcrank.emit.llvm import lanes as copied
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.scheduling import TILE_COLUMNS, tiles
from bellcrank.graph import Program

NEWLINE = "\n"
LONG_ROW_NUMBERS = 300  # numbers; longer rows are copied number by number, in a loop


def input_lines(program: Program, w: Writer, copy: Writer) -> str:
    """Return the lines from %feed to %fed for the inputs of `program`, for the lanes of `w`, writing copies by `copy`.

    Usually all lanes are at the same line of their tables; then the lines are transposed, as for a batch.
    """
    if w.lanes == 1 or program.nu > LONG_ROW_NUMBERS:
        return f"  br label %feed.lane\n{_lane_loop(program, w, '%feed')}"
    W, bits = w.lanes, f"i{w.lanes}"
    rotated_lanes = ", ".join(f"i32 {(lane + 1) % W}" for lane in range(W))
    first_line = len(copy.lines)
    for tile in tiles("u", program.nu, (2 * TILE_COLUMNS, TILE_COLUMNS)):
        copied.store_tile(copy, tile, "%u", "", copied.load_tile(copy, tile, "%one.from", "%inputs_lane"))
    return f"""  %one.at = getelementptr i8, ptr %here, i64 {program.input * w.align}
  %one.x = load {w.type}, ptr %one.at, align {w.align}
  %one.turned = shufflevector {w.type} %one.x, {w.type} poison, <{W} x i32> <{rotated_lanes}>
  %one.same = fcmp oeq {w.type} %one.x, %one.turned
  %one.bits = bitcast {w.mask} %one.same to {bits}
  %one = icmp eq {bits} %one.bits, -1
  br i1 %one, label %feed.all, label %feed.each
feed.all:
  %one.first = extractelement {w.type} %one.x, i64 0
  %one.line = fptosi {w.element} %one.first to i64
  %one.o = mul i64 %one.line, {program.nu * w.bytes}
  %one.from = getelementptr i8, ptr %inputs, i64 %one.o
{"".join(f"  {line}{NEWLINE}" for line in copy.lines[first_line:])}  br label %fed
feed.each:
  br label %feed.lane
{_lane_loop(program, w, "%feed.each")}"""


def _lane_loop(program: Program, w: Writer, entry_label: str) -> str:
    """Return a loop that copies lane by lane and number by number."""
    e = w.element
    return f"""feed.lane:
  %f = phi i64 [0, {entry_label}], [%f.next, %feed.on]
  %f.at = getelementptr i8, ptr %here, i64 {program.input * w.align}
  %f.line.at = getelementptr {e}, ptr %f.at, i64 %f
  %f.line.x = load {e}, ptr %f.line.at, align {w.bytes}
  %f.line = fptosi {e} %f.line.x to i64
  %f.line.o = mul i64 %f.line, {program.nu * w.bytes}
  %f.table = mul i64 %f, %inputs_lane
  %f.offset = add i64 %f.table, %f.line.o
  %f.from = getelementptr i8, ptr %inputs, i64 %f.offset
  %f.to = getelementptr {e}, ptr %u, i64 %f
  br label %feed.column
feed.column:
  %g = phi i64 [0, %feed.lane], [%g.next, %feed.column]
  %g.from = getelementptr {e}, ptr %f.from, i64 %g
  %g.x = load {e}, ptr %g.from, align {w.bytes}
  %g.to.o = mul i64 %g, {w.align}
  %g.to = getelementptr i8, ptr %f.to, i64 %g.to.o
  store {e} %g.x, ptr %g.to, align {w.bytes}
  %g.next = add i64 %g, 1
  %g.more = icmp ult i64 %g.next, {program.nu}
  br i1 %g.more, label %feed.column, label %feed.on
feed.on:
  %f.next = add i64 %f, 1
  %f.more = icmp ult i64 %f.next, {w.lanes}
  br i1 %f.more, label %feed.lane, label %fed
"""
