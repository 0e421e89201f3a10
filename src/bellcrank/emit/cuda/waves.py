"""A Recursion whose runs go side by side (graph/waves.py) on a GPU: a thread for every run, for one state.

    phases(ws, whole, numbers, in..., out..., plan, begin, end, threads)

does some phases one after the other. Within a phase no run waits for another. Phases of many runs are launched one by
one, with as many blocks as they fill; those of a few follow each other within one block, where waiting is cheap. Tables
come as arrays, for they may have as many rows as there are bodies.

What a thread keeps for later lies so that neighbouring threads have it side by side: (shape, place in the run, which,
run); what is handed on: (element of all channels, first or last place of a run).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.cpu.rolled_loop import ANGLES
from bellcrank.emit.cpu.speller import LIBRARY, Speller
from bellcrank.emit.cpu.wave_loop import WaveLoop
from bellcrank.emit.cpu.waves import Waves
from bellcrank.emit.cuda.arith import Arithmetic
from bellcrank.emit.cuda.ptx import ptx
from bellcrank.errors import InputError
from bellcrank.graph import Node
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.slim import slim
from bellcrank.quoting import comment

Array = np.ndarray[Any, Any]
THREADS = 64  # of a block: few, so that runs are spread over all multiprocessors
HEAD = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
"""


class ThreadLoop(WaveLoop):
    """void @name(ws, tables, arrays, run)."""

    all: ThreadWaves

    def _framed(self, lines: list[str]) -> str:
        name = self.all.name(self.channel, self.number)
        head = f"define internal void @{name}({self.all.parameters}, i64 %b) noinline nounwind {{"
        return "\n".join([head, "bundle:", *lines, "  ret void", "}"])

    def _bases(self) -> None:
        w = self.w
        for what, at in (("angles", self.at.angles_at), ("kept", self.at.kept_at)):
            start = w.let(f"add i64 %b, {at[self.number]}")
            w.do(f"%{what} = getelementptr {w.element}, ptr %ws, i64 {start}")

    @property
    def stride(self) -> int:
        return len(self.shape.runs) * self.w.bytes

    def _handed(self, slot: str, element: int) -> str:
        w = self.w
        start = self.at.handed_at + self.at.field[self.channel, element] * self.at.slots
        return w.let(f"getelementptr {w.element}, ptr %ws, i64 {w.let(f'add i64 {slot}, {start}')}", "p")

    def _before(self) -> str:
        return f"parent{self.channel}" if self.forwards else "child0"

    def _turn(self, value: str, element: int) -> None:
        """Its sine and cosine at once."""
        w = self.w
        for k, x in enumerate(Arithmetic(w).sincos(value), 1):
            w.store(x, w.at(self.angles_here, k * self.at.room * w.bytes + element * self.stride))

    def _sine(self, speller: Speller, n: Node) -> str:
        return Arithmetic(self.w).sincos(speller._value(n.args[0]))[n.op == "cos"]

    def _whole_numbers(self, table: str) -> str:
        return self.w.at("%whole", 4 * self.all.place(table))

    def _numbers(self, cell: int) -> str:
        return self.w.at("%numbers", self.w.bytes * self.all.starts[cell])


class ThreadWaves(Waves):
    """The text, the tables, and which phases there are."""

    def __init__(self, r: Recursion, dtype: str = "float64") -> None:
        thin = slim(r)
        r = thin.r
        super().__init__(r, 1, dtype, "run")
        used = {n.op for cell in r.cells for n in cell.graph.nodes} & set(LIBRARY)
        if used:
            raise InputError(f"{r.name} needs {', '.join(sorted(used))} of its parts, which loops on a GPU have not.")
        self.parameters = ", ".join(f"ptr %{n}" for n in ("ws", "whole", "numbers", *self.names))
        self.known = dict(self._relations())
        for k, outwards in enumerate(r.outwards):
            if outwards:
                self.known[f"parent{k}"] = self.known["parent"] + self._further(k, thin.further[:, k])
        self.known |= {f"begins{i}": shape.begins for i, shape in enumerate(self.shapes)}
        for i, shape in enumerate(self.shapes):
            self.known |= {f"rows{i}_{j}": shape.rows(j) for j in range(len(shape.cells))}
        self.places: dict[str, int] = {}
        self.length = 0
        self.starts = np.cumsum([0, *(t.size for t in r.tables)]).tolist()
        self.loops = [
            (k, i) for k in (ANGLES, *range(len(r.outwards))) for i in range(len(self.shapes)) if self.busy(k, i)
        ]

    def _further(self, channel: int, steps: Array) -> Array:
        """In the workspace: fields that are equally far apart for all that is wanted."""
        field = {e: f for (k, e), f in self.at.field.items() if k == channel}
        apart = {0: 0}
        for step in np.unique(steps[steps > 0]).tolist():
            ways = {field[e + step] - f for e, f in field.items() if e + step in field}
            if len(ways) != 1:
                raise InputError(f"{self.r.name}: what parts hand on is not alike for all; a GPU cannot share it out.")
            apart[step] = ways.pop()
        return self.at.slots * np.array([apart[step] for step in steps.tolist()])

    def place(self, table: str) -> int:
        """Where a table begins among all whole numbers; only those that are asked for are there."""
        if table not in self.places:
            self.places[table] = self.length
            self.length += len(self.known[table])
        return self.places[table]

    def index(self, name: str, of_runs: Array) -> str:
        self.known[name] = of_runs
        return name

    def text(self) -> str:
        head = f"; {comment(self.r.name)}: {self.r.count().arithmetic} operations, a thread for each run\n"
        return head + "\n".join([HEAD, *(ThreadLoop(self, k, i).text() for k, i in self.loops), self._kernel()])

    def tables(self) -> tuple[Array, Array]:
        """Whole numbers, and constants of all parts; after the text was made."""
        whole = np.zeros(max(1, self.length), np.int32)
        for name, at in self.places.items():
            whole[at : at + len(self.known[name])] = self.known[name]
        return whole, np.concatenate([np.zeros(0), *(t.ravel() for t in self.r.tables), [0.0]]).astype(self.dtype)

    def plan(self) -> tuple[Array, list[int]]:
        """A row (phase, function, first run, the one behind the last) for each wave; of every phase its threads."""
        rows, widths = [], []
        for n, phase in enumerate(self.phases()):
            for wave in phase.waves:
                rows.append((n, self.loops.index((phase.channel, wave.shape)), wave.first, wave.last))
            widths.append(max(wave.last - wave.first for wave in phase.waves))
        return np.array(rows, np.int32), widths

    def launches(self) -> list[tuple[int, int, int]]:
        """(first row of the plan, the one behind the last, blocks)."""
        rows, widths = self.plan()
        found: list[tuple[int, int, int]] = []
        for n, width in enumerate(widths):
            first, last = np.searchsorted(rows[:, 0], [n, n + 1]).tolist()
            blocks = -(-width // THREADS)
            if found and blocks == 1 and found[-1][2] == 1:
                found[-1] = found[-1][0], last, 1
            else:
                found.append((first, last, blocks))
        return found

    def _kernel(self) -> str:
        """A row of the plan after the other; threads wait for those of their block where a new phase begins."""
        given = self.parameters
        cases = " ".join(f"i32 {k}, label %f{k}" for k in range(len(self.loops)))
        calls = "".join(
            f"f{k}:\n  call void @{self.name(*loop)}({given}, i64 %b)\n  br label %on\n"
            for k, loop in enumerate(self.loops)
        )
        fields = "".join(
            f"  %p{k} = getelementptr i32, ptr %row, i64 {k}\n  %x{k} = load i32, ptr %p{k}, align 4\n"
            for k in range(4)
        )
        return f"""define ptx_kernel void @phases({given}, ptr %plan, i32 %begin, i32 %end, i32 %threads) \
nounwind "nvvm.maxntid"="{THREADS}" {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %before = mul i32 %block, {THREADS}
  %me = add i32 %before, %tid
  br label %wave
wave:
  %w = phi i32 [%begin, %entry], [%w.next, %done]
  %old = phi i32 [-1, %entry], [%x0, %done]
  %at = mul i32 %w, 4
  %at.64 = sext i32 %at to i64
  %row = getelementptr i32, ptr %plan, i64 %at.64
{fields}  %same = icmp eq i32 %x0, %old
  br i1 %same, label %go, label %wait
wait:
  call void @llvm.nvvm.barrier0()
  br label %go
go:
  %b.first = add i32 %x2, %me
  br label %look
look:
  %b.32 = phi i32 [%b.first, %go], [%b.then, %on]
  %mine = icmp slt i32 %b.32, %x3
  br i1 %mine, label %do, label %done
do:
  %b = sext i32 %b.32 to i64
  switch i32 %x1, label %on [{cases}]
{calls}on:
  %b.then = add i32 %b.32, %threads
  br label %look
done:
  %w.next = add i32 %w, 1
  %more = icmp slt i32 %w.next, %end
  br i1 %more, label %wave, label %end.all
end.all:
  ret void
}}"""


@dataclass(frozen=True)
class WaveText:
    """What a GPU needs of a recursion."""

    ptx: str
    whole: Array
    numbers: Array
    plan: Array
    launches: list[tuple[int, int, int]]
    room: int  # numbers in the workspace


def waved(r: Recursion, dtype: str = "float64") -> WaveText:
    made = ThreadWaves(r, dtype)
    text = ptx(made.text())
    return WaveText(text, *made.tables(), made.plan()[0], made.launches(), made.size)
