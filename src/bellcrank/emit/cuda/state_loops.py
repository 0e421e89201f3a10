"""A Recursion on a GPU for a batch: every thread takes one state through the loops over alike bodies.

    states(n, ws, in..., out...)

The loops are those of emit/cpu/rolled_code.py with the threads of a warp for lanes: an element of an array or of the
workspace is one number of each of 32 states, side by side, so that a warp reads and writes what lies together. A block
is a warp, with arrays and a workspace of its own behind those of the block before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.emit.cpu.lanes import LIBRARY
from bellcrank.emit.cpu.rolled_code import Rolled
from bellcrank.emit.cpu.rolled_loop import Loop
from bellcrank.emit.cpu.speller import Speller
from bellcrank.emit.cuda.arith import Arithmetic
from bellcrank.emit.cuda.numbers import ThreadWriter
from bellcrank.emit.cuda.ptx import ptx
from bellcrank.errors import InputError
from bellcrank.graph import Node
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import comment, symbol

LANES = 32
HEAD = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""


class LaneWriter(ThreadWriter):
    """Numbers of one thread, 32 of which stand side by side."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype, scarce=True)
        self.align = LANES * self.bytes  # from an element to the next

    def load(self, pointer: str, kind: str = "", align: int = 0) -> str:
        return super().load(pointer, kind, align or self.bytes)

    def store(self, value: str, pointer: str, kind: str = "", align: int = 0, volatile: bool = False) -> None:
        super().store(value, pointer, kind, align or self.bytes, volatile)


class LaneLoop(Loop):
    def _sine(self, speller: Speller, n: Node) -> str:
        return Arithmetic(self.w).sincos(speller._value(n.args[0]))[n.op == "cos"]


class StateLoops(Rolled):
    loop = LaneLoop
    w: LaneWriter

    def __init__(self, r: Recursion, dtype: str) -> None:
        super().__init__(r, 1, 1, dtype, "state")
        used = {n.op for cell in r.cells for n in cell.graph.nodes} & set(LIBRARY)
        if used:
            raise InputError(f"{r.name} needs {', '.join(sorted(used))} of its parts, which loops on a GPU have not.")
        self.w = LaneWriter(dtype)

    def _turned(self) -> list[str]:
        return [f"  call void @{self.tag}_sincos(ptr %ws)"] if self.at.count else []

    def _sines(self) -> str:
        """All sines and cosines, one after the other."""
        at, w = self.at, self.w
        w.lines = []
        x = w.let(f"getelementptr i8, ptr %ws, i64 {w.let(f'mul i64 %k, {w.align}')}", "p")
        for k, value in enumerate(Arithmetic(w).sincos(w.load(x)), 1):
            w.store(value, w.at(x, k * at.room * w.align))
        body = "".join(f"  {line}\n" for line in w.lines)
        return f"""define internal void @{self.tag}_sincos(ptr %ws) noinline nounwind {{
entry:
  br label %turn
turn:
  %k = phi i64 [0, %entry], [%next, %turn]
{body}  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {at.count}
  br i1 %more, label %turn, label %done
done:
  ret void
}}"""

    def module(self) -> str:
        r, w = self.r, self.w
        head = f"; {comment(r.name)}: {r.count().arithmetic} operations, a thread for each state\n"
        sizes = {"ws": self.size, **{f"in_{symbol(name)}": math.prod(shape) for name, shape in r.inputs.items()}}
        sizes[f"out_{symbol(r.output[0])}"] = r.output[1]
        lines = []
        for name, size in sizes.items():
            lines += [
                f"%{name}.o = mul i64 %warp, {size * w.align}",
                f"%{name}.p = add i64 %{name}.o, %lane",
                f"%{name}.mine = getelementptr i8, ptr %{name}, i64 %{name}.p",
            ]
        own = ", ".join(f"ptr %{name}.mine" for name in sizes)
        given = ", ".join(f"ptr %{name}" for name in sizes)
        kernel = f"""define ptx_kernel void @states(i64 %n, {given}) nounwind "nvvm.maxntid"="{LANES}" {{
  %tid.32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block.32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %tid = zext i32 %tid.32 to i64
  %warp = zext i32 %block.32 to i64
  %before = mul i64 %warp, {LANES}
  %here = add i64 %before, %tid
  %exists = icmp ult i64 %here, %n
  %lane = mul i64 %tid, {w.bytes}
{"".join(f"  {line}{chr(10)}" for line in lines)}  br i1 %exists, label %go, label %done
go:
  call void @{self.tag}({own})
  br label %done
done:
  ret void
}}"""
        loops, sines = self.text(), self._sines() if self.at.count else ""
        return "\n".join([head + HEAD, w.definition(), loops, sines, kernel])


@dataclass(frozen=True)
class LoopText:
    """What a GPU needs of it."""

    ptx: str
    room: int  # numbers of a state in the workspace


def looped(r: Recursion, dtype: str = "float64") -> LoopText:
    made = StateLoops(r, dtype)
    return LoopText(ptx(made.module()), made.size)
