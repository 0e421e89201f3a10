"""LLVM IR of a GPU thread: its writer, with floating-point constants in constant memory, and the translation to PTX.

An instruction can have a location in constant memory as an operand. A double written as a literal takes two
instructions that move its halves into registers each time, unless its lower half is zero. (Where registers are scarce,
the assembler loads such operands early and spills other values for them: then literals are used after all.)

PTX comes from the NVPTX backend inside llvmlite; CUDA is not needed for this.
"""

from __future__ import annotations

import re

from bellcrank.emit.llvm.host import llvm, other_machine, verified_module
from bellcrank.emit.llvm.lanes import Writer

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST_ARCHITECTURE = "sm_75"  # the oldest GPU that current CUDA supports; the driver translates for newer ones


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


def ptx(text: str, promote: bool = False) -> str:
    """Return the PTX of the LLVM IR `text`; with `promote`, variables (alloca) become registers."""
    machine = other_machine(TRIPLE, cpu=OLDEST_ARCHITECTURE, features="+ptx70")
    module = verified_module(f'target triple = "{TRIPLE}"\n{text}')
    if promote:
        passes = llvm().create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options()))
    return str(machine.emit_assembly(module))


def disable_unrolling(text: str) -> str:
    """Return the PTX `text` with `nounroll` pragmas on its loops.

    The assembler would unroll them without gain, since it cannot prove that one iteration does not write what the next
    one reads, and a thread would use half as many registers again.
    """
    lines = text.split("\n")
    label_lines = {line.split(":")[0]: k for k, line in enumerate(lines) if line.startswith("$L__BB")}
    jumps = ((k, re.search(r"bra(?:\.uni)?\s+(\$L__BB\w+);", line)) for k, line in enumerate(lines))
    loop_labels = {match[1] for k, match in jumps if match is not None and label_lines[match[1]] < k}
    return "\n".join(f'{x}\n\t.pragma "nounroll";' if x.split(":")[0] in loop_labels else x for x in lines)
