"""Simulation kernels: one thread per run from tick to tick, its state in registers, or in memory for large mechanisms.

    run(i64 n, i64 ticks, ptr s, ptr p, ptr inputs, i64 per_run, i64 per_element, ptr rows, i64 capacity, ptr counts)

The program and the flags in its state are those of graph/program.py. In all arrays the run is the fastest index:
s (size, n), p (np, n), rows (capacity, row, n), counts (n), one row when it is due. The input table (lines, nu) of a
run begins per_run elements after that of the previous run, with its elements per_element apart, so that all runs can
share one table. With ticks = START, states are only completed.

State elements that a tick passes on unchanged (the step size, the end time) are not kept in registers: they are read
again where they are used. Elements that a tick only writes for others (the polynomial of a step) are stored in memory
and read there. `observe`, `locate` and `renew` are rare, and must not cost a tick registers: they read and write the
state in memory; the register part of it is stored before them and reloaded after them. A thread whose rows are full, or
that has stopped, waits for the others; the caller empties the rows and starts the kernel again.

Large mechanisms: hundreds of coordinates do not fit into registers, and an unrolled step does not fit into the
instruction cache. So the step consists of the functions of emit/llvm/subroutines.py, with rolled loops over link
classes and over similar coordinates, and @go of the same file advances a run from tick to tick, in interleaved threads
(lane_code.py). Two more arguments are a workspace and the number of its blocks. The workspace of a thread holds the
state and the next one, free parameters, inputs, a row, and the intermediate values of the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.lane_code import LANES, LaneWriter, lane_kernel, lane_module
from bellcrank.emit.cuda.occupancy import MAX_REGISTERS, OVERHEAD_VALUES, REGISTER_FILE_SIZE, SHARED_BYTES
from bellcrank.emit.cuda.procedure import InputElement, Procedure, output_elements, procedures
from bellcrank.emit.cuda.ptx import disable_unrolling, ptx
from bellcrank.emit.cuda.run_kernel_code import START_TICKS, RunKernelCode, needs_start, unchanged_elements
from bellcrank.emit.llvm.subroutines import Routines, call_go, call_text, sign_bits, tick_routines
from bellcrank.graph import Graph, Node, Program
from bellcrank.quoting import comment

THREADS_PER_BLOCK = 128


@dataclass(frozen=True, eq=False)
class RunKernel:
    """Simulation kernel of a program, with its register and shared-memory budget."""

    program: Program
    dtype: str = "float64"
    blocks: int = 0  # resident blocks of a multiprocessor; 0: as many as the predicted registers allow
    threads: int = THREADS_PER_BLOCK
    workspace = 0  # elements of a run in a workspace

    @property
    def words_per_value(self) -> int:
        """32-bit words of a value."""
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def unchanged_elements(self) -> set[int]:
        """State elements that a tick passes on unchanged."""
        return unchanged_elements(self.program.tick)

    @cached_property
    def memory_elements(self) -> set[int]:
        """State elements that a tick changes but does not read, in a program where other graphs read them."""
        program, flat = self.program, output_elements(self.program.tick)
        if not self.rare_graphs.keys() & {"observe", "locate"}:
            return set()
        users: dict[int, set[int]] = {}
        for node in program.tick.nodes:
            for a in node.operands:
                if a.op == "input" and a.args[0] == "s":
                    users.setdefault(a.args[1], set()).add(node.serial)
        plain = {x.args[1] for x in flat if isinstance(x, Node) and x.op == "input" and x.args[0] == "s"}
        own_definition = [{x.serial} if isinstance(x, Node) else set() for x in flat]
        needed = plain | self.unchanged_elements | {program.live, program.due, *self.optional_flags.values()}
        return {k for k in range(program.size) if k not in needed and users.get(k, set()) <= own_definition[k]}

    @property
    def optional_flags(self) -> dict[str, int]:
        """State indices of the flags that not every program has."""
        p = self.program
        flags = {"hit": p.hit} if p.locate else {}
        flags |= {"fresh": p.fresh} if p.renew else {}
        return flags | ({"input": p.input} if p.nu else {})

    @cached_property
    def register_elements(self) -> list[int]:
        """State elements in registers."""
        return [
            k for k in range(self.program.size) if k not in self.unchanged_elements and k not in self.memory_elements
        ]

    @cached_property
    def rare_graphs(self) -> dict[str, Graph]:
        """Graphs that are called between ticks, or before the first."""
        graphs = {name: g for name, g in self.program.graphs.items() if name != "tick"}
        return graphs if self.needs_start else {name: g for name, g in graphs.items() if name != "start"}

    @cached_property
    def needs_start(self) -> bool:
        """Return whether the state must be completed before the first tick."""
        return needs_start(self.program)

    @cached_property
    def procedures(self) -> list[Procedure]:
        """Procedures in order: callees before their callers, rare graphs, the tick."""
        tick = self.program.tick
        memory: dict[InputElement, InputElement] = {place: place for place in tick.elements if place[0] != "s"}
        memory |= {("s", k): ("s", k) for k in (*self.unchanged_elements, *self.memory_elements)}
        roots = {name: (g, {place: place for place in g.elements}) for name, g in self.rare_graphs.items()}
        all_procedures = procedures({**roots, "tick": (tick, memory)})
        callees, top = self._callees(all_procedures), all_procedures[-1]
        for p in all_procedures:
            if p.name in self.rare_graphs:
                p.register_variables = p.shared_variables = 0
        top.early_stores = self._early_stores(top)
        self._share_registers(top, callees)
        self._share_slots(top, callees)
        return all_procedures

    def _callees(self, all_procedures: Sequence[Procedure]) -> list[Procedure]:
        """Return the procedures that the tick calls."""
        called_by_tick = {id(g) for g in self.program.tick.calls}
        return [p for p in all_procedures if id(p.graph) in called_by_tick]

    def _share_registers(self, top: Procedure, callees: Sequence[Procedure]) -> None:
        """Divide the registers between values live across calls in the tick and the callees' own values."""
        inner = max((p.max_live + p.max_live_across_calls for p in callees), default=0)
        excess = max(0, top.max_live_across_calls + inner - self.register_values)
        moved = min(top.crossing_variables, excess)  # variables have the longest live ranges, so they are spilled first
        top.register_variables = top.crossing_variables - moved
        for p in callees:
            if excess > moved:
                p.register_limit = max(16, self.register_values - (top.max_live_across_calls - moved) - OVERHEAD_VALUES)
            while (
                p.slots * self.threads * 4 * self.words_per_value > SHARED_BYTES // 3 and p.register_limit < p.max_live
            ):
                p.register_limit += 8  # at least two blocks should fit: the assembler spills the rest
                del p.spill_plan

    def _share_slots(self, top: Procedure, callees: Sequence[Procedure]) -> None:
        """Assign slots of shared memory to the callees; the tick has the remaining ones."""
        leaves = [p for p in callees if not p.max_live_across_calls]
        slot = max((p.slots for p in leaves), default=0)  # leaf procedures are never active together, and share slots
        for p in callees:
            if p not in leaves:
                p.first_slot, slot = slot, slot + p.slots
        top.first_slot, top.shared_variables = slot, max(0, self.shared_values - slot)

    def _early_stores(self, tick: Procedure) -> dict[int, int]:
        """Return held outputs that can be stored as soon as they are computed: the old value is no longer read."""
        last = {n.args: i for i, unit in enumerate(tick.sequence) for n in unit.uses if n.op == "input"}
        defined_at = {n.serial: i for i, unit in enumerate(tick.sequence) for n in unit.defines}
        flat = output_elements(tick.graph)
        early_stores: dict[int, int] = {}
        for k in self.memory_elements:
            x = flat[k]
            if isinstance(x, Node) and x.serial in defined_at and last.get(("s", k), -1) <= defined_at[x.serial]:
                early_stores.setdefault(x.serial, k)
        return early_stores

    @property
    def register_values(self) -> int:
        """Values that fit into the registers of a thread."""
        limit = REGISTER_FILE_SIZE // (self.threads * self.blocks) // 8 * 8 if self.blocks else MAX_REGISTERS
        return min(MAX_REGISTERS, limit) // self.words_per_value - OVERHEAD_VALUES

    @property
    def shared_values(self) -> int:
        """Values of a thread that fit into shared memory.

        Adaptive steps have many outputs, and two blocks should fit: the other values lie in local memory.
        """
        blocks = self.blocks or (2 if self.memory_elements else 1)
        return (SHARED_BYTES // blocks - 1024) // (self.threads * 4 * self.words_per_value)

    @property
    def max_live(self) -> int:
        """Maximum number of values in registers."""
        top, callees = self.procedures[-1], self._callees(self.procedures)
        waiting = top.max_live_across_calls - max(0, top.crossing_variables - top.register_variables)
        return max([top.max_live, *(waiting + p.spill_plan.max_registers for p in callees)])

    @property
    def registers(self) -> int:
        """Predicted registers of a thread."""
        return min(MAX_REGISTERS, (self.max_live + OVERHEAD_VALUES) * self.words_per_value)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        slots = max(p.first_slot + p.slots for p in self.procedures)
        return slots * self.threads * 4 * self.words_per_value

    @property
    def resident_blocks(self) -> int:
        """Resident blocks of a multiprocessor."""
        by_registers = REGISTER_FILE_SIZE // (self.threads * -(-self.registers // 8) * 8)
        return self.blocks or max(1, min(by_registers, SHARED_BYTES // (self.shared + 1024)))

    @cached_property
    def text(self) -> str:
        """The whole kernel as LLVM IR."""
        return RunKernelCode(self).module

    @cached_property
    def ptx(self) -> str:
        """The kernel as PTX."""
        return ptx(self.text, promote=True)


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
