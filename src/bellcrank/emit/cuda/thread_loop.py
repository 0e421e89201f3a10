"""One loop over the places of a run as a function of LLVM IR, for a thread of a GPU (waves.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.emit.cuda.arithmetic import Arithmetic
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.wave_loop import WaveLoop
from bellcrank.graph import Node

if TYPE_CHECKING:
    from bellcrank.emit.cuda.waves import ThreadWaves


class ThreadLoop(WaveLoop):
    """Function void @name(ws, tables, arrays, run)."""

    owner: ThreadWaves

    def _function_text(self, lines: list[str]) -> str:
        name = self.owner.name(self.channel, self.shape_number)
        head = f"define internal void @{name}({self.owner.parameters}, i64 %b) noinline nounwind {{"
        return "\n".join([head, "bundle:", *lines, "  ret void", "}"])

    def _bundle_addresses(self) -> None:
        w = self.w
        for array, offsets in (("angles", self.layout.angles_at), ("kept", self.layout.kept_at)):
            start = w.let(f"add i64 %b, {offsets[self.shape_number]}")
            w.do(f"%{array} = getelementptr {w.element}, ptr %ws, i64 {start}")

    @property
    def stride(self) -> int:
        """Bytes between consecutive elements of one run."""
        return len(self.shape.runs) * self.w.bytes

    def _handed_address(self, slot: str, element: int) -> str:
        w = self.w
        start = self.layout.handed_at + self.layout.field_index[self.channel, element] * self.layout.slots
        return w.let(f"getelementptr {w.element}, ptr %ws, i64 {w.let(f'add i64 {slot}, {start}')}", "p")

    def _source_table(self) -> str:
        return f"parent{self.channel}" if self.forwards else "child0"

    def _store_angle(self, value: str, element: int) -> None:
        """Store the sine and cosine of an angle."""
        w = self.w
        for k, x in enumerate(Arithmetic(w).sincos(value), 1):
            w.store(x, w.at(self.angles_here, k * self.layout.angle_count * w.bytes + element * self.stride))

    def _sine(self, printer: LLVMPrinter, n: Node) -> str:
        return Arithmetic(self.w).sincos(printer.value(n.args[0]))[n.op == "cos"]

    def _integer_table(self, table: str) -> str:
        return self.w.at("%whole", 4 * self.owner.table_offset(table))

    def _constant_table(self, cell: int) -> str:
        return self.w.at("%numbers", self.w.bytes * self.owner.constant_offsets[cell])
