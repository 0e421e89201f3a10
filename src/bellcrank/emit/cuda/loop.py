"""A whole simulation as one kernel: every thread takes one run from tick to tick, its state in registers.

    run(i64 n, i64 ticks, ptr s, ptr p, ptr inputs, i64 per_run, i64 per_element, ptr rows, i64 capacity, ptr counts)

The program is that of emit/loop.py, and so are the signs in its state. Arrays have the runs side by side: s (size, n),
p (np, n), rows (capacity, row, n), counts (n), a row when it is due. The table of inputs (lines, nu) of a run lies
per_run elements behind that of the run before, and its elements per_element apart, so that all runs can share one.

What a tick hands on unchanged (the step, the end) is not kept in registers: it is read again where it is used. Nor is
what it only leaves behind for others (the polynomial of a step): it is written, and read by who wants it. `observe`,
`locate` and `renew` are rare, and must not cost a tick registers. They find the state in memory and leave it there;
the tick's part of it is written before them and read again behind them. A thread whose rows are full, or that has
stopped, waits for the others; the caller empties the rows and starts the kernel again.
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
from bellcrank.graph import Graph, Node

THREADS = 128
SLOTS = (SHARED - 1024) // (THREADS * 4)  # words of shared memory that a thread can have


@dataclass(frozen=True, eq=False)
class Loop:
    program: Program
    dtype: str = "float64"
    blocks: int = 0  # on a multiprocessor at once; 0: as many as the predicted registers allow
    threads: int = THREADS

    @property
    def words(self) -> int:
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def unchanged(self) -> set[int]:
        """Elements of the state that a tick hands on as they are."""
        flat = results(self.program.tick)
        return {k for k, x in enumerate(flat) if isinstance(x, Node) and x.op == "input" and x.args == ("s", k)}

    @cached_property
    def held(self) -> set[int]:
        """Elements that a tick changes but does not look at, in a program that has others to look at them."""
        program, flat = self.program, results(self.program.tick)
        if program.observe is None:
            return set()
        users: dict[int, set[int]] = {}
        for node in program.tick.nodes:
            for a in node.operands:
                if a.op == "input" and a.args[0] == "s":
                    users.setdefault(a.args[1], set()).add(node.serial)
        plain = {x.args[1] for x in flat if isinstance(x, Node) and x.op == "input" and x.args[0] == "s"}
        own = [{x.serial} if isinstance(x, Node) else set() for x in flat]
        kept = plain | self.unchanged | {program.live, program.due, *self.signs.values()}
        return {k for k in range(program.size) if k not in kept and users.get(k, set()) <= own[k]}

    @property
    def signs(self) -> dict[str, int]:
        """Places of the signs that not every program has."""
        p = self.program
        found = {"hit": p.hit} if p.locate else {}
        found |= {"fresh": p.fresh} if p.renew else {}
        return found | ({"input": p.input} if p.inputs else {})

    @property
    def changing(self) -> list[int]:
        """Elements of the state in registers."""
        return [k for k in range(self.program.size) if k not in self.unchanged and k not in self.held]

    @cached_property
    def rare(self) -> dict[str, Graph]:
        return {name: g for name, g in self.program.graphs.items() if name not in ("start", "tick")}

    @cached_property
    def procedures(self) -> list[Procedure]:
        """What is called, each after its own; what is rare; the tick."""
        tick = self.program.tick
        memory: dict[Place, Place] = {place: place for place in formal(tick) if place[0] != "s"}
        memory |= {("s", k): ("s", k) for k in (*self.unchanged, *self.held)}
        roots = {name: (g, {place: place for place in formal(g)}) for name, g in self.rare.items()}
        made = procedures({**roots, "tick": (tick, memory)})
        mine = {id(g) for g in tick.calls}
        callees, top = [p for p in made if id(p.graph) in mine], made[-1]
        most = self.capacity
        inner = max((p.alive + p.across for p in callees), default=0)
        excess = max(0, top.across + inner - most)
        moved = min(top.variables_kept, excess)  # variables wait longest, so they are the first to leave
        top.in_registers = top.variables_kept - moved
        top.early = self._early(top)
        for p in made:
            if p.name in self.rare:
                p.in_registers = p.in_shared = 0
        for p in callees:
            if excess > moved:
                p.room = max(16, most - (top.across - moved) - OWN)
            while p.slots * self.threads * 4 * self.words > SHARED // 3 and p.room < p.alive:
                p.room += 8  # two blocks at least shall fit: the rest is the assembler's to spill
                del p.parking
        leaves = [p for p in callees if not p.across]
        slot = max((p.slots for p in leaves), default=0)  # those that call nobody never run at once, and share slots
        for p in callees:
            if p not in leaves:
                p.first_slot, slot = slot, slot + p.slots
        top.first_slot, top.in_shared = slot, max(0, SLOTS // self.words - slot)
        return made

    def _early(self, tick: Procedure) -> dict[int, int]:
        """Held outputs that can be written as soon as they are known: nobody reads the old one any more."""
        last = {n.args: i for i, unit in enumerate(tick.sequence) for n in unit.uses if n.op == "input"}
        at = {n.serial: i for i, unit in enumerate(tick.sequence) for n in unit.defines}
        flat, found = results(tick.graph), {}
        for k in self.held:
            x = flat[k]
            if isinstance(x, Node) and x.serial in at and last.get(("s", k), -1) <= at[x.serial]:
                found.setdefault(x.serial, k)
        return found

    @property
    def capacity(self) -> int:
        """Values that fit the registers of a thread."""
        limit = FILE // (self.threads * self.blocks) // 8 * 8 if self.blocks else REGISTERS
        return min(REGISTERS, limit) // self.words - OWN

    @property
    def most(self) -> int:
        """Values in registers at once."""
        top, mine = self.procedures[-1], {id(g) for g in self.program.tick.calls}
        callees = [p for p in self.procedures if id(p.graph) in mine]
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
        w = ThreadWriter(self.dtype, scarce=True)
        for p in self.procedures:
            w.lines += p.variables(w)
        w.lines += ["%k = alloca i64", "%count = alloca i64", "%line = alloca i64"]
        self._enter(w)
        self._look(w)
        for p in self.procedures:
            write = self._leaving(w, p.name) if p.name in self.rare else self._into(w, p.name)
            p.spelled(w, self.threads, self._memory, write, f"{p.name}.end")
        for p in self.procedures:
            if p.returns:
                p.returning(w)
        for name in self.rare:
            self._behind(w, name)
        w.do("tick.end:")
        self._advance(w)
        w.do("leave:")
        self._saved(w)
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
            at = w.let(f"add i64 {w.let('load i64, ptr %line')}, {k}")
            address = w.let(
                f"getelementptr {w.type}, ptr addrspace(1) %inputs.at, i64 {w.let(f'mul i64 {at}, %per_element')}", "p"
            )
        else:
            address = self._element(w, f"%{name}.at", str(k))
        return w.let(f"load volatile {w.type}, ptr addrspace(1) {address}", "x")

    def _store(self, w: Writer, k: int, value: str) -> None:
        w.do(f"store {w.type} {value}, ptr addrspace(1) {self._element(w, '%s.at', str(k))}")

    def _enter(self, w: Writer) -> None:
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
        self._restored(w)
        self._feed(w)
        w.do("br label %top")

    def _look(self, w: Writer) -> None:
        """From one tick to the next: rows that are due, whether to go on, inputs."""
        w.do("top:")
        used = w.let(f"icmp uge i64 {w.let('load i64, ptr %k')}, %ticks")
        w.do(f"br i1 {used}, label %leave, label %look")
        w.do("look:")
        w.do(f"br i1 {self._sign(w, self.program.due)}, label %room, label %ready")
        w.do("room:")
        full = w.let(f"icmp uge i64 {w.let('load i64, ptr %count')}, %capacity")
        w.do(f"br i1 {full}, label %leave, label %put")
        w.do("put:")
        if self.program.observe:
            self._aside(w, "observe")
        else:
            self._row(w)
            w.do("br label %ready")
        w.do("ready:")
        w.do(f"br i1 {self._sign(w, self.program.live)}, label %feed, label %leave")
        w.do("feed:")
        self._feed(w)
        if self.program.renew:
            w.do(f"br i1 {self._sign(w, self.program.fresh)}, label %turn, label %tick")
            w.do("turn:")
            self._aside(w, "renew")
        else:
            w.do("br label %tick")

    def _feed(self, w: Writer) -> None:
        """Which inputs are valid from now on."""
        if self.program.inputs:
            line = w.let(f"fptoui {w.type} {_load(w, f'%tick.a{self.program.input}')} to i64")
            w.do(f"store i64 {w.let(f'mul i64 {line}, {self.program.inputs}')}, ptr %line")

    def _sign(self, w: Writer, place: int) -> str:
        return w.let(f"fcmp ogt {w.type} {_load(w, f'%tick.a{place}')}, {w.constant(0.0)}")

    def _row(self, w: Writer) -> None:
        for k in range(self.program.row):
            value = self._memory(w, ("s", k)) if k in self.unchanged else _load(w, f"%tick.a{k}")
            self._put(w, k, value)
        self._counted(w)
        w.do(f"store {w.type} {w.constant(0.0)}, ptr %tick.a{self.program.due}")

    def _put(self, w: Writer, k: int, value: str) -> None:
        """An element of the next row."""
        first = w.let(f"mul i64 {w.let('load i64, ptr %count')}, {self.program.row}")
        at = self._element(w, "%rows.at", w.let(f"add i64 {first}, {k}"))
        w.do(f"store {w.type} {value}, ptr addrspace(1) {at}")

    def _counted(self, w: Writer) -> None:
        w.do(f"store i64 {w.let('add i64 ' + w.let('load i64, ptr %count') + ', 1')}, ptr %count")

    def _advance(self, w: Writer) -> None:
        values = [_load(w, f"%tick.r{k}") for k in self.changing]
        for k, value in zip(self.changing, values, strict=True):
            w.do(f"store {w.type} {value}, ptr %tick.a{k}")
        w.do(f"store i64 {w.let('add i64 ' + w.let('load i64, ptr %k') + ', 1')}, ptr %k")
        if self.program.locate:
            w.do(f"br i1 {self._sign(w, self.program.hit)}, label %find, label %top")
            w.do("find:")
            self._aside(w, "locate")
        else:
            w.do("br label %top")

    # -- what is rare

    def _aside(self, w: Writer, name: str) -> None:
        self._saved(w)
        for p in self.procedures:
            p.forgotten(w)
        w.do(f"br label %{name}")

    def _behind(self, w: Writer, name: str) -> None:
        w.do(f"{name}.end:")
        if name == "observe":
            self._counted(w)
        self._restored(w)
        w.do(f"br label %{ {'observe': 'look', 'renew': 'tick', 'locate': 'top'}[name] }")

    def _saved(self, w: Writer) -> None:
        for k in self.changing:
            self._store(w, k, _load(w, f"%tick.a{k}"))

    def _restored(self, w: Writer) -> None:
        for k in self.changing:
            w.do(f"store {w.type} {self._memory(w, ('s', k))}, ptr %tick.a{k}")

    def _leaving(self, w: Writer, name: str) -> Callable[[int, str], None]:
        """Outputs of what is rare: the state, behind the row if there is one."""
        first = self.program.row if name == "observe" else 0
        flat = results(self.rare[name])

        def write(i: int, value: str) -> None:
            x, k = flat[i], i - first
            if i < first:
                self._put(w, i, value)
            elif not (isinstance(x, Node) and x.op == "input" and x.args == ("s", k)):
                self._store(w, k, value)

        return write

    def _into(self, w: Writer, name: str) -> Callable[[int, str], None]:
        """Outputs as variables, but for what a tick leaves behind."""

        def write(i: int, value: str) -> None:
            if name == "tick" and i in self.held:
                self._store(w, i, value)
            elif name != "tick" or i not in self.unchanged:
                w.do(f"store {w.type} {value}, ptr %{name}.r{i}")

        return write


def _load(w: Writer, variable: str) -> str:
    return w.let(f"load {w.type}, ptr {variable}", "x")
