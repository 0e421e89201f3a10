"""LLVM IR of a run: a state advances from tick to tick (subroutines.py), and rows of it are recorded on the way.

    i64 @run(i64 ticks, ptr s, ptr spare, ptr p, ptr u, ptr inputs, i64 inputs_lane, ptr row, ptr rows, i64 rows_lane,
             i64 capacity, ptr counts, ptr ws)
    void @begin(ptr s, ptr spare, ptr p, ptr u, ptr ws)     the state in s, completed in spare, before the first tick
    void @sweep(i64 blocks, i64 ticks, ptr first, ptr inputs, i64 inputs_lane, ptr row, ptr rows, i64 rows_lane,
                i64 capacity, ptr counts, ptr codes, ptr ws)

`sweep` runs one block of lanes after the other, so that a batch of short runs is one call. The memory of a block is its
s, spare, p and u, in this order; blocks are contiguous, and so are their inputs, rows and counts. `codes` has the last
result of `run` for each block: a block that is DONE is skipped, and a block that is NEW is begun first.

The state `s` and its signs are those of graph/program.py. The result is the reason why the loop returned, plus
`SWAPPED` if the state now lies in `spare`: DONE (no lane is live), PAUSE (ticks are used up; call again to go on) or
FULL (no room for another row).

The inputs of runs are loaded from the current line of each run's table (`input_lines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bellcrank.emit.llvm import lanes as copied
from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.scheduling import TILE_COLUMNS, tiles
from bellcrank.emit.llvm.subroutines import Routines, begin_function, call_go, call_text, sign_bits, tick_routines
from bellcrank.graph import Graph, Program
from bellcrank.quoting import comment

DONE, PAUSE, FULL, NEW, SWAPPED = 0, 1, 2, 3, 16
LONG_ROW_NUMBERS = 300  # numbers; longer rows are copied number by number, in a loop


def source(program: Program, lanes: int, trig_width: int, dtype: str = "float64") -> tuple[str, int]:
    """Return the module for runs of `program`, and the slots of the workspace that `run` needs.

    Parameters
    ----------
    program
        The program.
    lanes
        Runs in a block.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    """
    routines = run_functions(program, lanes, trig_width, dtype)
    parts = [
        f"; {comment(program.tick.name)}: {program.size} numbers of state, {lanes} lanes of {dtype}",
        sincos.definition(trig_width, dtype),
        routines.text,
        "@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to",
    ]
    return "\n".join(parts), routines.slots


def run_functions(
    program: Program,
    lanes: int,
    trig_width: int,
    dtype: str,
    more_graphs: Mapping[str, Graph] | None = None,
    chunk: int | None = None,
) -> Routines:
    """Return the loop and all functions that it calls, except @sincos.

    Parameters
    ----------
    program
        The program.
    lanes
        Runs in a block.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    more_graphs
        Further graphs, by the names of their functions.
    chunk
        Items in a function; CHUNK_ITEMS of subroutines.py by default.
    """
    w = Writer(lanes, dtype)
    graphs = {name: g for name, g in program.graphs.items() if name not in ("tick", "renew", "locate")}
    routines = tick_routines(program, lanes, trig_width, dtype, {**graphs, **(more_graphs or {})}, chunk)
    return replace(
        routines,
        text="\n".join(
            [routines.text, begin_function(program), _run_function(program, w), _sweep_function(program, w)]
        ),
    )


def _sweep_function(program: Program, w: Writer) -> str:
    n, free = program.size * w.align, program.free * w.align
    return f"""define void @sweep(
  i64 %blocks, i64 %ticks, ptr %first, ptr %inputs, i64 %inputs_lane, ptr %row, ptr %rows, i64 %rows_lane,
  i64 %capacity, ptr %counts, ptr %codes, ptr %ws
) nounwind {{
begin:
  %inputs.block = mul i64 %inputs_lane, {w.lanes}
  %rows.block = mul i64 %rows_lane, {w.lanes}
  %any = icmp ne i64 %blocks, 0
  br i1 %any, label %block, label %end
block:
  %k = phi i64 [0, %begin], [%k.next, %on]
  %codes.at = getelementptr i64, ptr %codes, i64 %k
  %old = load i64, ptr %codes.at, align 8
  %why = and i64 %old, {SWAPPED - 1}
  %done = icmp eq i64 %why, {DONE}
  br i1 %done, label %on, label %open
open:
  %s.o = mul i64 %k, {2 * n + free + program.nu * w.align}
  %s = getelementptr i8, ptr %first, i64 %s.o
  %spare = getelementptr i8, ptr %s, i64 {n}
  %p = getelementptr i8, ptr %s, i64 {2 * n}
  %u = getelementptr i8, ptr %s, i64 {2 * n + free}
  %new = icmp eq i64 %why, {NEW}
  br i1 %new, label %start, label %go
start:
  call void @begin(ptr %s, ptr %spare, ptr %p, ptr %u, ptr %ws)
  br label %go
go:
  %flag = phi i64 [%old, %open], [0, %start]
  %turned = and i64 %flag, {SWAPPED}
  %is = icmp ne i64 %turned, 0
  %here = select i1 %is, ptr %s, ptr %spare
  %there = select i1 %is, ptr %spare, ptr %s
  %inputs.o = mul i64 %k, %inputs.block
  %inputs.k = getelementptr i8, ptr %inputs, i64 %inputs.o
  %rows.o = mul i64 %k, %rows.block
  %rows.k = getelementptr i8, ptr %rows, i64 %rows.o
  %counts.o = mul i64 %k, {8 * w.lanes}
  %counts.k = getelementptr i8, ptr %counts, i64 %counts.o
  %code = call i64 @run(i64 %ticks, ptr %here, ptr %there, ptr %p, ptr %u, ptr %inputs.k, i64 %inputs_lane, ptr %row,
    ptr %rows.k, i64 %rows_lane, i64 %capacity, ptr %counts.k, ptr %ws)
  %now = xor i64 %code, %turned
  store i64 %now, ptr %codes.at, align 8
  br label %on
on:
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %blocks
  br i1 %more, label %block, label %end
end:
  ret void
}}"""


def _run_function(program: Program, w: Writer) -> str:
    e, size, R = w.element, w.align, program.row
    observe = call_text(program.observe, "observe", "%here", "%row", "%there") if program.observe else ""
    # Without observe, a row is the beginning of the state itself, which stays where it is.
    source_row = "%row" if program.observe else "%here"
    after_observe = ("%top2", "%there", "%here") if program.observe else ("%advance", "%here", "%there")
    copy = Writer(w.lanes, w.dtype)  # one writer for all copies, so that its names are unique
    gather = input_lines(program, w, copy) if program.nu else "  br label %fed\n"
    top_state_phi, top_free_phi = ("[%there, %stored], ", "[%here, %stored], ") if program.observe else ("", "")
    return f"""define i64 @run(
  i64 %ticks, ptr noalias %s, ptr noalias %spare, ptr noalias %p, ptr noalias %u, ptr %inputs, i64 %inputs_lane,
  ptr noalias %row, ptr %rows, i64 %rows_lane, i64 %capacity, ptr %counts, ptr noalias %ws
) nounwind {{
begin:
  br label %top
top:
  %k = phi i64 [0, %begin], [%k.next, %fed]
  %now = phi ptr [%s, %begin], [%to, %fed]
  %next = phi ptr [%spare, %begin], [%from, %fed]
  %used = icmp uge i64 %k, %ticks
  br i1 %used, label %pause, label %top2
top2:
  %here = phi ptr {top_state_phi}[%now, %top]
  %there = phi ptr {top_free_phi}[%next, %top]
{sign_bits(w, "due", "%here", program.due)}  br i1 %due, label %even, label %advance
{_store_all_lanes(program, w, copy, observe, source_row)}room:
  %l0 = phi i64 [0, %even], [%l0.next, %room.on]
  %full.at = getelementptr i64, ptr %counts, i64 %l0
  %full.n = load i64, ptr %full.at, align 8
  %full.past = icmp uge i64 %full.n, %capacity
  %full.due.at = getelementptr {e}, ptr %due.at, i64 %l0
  %full.due.x = load {e}, ptr %full.due.at, align {w.bytes}
  %full.due = fcmp ogt {e} %full.due.x, 0.0
  %full = and i1 %full.past, %full.due
  br i1 %full, label %stop, label %room.on
room.on:
  %l0.next = add i64 %l0, 1
  %l0.more = icmp ult i64 %l0.next, {w.lanes}
  br i1 %l0.more, label %room, label %write
write:
{observe}  br label %lane
lane:
  %l = phi i64 [0, %write], [%l.next, %lane.on]
  %l.due.at = getelementptr {e}, ptr %due.at, i64 %l
  %l.due.x = load {e}, ptr %l.due.at, align {w.bytes}
  %l.due = fcmp ogt {e} %l.due.x, 0.0
  br i1 %l.due, label %put, label %lane.on
put:
  %put.count = getelementptr i64, ptr %counts, i64 %l
  %put.n = load i64, ptr %put.count, align 8
  %put.n1 = add i64 %put.n, 1
  store i64 %put.n1, ptr %put.count, align 8
  %put.lane = mul i64 %l, %rows_lane
  %put.line = mul i64 %put.n, {R * w.bytes}
  %put.offset = add i64 %put.lane, %put.line
  %put.to = getelementptr i8, ptr %rows, i64 %put.offset
  %put.from = getelementptr {e}, ptr {source_row}, i64 %l
  br label %column
column:
  %c = phi i64 [0, %put], [%c.next, %column]
  %c.from.o = mul i64 %c, {size}
  %c.from = getelementptr i8, ptr %put.from, i64 %c.from.o
  %c.x = load {e}, ptr %c.from, align {w.bytes}
  %c.to = getelementptr {e}, ptr %put.to, i64 %c
  store {e} %c.x, ptr %c.to, align {w.bytes}
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, {R}
  br i1 %c.more, label %column, label %lane.on
lane.on:
  %l.next = add i64 %l, 1
  %l.more = icmp ult i64 %l.next, {w.lanes}
  br i1 %l.more, label %lane, label %stored
stored:
  br label {after_observe[0]}
advance:
{sign_bits(w, "live", "%here", program.live)}  br i1 %live, label %feed, label %stop
feed:
{gather}fed:
{call_go("1", "%here", "%there", "%to", "%from")}  %k.next = add i64 %k, 1
  br label %top
pause:
  br label %return
stop:
  %why = phi i64 [{FULL}, %room], [{DONE}, %advance]
  br label %return
return:
  %code = phi i64 [{PAUSE}, %pause], [%why, %stop]
  %last = phi ptr [%now, %pause], [%here, %stop]
  %moved = icmp ne ptr %last, %s
  %flag = select i1 %moved, i64 {SWAPPED}, i64 0
  %result = or i64 %code, %flag
  ret i64 %result
}}"""


def _store_all_lanes(program: Program, w: Writer, copy: Writer, observe: str, source_row: str) -> str:
    """Return the code for the usual case: all lanes are due and have equally many rows.

    Their new rows are written at once, transposed. Long rows are written number by number.
    """
    if program.row > LONG_ROW_NUMBERS:
        return "even:\n  br label %room\n"
    W, bits, R = w.lanes, f"i{w.lanes}", program.row
    counts = "i64" if W == 1 else f"<{W} x i64>"
    one_count = "1" if W == 1 else "splat (i64 1)"
    rotated, n = "%all.n", "%all.n"
    head = [f"%all.n = load {counts}, ptr %counts, align 8"]
    if W > 1:
        rotated, n = "%all.turned", "%all.first"
        rotated_lanes = ", ".join(f"i32 {(lane + 1) % W}" for lane in range(W))
        head.append(f"{rotated} = shufflevector {counts} %all.n, {counts} poison, <{W} x i32> <{rotated_lanes}>")
        head.append(f"{n} = extractelement {counts} %all.n, i64 0")
    first_line = len(copy.lines)
    for tile in tiles("row", R, (2 * TILE_COLUMNS, TILE_COLUMNS)):
        copied.store_tile(copy, tile, "%all.to", "%rows_lane", copied.load_tile(copy, tile, source_row, ""))
    return f"""even:
{copied.indented(head)}  %all.same = icmp eq {counts} %all.n, {rotated}
  %all.same.bits = bitcast {w.mask} %all.same to {bits}
  %all.bits = and {bits} %all.same.bits, %due.bits
  %all.is = icmp eq {bits} %all.bits, -1
  %all.room = icmp ult i64 {n}, %capacity
  %all = and i1 %all.is, %all.room
  br i1 %all, label %all.put, label %room
all.put:
{observe}  %all.o = mul i64 {n}, {R * w.bytes}
  %all.to = getelementptr i8, ptr %rows, i64 %all.o
  %all.n1 = add {counts} %all.n, {one_count}
  store {counts} %all.n1, ptr %counts, align 8
{copied.indented(copy.lines[first_line:])}  br label %stored
"""


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
{copied.indented(copy.lines[first_line:])}  br label %fed
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
