"""A whole simulation as one kernel: every thread takes one run from tick to tick, its state in registers.

    run(i64 n, i64 ticks, ptr s, ptr p, ptr inputs, i64 per_run, i64 per_element, ptr rows, i64 capacity, ptr counts)

The program is that of emit/loop.py, and so are the signs in its state. Arrays have the runs side by side: s (size, n),
p (np, n), rows (capacity, row, n), counts (n), a row when it is due. The table of inputs (lines, nu) of a run lies
per_run elements behind that of the run before, and its elements per_element apart, so that all runs can share one.
What a tick hands on unchanged (the step, the end) is not kept in registers: it is read again where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.choice import FILE, OWN, REGISTERS, SHARED
from bellcrank.emit.cuda.numbers import ThreadWriter
from bellcrank.emit.cuda.procedure import Place, Procedure, formal, procedures, results
from bellcrank.emit.cuda.ptx import ptx
from bellcrank.emit.loop import Program
from bellcrank.emit.writer import Writer
from bellcrank.errors import InputError
from bellcrank.graph import Node

THREADS = 128


@dataclass(frozen=True, eq=False)
class Loop:
    program: Program
    dtype: str = "float64"
    blocks: int = 0  # on a multiprocessor at once; 0: as many as the predicted registers allow
    threads: int = THREADS

    def __post_init__(self) -> None:
        if self.program.locate or self.program.observe or self.program.renew:
            raise InputError(
                'target="cuda" runs fixed steps: no events, no integrator that chooses its steps, and with inputs none '
                "that remembers earlier steps. Take rk4, say, and step=..."
            )

    @property
    def words(self) -> int:
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def unchanged(self) -> set[int]:
        """Elements of the state that a tick hands on as they are."""
        flat = results(self.program.tick)
        return {k for k, x in enumerate(flat) if isinstance(x, Node) and x.op == "input" and x.args == ("s", k)}

    @cached_property
    def procedures(self) -> list[Procedure]:
        tick = self.program.tick
        memory: dict[Place, Place] = {place: place for place in formal(tick) if place[0] != "s"}
        memory |= {("s", k): ("s", k) for k in self.unchanged}
        made = procedures(tick, memory)
        *callees, top = made
        most = self.capacity
        inner = max((p.alive + p.across for p in callees), default=0)
        excess = max(0, top.across + inner - most)
        moved = min(top.variables_kept, excess)  # variables wait longest, so they are the first to leave
        top.in_registers = top.variables_kept - moved
        for p in callees:
            if excess > moved:
                p.room = max(16, most - (top.across - moved) - OWN)
            while p.slots * self.threads * 4 * self.words > SHARED // 3 and p.room < p.alive:
                p.room += 8  # two blocks at least shall fit: the rest is the assembler's to spill
                del p.parking
        leaves = [p for p in callees if not p.across]
        slot = max((p.slots for p in leaves), default=0)  # those that call nobody never run at once, and share slots
        for p in made:
            if p not in leaves:
                p.first_slot, slot = slot, slot + p.slots
        return made

    @property
    def capacity(self) -> int:
        """Values that fit the registers of a thread."""
        limit = FILE // (self.threads * self.blocks) // 8 * 8 if self.blocks else REGISTERS
        return min(REGISTERS, limit) // self.words - OWN

    @property
    def most(self) -> int:
        """Values in registers at once."""
        *callees, top = self.procedures
        waiting = top.across - max(0, top.variables_kept - top.in_registers)
        return max([top.alive, *(waiting + p.parking.most for p in callees)])

    @property
    def registers(self) -> int:
        """Predicted, of a thread."""
        return min(REGISTERS, (self.most + OWN) * self.words)

    @property
    def shared(self) -> int:
        slots = max(p.first_slot + p.slots for p in self.procedures)
        return slots * self.threads * 4 * self.words

    @property
    def resident(self) -> int:
        """Blocks on a multiprocessor."""
        by_registers = FILE // (self.threads * -(-self.registers // 8) * 8)
        return self.blocks or max(1, min(by_registers, SHARED // (self.shared + 1024)))

    @cached_property
    def text(self) -> str:
        w, tick = ThreadWriter(self.dtype, scarce=True), self.procedures[-1]
        for p in self.procedures:
            w.lines += p.variables(w)
        w.lines += ["%k = alloca i64", "%count = alloca i64"]
        changing = [k for k in range(self.program.size) if k not in self.unchanged]
        self._enter(w, changing)
        for p in self.procedures[:-1]:
            p.spelled(w, self.threads, self._memory, _into(w, p.name), f"{p.name}.end")
        tick.spelled(w, self.threads, self._memory, _into(w, "tick"), "tick.end")
        for p in self.procedures[:-1]:
            if p.returns:
                p.returning(w)
        w.do("tick.end:")
        self._advance(w, changing)
        w.do("leave:")
        for k in changing:
            w.do(f"store {w.type} {_load(w, f'%tick.a{k}')}, ptr addrspace(1) {self._element(w, '%s.at', str(k))}")
        w.do(f"store i64 {w.let('load i64, ptr %count')}, ptr addrspace(1) %counts.at")
        w.do("br label %done")
        lines = "".join(f"{line}\n" if line.endswith(":") else f"  {line}\n" for line in w.lines)
        return f"""{w.definition()}@shared = external addrspace(3) global [0 x i8], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @run(
  i64 %n, i64 %ticks, ptr addrspace(1) noalias %s, ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %inputs,
  i64 %per_run, i64 %per_element, ptr addrspace(1) noalias %rows, i64 %capacity, ptr addrspace(1) noalias %counts
) nounwind "nvvm.maxntid"="{self.threads}" "nvvm.minctasm"="{self.resident}" {{
{lines}done:
  ret void
}}"""

    @cached_property
    def ptx(self) -> str:
        return ptx(self.text, promote=True)

    # -- pieces

    def _element(self, w: Writer, base: str, k: str) -> str:
        offset = w.let(f"mul i64 %n, {k}")
        return w.let(f"getelementptr {w.type}, ptr addrspace(1) {base}, i64 {offset}", "p")

    def _memory(self, w: Writer, place: Place) -> str:
        """volatile: read where it is used, and not kept."""
        name, k = place
        if name == "u":
            line = _load(w, f"%tick.a{self.program.input}")
            number = w.let(f"fptoui {w.type} {line} to i64")
            at = w.let(f"add i64 {w.let(f'mul i64 {number}, {self.program.inputs}')}, {k}")
            address = w.let(
                f"getelementptr {w.type}, ptr addrspace(1) %inputs.at, i64 {w.let(f'mul i64 {at}, %per_element')}", "p"
            )
        else:
            address = self._element(w, f"%{name}.at", str(k))
        return w.let(f"load volatile {w.type}, ptr addrspace(1) {address}", "x")

    def _enter(self, w: Writer, changing: list[int]) -> None:
        for line in (
            "%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "%tid.wide = zext i32 %tid to i64",
            "%block.wide = zext i32 %block to i64",
            f"%before = mul i64 %block.wide, {self.threads}",
            "%lane = add i64 %before, %tid.wide",
            f"%parked = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %tid",
            "%mine = icmp ult i64 %lane, %n",
            "br i1 %mine, label %begin, label %done",
            "begin:",
            *(f"%{a}.at = getelementptr {w.type}, ptr addrspace(1) %{a}, i64 %lane" for a in ("s", "p", "rows")),
            "%inputs.o = mul i64 %lane, %per_run",
            f"%inputs.at = getelementptr {w.type}, ptr addrspace(1) %inputs, i64 %inputs.o",
            "%counts.at = getelementptr i64, ptr addrspace(1) %counts, i64 %lane",
            "%count.first = load i64, ptr addrspace(1) %counts.at",
            "store i64 %count.first, ptr %count",
            "store i64 0, ptr %k",
        ):
            w.do(line)
        for k in changing:
            value = w.let(f"load {w.type}, ptr addrspace(1) {self._element(w, '%s.at', str(k))}", "x")
            w.do(f"store {w.type} {value}, ptr %tick.a{k}")
        w.do("br label %top")
        w.do("top:")
        used = w.let(f"icmp uge i64 {w.let('load i64, ptr %k')}, %ticks")
        w.do(f"br i1 {used}, label %leave, label %look")
        w.do("look:")
        w.do(f"br i1 {self._sign(w, self.program.due)}, label %room, label %ready")
        w.do("room:")
        full = w.let(f"icmp uge i64 {w.let('load i64, ptr %count')}, %capacity")
        w.do(f"br i1 {full}, label %leave, label %put")
        w.do("put:")
        self._row(w)
        w.do("br label %ready")
        w.do("ready:")
        w.do(f"br i1 {self._sign(w, self.program.live)}, label %tick, label %leave")

    def _sign(self, w: Writer, place: int) -> str:
        return w.let(f"fcmp ogt {w.type} {_load(w, f'%tick.a{place}')}, {w.constant(0.0)}")

    def _row(self, w: Writer) -> None:
        count = w.let("load i64, ptr %count")
        first = w.let(f"mul i64 {count}, {self.program.row}")
        for k in range(self.program.row):
            at = self._element(w, "%rows.at", w.let(f"add i64 {first}, {k}"))
            value = self._memory(w, ("s", k)) if k in self.unchanged else _load(w, f"%tick.a{k}")
            w.do(f"store {w.type} {value}, ptr addrspace(1) {at}")
        w.do(f"store i64 {w.let(f'add i64 {count}, 1')}, ptr %count")
        w.do(f"store {w.type} {w.constant(0.0)}, ptr %tick.a{self.program.due}")

    def _advance(self, w: Writer, changing: list[int]) -> None:
        values = [_load(w, f"%tick.r{k}") for k in changing]
        for k, value in zip(changing, values, strict=True):
            w.do(f"store {w.type} {value}, ptr %tick.a{k}")
        w.do(f"store i64 {w.let('add i64 ' + w.let('load i64, ptr %k') + ', 1')}, ptr %k")
        w.do("br label %top")


def _load(w: Writer, variable: str) -> str:
    return w.let(f"load {w.type}, ptr {variable}", "x")


def _into(w: Writer, name: str) -> Callable[[int, str], None]:
    def write(i: int, value: str) -> None:
        w.do(f"store {w.type} {value}, ptr %{name}.r{i}")

    return write
