"""Simulation kernel for large mechanisms: one thread per run, its state in memory.

    run(i64 n, i64 ticks, ptr s, ptr p, ptr inputs, i64 per_run, i64 per_element, ptr rows, i64 capacity, ptr counts,
        ptr workspace, i64 blocks)

Arguments are those of run_kernel.py, plus a workspace for that many blocks. Hundreds of coordinates do not fit into
registers, and an unrolled step does not fit into the instruction cache. So the step consists of the functions of
emit/llvm/subroutines.py, with rolled loops over link classes and over similar coordinates, and @go of the same file
advances a run from tick to tick, in interleaved threads (lane_code.py). The workspace of a thread holds the state and
the next one, free parameters, inputs, a row, and the intermediate values of the functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.lane_code import LANES, LaneWriter, lane_kernel, lane_module
from bellcrank.emit.cuda.ptx import disable_unrolling, ptx
from bellcrank.emit.cuda.run_kernel_code import START_TICKS, needs_start
from bellcrank.emit.llvm.subroutines import Routines, call_go, call_text, sign_bits, tick_routines
from bellcrank.graph import Program
from bellcrank.quoting import comment


@dataclass(frozen=True, eq=False)
class LargeRunKernel:
    """Simulation kernel of a program with rolled loops."""

    program: Program
    dtype: str = "float64"
    threads = LANES
    shared = 0

    @cached_property
    def needs_start(self) -> bool:
        """Return whether the state must be completed before the first tick."""
        return needs_start(self.program)

    @cached_property
    def routines(self) -> Routines:
        """The function @go and the functions that the kernel calls besides it."""
        beside = ("start", "observe") if self.needs_start else ("observe",)
        more = {name: g for name, g in self.program.graphs.items() if name in beside}
        return tick_routines(self.program, 1, 1, self.dtype, more, writer=LaneWriter)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes in elements of the arrays in the workspace of a run, in their order."""
        p = self.program
        return {"s": p.size, "spare": p.size, "p": p.free, "u": p.nu, "row": p.row, "ws": self.routines.slots}

    @property
    def workspace(self) -> int:
        """Elements of a run in the workspace."""
        return sum(self.sizes.values())

    @cached_property
    def text(self) -> str:
        """The whole kernel as LLVM IR."""
        tick = self.program.tick
        head = f"; {comment(tick.name)}: {self.program.size} numbers of state, a thread for each run\n"
        feed = [_feed(self.program, LaneWriter(1, self.dtype))] if self.program.nu else []
        return lane_module(head, self.dtype, self.routines.text, *feed, _run(self, LaneWriter(1, self.dtype)))

    @cached_property
    def ptx(self) -> str:
        """The kernel as PTX."""
        return disable_unrolling(ptx(self.text))


def _feed(program: Program, w: LaneWriter) -> str:
    """Return the function @feed: read the inputs that are valid now."""
    return f"""define internal void @feed(ptr %s, ptr %u, ptr %inputs, i64 %per_element) noinline nounwind {{
  %line.at = getelementptr i8, ptr %s, i64 {program.input * w.align}
  %line.x = load {w.type}, ptr %line.at, align {w.bytes}
  %line = fptoui {w.type} %line.x to i64
  %step = mul i64 %per_element, {w.bytes}
  %lines = mul i64 %line, {program.nu}
  %offset = mul i64 %lines, %step
  %from = getelementptr i8, ptr %inputs, i64 %offset
  call void @copied(ptr %u, i64 {w.align}, ptr %from, i64 %step, i64 {program.nu})
  ret void
}}"""


def _call_feed(program: Program, state: str) -> str:
    call = f"  call void @feed(ptr {state}, ptr %u, ptr %inputs.at, i64 %per_element)\n"
    return call if program.nu else ""


def _run(loop: LargeRunKernel, w: LaneWriter) -> str:
    program, wide = loop.program, w.align
    start = "  br label %top\n"
    if loop.needs_start:
        start = f"""  br i1 %is.start, label %start, label %top
start:
{_call_feed(program, "%s")}{call_text(program.start, "start", "%s", "%spare")}  br label %leave
"""
    observe = call_text(program.observe, "observe", "%here", "%row", "%there") if program.observe else ""
    # Without observe the row is the head of the state itself, and the kernel clears the due flag.
    row, after = ("%row", "look") if program.observe else ("%here", "ready")
    noted = "" if program.observe else f"  store {w.type} {w.constant(0.0)}, ptr %due.at, align {w.bytes}\n"
    back = ("[%there, %put], ", "[%here, %put], ") if program.observe else ("", "")
    left = ", [%spare, %start]" if loop.needs_start else ""
    left_count = ", [%count.first, %start]" if loop.needs_start else ""
    arrays = "".join(f"  %{a}.at = getelementptr {w.type}, ptr %all.{a}, i64 %state\n" for a in ("s", "p", "rows"))
    body = f"""{arrays}  %step = mul i64 %n, {w.bytes}
  %inputs.o = mul i64 %state, %per_run
  %inputs.at = getelementptr {w.type}, ptr %inputs, i64 %inputs.o
  %counts.at = getelementptr i64, ptr %counts, i64 %state
  %count.first = load i64, ptr %counts.at
  call void @copied(ptr %s, i64 {wide}, ptr %s.at, i64 %step, i64 {program.size})
  call void @copied(ptr %p, i64 {wide}, ptr %p.at, i64 %step, i64 {program.free})
  %is.start = icmp eq i64 %ticks, {START_TICKS}
{start}top:
  %k = phi i64 [0, %begin], [%k.next, %tick]
  %now = phi ptr [%s, %begin], [%to, %tick]
  %other = phi ptr [%spare, %begin], [%from, %tick]
  %count.now = phi i64 [%count.first, %begin], [%count.here, %tick]
  %used = icmp uge i64 %k, %ticks
  br i1 %used, label %leave, label %look
look:
  %here = phi ptr {back[0]}[%now, %top]
  %there = phi ptr {back[1]}[%other, %top]
  %count = phi i64 {"[%count.next, %put], " if program.observe else ""}[%count.now, %top]
{sign_bits(w, "due", "%here", program.due)}  br i1 %due, label %room, label %ready
room:
  %full = icmp uge i64 %count, %capacity
  br i1 %full, label %leave, label %put
put:
{observe}  %rows.first = mul i64 %count, {program.row}
  %rows.o = mul i64 %rows.first, %step
  %rows.to = getelementptr i8, ptr %rows.at, i64 %rows.o
  call void @copied(ptr %rows.to, i64 %step, ptr {row}, i64 {wide}, i64 {program.row})
{noted}  %count.next = add i64 %count, 1
  br label %{after}
ready:
  %count.here = phi i64 [%count, %look]{"" if program.observe else ", [%count.next, %put]"}
{sign_bits(w, "live", "%here", program.live)}  br i1 %live, label %tick, label %leave
tick:
{_call_feed(program, "%here")}{call_go("1", "%here", "%there", "%to", "%from")}  %k.next = add i64 %k, 1
  br label %top
leave:
  %last = phi ptr [%now, %top], [%here, %room], [%here, %ready]{left}
  %count.last = phi i64 [%count.now, %top], [%count, %room], [%count.here, %ready]{left_count}
  call void @copied(ptr %s.at, i64 %step, ptr %last, i64 {wide}, i64 {program.size})
  store i64 %count.last, ptr %counts.at
  br label %next
"""
    parameters = (
        "i64 %ticks, ptr %all.s, ptr %all.p, ptr %inputs, i64 %per_run, i64 %per_element, ptr %all.rows, "
        "i64 %capacity, ptr %counts"
    )
    return lane_kernel("run", parameters, loop.sizes, w, body)
