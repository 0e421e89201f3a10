"""Lines of LLVM IR for one thread of a GPU, with its constants in constant memory.

An instruction can name a place of constant memory as an operand. A double that is written out instead, unless its lower
half is zero, takes two instructions that put its halves into registers, every time. (Where registers are scarce, the
assembler fetches such operands early and spills others for them: then they are written out after all.)
"""

from __future__ import annotations

from bellcrank.emit.cpu.lanes import Writer


class ThreadWriter(Writer):
    def __init__(self, dtype: str, scarce: bool = False) -> None:
        super().__init__(1, dtype)
        self.written = scarce or dtype == "float32"
        self.numbers: dict[str, int] = {}  # bits -> place

    def constant(self, x: float) -> str:
        return self.held(self._bits(x))

    def held(self, bits: str) -> str:
        """A constant by its bits, as LLVM writes them."""
        if self.written or bits.endswith("00000000"):
            return bits
        place = self.numbers.setdefault(bits, len(self.numbers)) * self.bytes
        return self.let(
            f"load double, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @numbers, i64 {place})", "c"
        )

    def definition(self) -> str:
        """The constant memory. Initialised "externally", so that LLVM does not look through it."""
        if not self.numbers:
            return ""
        values = ", ".join(f"double {bits}" for bits in self.numbers)
        return f"@numbers = addrspace(4) externally_initialized constant [{len(self.numbers)} x double] [{values}]\n"
