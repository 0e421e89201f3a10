"""LLVM IR writer for one GPU thread, with floating-point constants in constant memory.

An instruction can have a location in constant memory as an operand. A double written as a literal takes two
instructions that move its halves into registers each time, unless its lower half is zero. (Where registers are scarce,
the assembler loads such operands early and spills other values for them: then literals are used after all.)
"""

from __future__ import annotations

from bellcrank.emit.llvm.lanes import Writer


class ThreadWriter(Writer):
    """Writer for one thread, which collects constants."""

    def __init__(self, dtype: str, scarce: bool = False) -> None:
        super().__init__(1, dtype)
        self.literals_only = scarce or dtype == "float32"
        self.constant_indices: dict[str, int] = {}  # bits -> index in constant memory

    def constant(self, x: float) -> str:
        """Return the operand for the constant `x`."""
        return self.constant_bits(self._bits(x))

    def constant_bits(self, bits: str) -> str:
        """Return the operand for a constant given by its `bits`, as LLVM writes them."""
        if self.literals_only or bits.endswith("00000000"):
            return bits
        place = self.constant_indices.setdefault(bits, len(self.constant_indices)) * self.bytes
        return self.let(
            f"load double, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @numbers, i64 {place})", "c"
        )

    def definition(self) -> str:
        """Return the definition of the constant memory.

        It is "externally_initialized", so that LLVM does not fold the constants.
        """
        if not self.constant_indices:
            return ""
        values = ", ".join(f"double {bits}" for bits in self.constant_indices)
        array_type = f"[{len(self.constant_indices)} x double]"
        return f"@numbers = addrspace(4) externally_initialized constant {array_type} [{values}]\n"
