"""LLVM IR for a thread whose numbers lie in memory beside those of the 31 others of its warp.

The functions are those of emit/cpu/routine.py, of one lane: an element of an array or of the workspace is one number of
each of 32 states, side by side, so that a warp reads and writes what lies together. A block is a warp, with a workspace
of its own behind that of the block before.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cuda.arith import Arithmetic
from bellcrank.emit.cuda.numbers import ThreadWriter

LANES = 32
HEAD = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""


class LaneWriter(ThreadWriter):
    """Numbers of one thread, 32 of which stand side by side."""

    def __init__(self, lanes: int, dtype: str) -> None:
        super().__init__(dtype, scarce=True)
        assert lanes == 1
        self.align = LANES * self.bytes  # from an element to the next

    def load(self, pointer: str, kind: str = "", align: int = 0) -> str:
        return super().load(pointer, kind, align or self.bytes)

    def store(self, value: str, pointer: str, kind: str = "", align: int = 0, volatile: bool = False) -> None:
        super().store(value, pointer, kind, align or self.bytes, volatile)

    def function(self, op: str, args: Sequence[str]) -> str:
        made = Arithmetic(self)
        return made.sincos(*args)[op == "cos"] if op in ("sin", "cos") else made.op(op, *args)


def turned(dtype: str) -> str:
    """@sincos, as functions of routine.py call it: of so many angles, one after the other."""
    w = LaneWriter(1, dtype)
    offset = w.let(f"mul i64 %k, {w.align}")
    x, *results = (w.let(f"getelementptr i8, ptr %{to}, i64 {offset}", "p") for to in ("x", "s", "c"))
    for value, to in zip(Arithmetic(w).sincos(w.load(x)), results, strict=True):
        w.store(value, to)
    return _looped("sincos", "ptr %x, ptr %s, ptr %c, i64 %count", w)


def copied(dtype: str) -> str:
    """@copied: so many numbers from here to there, which lie so many bytes apart."""
    w = LaneWriter(1, dtype)
    at, to = (w.let(f"getelementptr i8, ptr %{x}, i64 {w.let(f'mul i64 %k, %{x}.step')}", "p") for x in ("from", "to"))
    w.store(w.load(at), to)
    return _looped("copied", "ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %count", w)


def _looped(name: str, parameters: str, w: LaneWriter) -> str:
    """A function whose lines are done for every %k below %count."""
    body = "".join(f"  {line}\n" for line in w.lines)
    return f"""define internal void @{name}({parameters}) noinline nounwind {{
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %turn, label %done
turn:
  %k = phi i64 [0, %entry], [%next, %turn]
{body}  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %turn, label %done
done:
  ret void
}}"""
