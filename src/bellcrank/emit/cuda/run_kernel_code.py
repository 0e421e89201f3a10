"""LLVM IR of a simulation kernel (run_kernel.py): control flow between ticks, around the procedures.

top: leave when all ticks are done. look: where a row is due, write it and look again (observe), or leave if the rows
are full. ready: leave unless live. feed: find the inputs, and renew where they are fresh. tick: advance, and locate
where the tick set a hit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bellcrank.emit.cuda.procedure import InputElement
from bellcrank.emit.cuda.ptx import ThreadWriter
from bellcrank.emit.llvm.lanes import Writer, indented
from bellcrank.graph import Graph, Node, Program

if TYPE_CHECKING:
    from bellcrank.emit.cuda.run_kernel import RunKernel

START_TICKS = -1  # value of `ticks` for a launch that only completes the state
NEXT_LABELS = {
    "start": "done",
    "observe": "look",
    "renew": "tick",
    "locate": "top",
}  # label that follows each rare graph


class RunKernelCode:
    """Generator of the kernel's LLVM IR."""

    def __init__(self, loop: RunKernel) -> None:
        self.loop, self.program = loop, loop.program

    @property
    def module(self) -> str:
        """The kernel as LLVM IR."""
        w = ThreadWriter(self.loop.dtype, scarce=True)
        for p in self.loop.procedures:
            w.lines += p.variables(w)
        w.lines += ["%k = alloca i64", "%count = alloca i64", "%line = alloca i64"]
        self._emit_entry(w)
        self._emit_tick_head(w)
        for p in self.loop.procedures:
            write = (
                self._rare_writer(w, p.name) if p.name in self.loop.rare_graphs else self._variable_writer(w, p.name)
            )
            p.emit(w, self.loop.threads, self._load_memory, write, f"{p.name}.end")
        for p in self.loop.procedures:
            if p.returns:
                p.emit_return(w)
        for name in self.loop.rare_graphs:
            self._leave_rare(w, name)
        w.do("tick.end:")
        self._advance(w)
        w.do("leave:")
        self._save_state(w)
        w.do(f"store i64 {w.let('load i64, ptr %count')}, ptr addrspace(1) %counts.at")
        w.do("br label %done")
        return f"""{w.definition()}@shared = external addrspace(3) global [0 x i8], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @run(
  i64 %n, i64 %ticks, ptr addrspace(1) noalias %s, ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %inputs,
  i64 %per_run, i64 %per_element, ptr addrspace(1) noalias %rows, i64 %capacity, ptr addrspace(1) noalias %counts
) nounwind "nvvm.maxntid"="{self.loop.threads}" "nvvm.minctasm"="{self.loop.resident_blocks}" {{
{indented(w.lines)}done:
  ret void
}}"""

    # -- pieces

    def _element(self, w: Writer, base: str, k: str) -> str:
        offset = w.let(f"mul i64 %n, {k}")
        return w.let(f"getelementptr {w.type}, ptr addrspace(1) {base}, i64 {offset}", "p")

    def _load_memory(self, w: Writer, place: InputElement) -> str:
        """Emit a volatile load: the value is read where it is used, and not kept in a register."""
        name, k = place
        if name == "u":
            index = w.let(f"add i64 {w.let('load i64, ptr %line')}, {k}")
            address = w.let(
                f"getelementptr {w.type}, ptr addrspace(1) %inputs.at, i64 {w.let(f'mul i64 {index}, %per_element')}",
                "p",
            )
        else:
            address = self._element(w, f"%{name}.at", str(k))
        return w.let(f"load volatile {w.type}, ptr addrspace(1) {address}", "x")

    def _store(self, w: Writer, k: int, value: str) -> None:
        w.do(f"store {w.type} {value}, ptr addrspace(1) {self._element(w, '%s.at', str(k))}")

    def _emit_entry(self, w: Writer) -> None:
        for line in (
            "%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "%tid.wide = zext i32 %tid to i64",
            "%block.wide = zext i32 %block to i64",
            f"%before = mul i64 %block.wide, {self.loop.threads}",
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
        self._restore_state(w)
        self._feed(w)
        if self.loop.needs_start:
            first = w.let(f"icmp eq i64 %ticks, {START_TICKS}")
            w.do(f"br i1 {first}, label %start, label %top")
        else:
            w.do("br label %top")

    def _emit_tick_head(self, w: Writer) -> None:
        """Emit the code between two ticks: due rows, the test for the end, inputs."""
        w.do("top:")
        used = w.let(f"icmp uge i64 {w.let('load i64, ptr %k')}, %ticks")
        w.do(f"br i1 {used}, label %leave, label %look")
        w.do("look:")
        w.do(f"br i1 {self._flag(w, self.program.due)}, label %room, label %ready")
        w.do("room:")
        full = w.let(f"icmp uge i64 {w.let('load i64, ptr %count')}, %capacity")
        w.do(f"br i1 {full}, label %leave, label %put")
        w.do("put:")
        if self.program.observe:
            self._enter_rare(w, "observe")
        else:
            self._emit_row(w)
            w.do("br label %ready")
        w.do("ready:")
        w.do(f"br i1 {self._flag(w, self.program.live)}, label %feed, label %leave")
        w.do("feed:")
        self._feed(w)
        if self.program.renew:
            w.do(f"br i1 {self._flag(w, self.program.fresh)}, label %turn, label %tick")
            w.do("turn:")
            self._enter_rare(w, "renew")
        else:
            w.do("br label %tick")

    def _feed(self, w: Writer) -> None:
        """Emit the update of the input line that is valid from now on."""
        if self.program.nu:
            line = w.let(f"fptoui {w.type} {self._value(w, self.program.input)} to i64")
            w.do(f"store i64 {w.let(f'mul i64 {line}, {self.program.nu}')}, ptr %line")

    def _flag(self, w: Writer, place: int) -> str:
        return w.let(f"fcmp ogt {w.type} {self._value(w, place)}, {w.constant(0.0)}")

    def _value(self, w: Writer, k: int) -> str:
        """Return an element of the state, between ticks."""
        return _load(w, f"%tick.a{k}") if k in self.loop.register_elements else self._load_memory(w, ("s", k))

    def _emit_row(self, w: Writer) -> None:
        for k in range(self.program.row):
            self._store_row_element(w, k, self._value(w, k))
        self._count_row(w)
        w.do(f"store {w.type} {w.constant(0.0)}, ptr %tick.a{self.program.due}")

    def _store_row_element(self, w: Writer, k: int, value: str) -> None:
        """Emit the store of an element of the next row."""
        first = w.let(f"mul i64 {w.let('load i64, ptr %count')}, {self.program.row}")
        address = self._element(w, "%rows.at", w.let(f"add i64 {first}, {k}"))
        w.do(f"store {w.type} {value}, ptr addrspace(1) {address}")

    def _count_row(self, w: Writer) -> None:
        w.do(f"store i64 {w.let('add i64 ' + w.let('load i64, ptr %count') + ', 1')}, ptr %count")

    def _advance(self, w: Writer) -> None:
        values = [_load(w, f"%tick.r{k}") for k in self.loop.register_elements]
        for k, value in zip(self.loop.register_elements, values, strict=True):
            w.do(f"store {w.type} {value}, ptr %tick.a{k}")
        w.do(f"store i64 {w.let('add i64 ' + w.let('load i64, ptr %k') + ', 1')}, ptr %k")
        if self.program.locate:
            w.do(f"br i1 {self._flag(w, self.program.hit)}, label %find, label %top")
            w.do("find:")
            self._enter_rare(w, "locate")
        else:
            w.do("br label %top")

    # -- rare graphs

    def _enter_rare(self, w: Writer, name: str) -> None:
        self._save_state(w)
        for p in self.loop.procedures:
            p.emit_poison(w)
        w.do(f"br label %{name}")

    def _leave_rare(self, w: Writer, name: str) -> None:
        w.do(f"{name}.end:")
        if name == "observe":
            self._count_row(w)
        if name != "start":
            self._restore_state(w)
        w.do(f"br label %{NEXT_LABELS[name]}")

    def _save_state(self, w: Writer) -> None:
        for k in self.loop.register_elements:
            self._store(w, k, _load(w, f"%tick.a{k}"))

    def _restore_state(self, w: Writer) -> None:
        for k in self.loop.register_elements:
            w.do(f"store {w.type} {self._load_memory(w, ('s', k))}, ptr %tick.a{k}")

    def _rare_writer(self, w: Writer, name: str) -> Callable[[int, str], None]:
        """Return the writer for outputs of a rare graph: the row if there is one, then the state."""
        first = self.program.row if name == "observe" else 0
        same = unchanged_elements(self.loop.rare_graphs[name])

        def write(i: int, value: str) -> None:
            if i < first:
                self._store_row_element(w, i, value)
            elif i - first not in same:
                self._store(w, i - first, value)

        return write

    def _variable_writer(self, w: Writer, name: str) -> Callable[[int, str], None]:
        """Return the writer for outputs as variables, except those that a tick stores in memory."""

        def write(i: int, value: str) -> None:
            if name == "tick" and i in self.loop.memory_elements:
                self._store(w, i, value)
            elif name != "tick" or i not in self.loop.unchanged_elements:
                w.do(f"store {w.type} {value}, ptr %{name}.r{i}")

        return write


def unchanged_elements(graph: Graph) -> set[int]:
    """Return the state elements that `graph` passes on unchanged."""
    return {
        k
        for k, x in enumerate(graph.outputs["s"].flat)
        if isinstance(x, Node) and x.op == "input" and x.args == ("s", k)
    }


def needs_start(program: Program) -> bool:
    """Return whether `program` has anything to complete before the first tick."""
    return len(unchanged_elements(program.start)) < program.size


def _load(w: Writer, variable: str) -> str:
    return w.let(f"load {w.type}, ptr {variable}", "x")
