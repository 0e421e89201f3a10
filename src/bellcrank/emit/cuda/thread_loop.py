"""One loop over the places of a run as a function of LLVM IR, for a thread of a GPU (waves.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.emit.cpu.speller import Speller
from bellcrank.emit.cpu.wave_loop import WaveLoop
from bellcrank.emit.cuda.arith import Arithmetic
from bellcrank.graph import Node

if TYPE_CHECKING:
    from bellcrank.emit.cuda.waves import ThreadWaves


class ThreadLoop(WaveLoop):
    """Function void @name(ws, tables, arrays, run)."""

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
        """Bytes between consecutive elements of one run."""
        return len(self.shape.runs) * self.w.bytes

    def _handed(self, slot: str, element: int) -> str:
        w = self.w
        start = self.at.handed_at + self.at.field[self.channel, element] * self.at.slots
        return w.let(f"getelementptr {w.element}, ptr %ws, i64 {w.let(f'add i64 {slot}, {start}')}", "p")

    def _before(self) -> str:
        return f"parent{self.channel}" if self.forwards else "child0"

    def _turn(self, value: str, element: int) -> None:
        """Store the sine and cosine of an angle."""
        w = self.w
        for k, x in enumerate(Arithmetic(w).sincos(value), 1):
            w.store(x, w.at(self.angles_here, k * self.at.room * w.bytes + element * self.stride))

    def _sine(self, speller: Speller, n: Node) -> str:
        return Arithmetic(self.w).sincos(speller._value(n.args[0]))[n.op == "cos"]

    def _whole_numbers(self, table: str) -> str:
        return self.w.at("%whole", 4 * self.all.place(table))

    def _numbers(self, cell: int) -> str:
        return self.w.at("%numbers", self.w.bytes * self.all.starts[cell])
