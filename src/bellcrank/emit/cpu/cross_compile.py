"""Cross-compilation: object files for other processors, by the same LLVM from the same text.

    lanes = PROCESSORS["aarch64"].lanes("float64")
    text, slots = loop.source(program, lanes, lanes)
    object_code(text, "aarch64")                         for Linux, to be linked with libm

If both processors have fused multiply-add, the results are equal bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.emit.llvm.host import llvm
from bellcrank.errors import CompileError, InputError, unknown
from bellcrank.process_state import evaluated_once


@dataclass(frozen=True)
class Processor:
    """Target of LLVM: triple, processor, features and width of vectors."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    abi: str = ""

    def lanes(self, dtype: str) -> int:
        """Return the lanes of a vector of `dtype`."""
        return max(1, self.vector_bytes // (8 if dtype == "float64" else 4))


PROCESSORS = {
    "aarch64": Processor("aarch64-unknown-linux-gnu", "generic", "+neon", 16),
    "riscv64": Processor("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 8, "lp64d"),
}


@evaluated_once
def _initialised() -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def object_code(text: str, processor: str) -> bytes:
    """Return the object file of the LLVM IR module `text` for `processor`, a name in PROCESSORS."""
    if processor not in PROCESSORS:
        raise InputError(unknown("processor", processor, PROCESSORS))
    p, binding = PROCESSORS[processor], _initialised()
    machine = binding.Target.from_triple(p.triple).create_target_machine(
        cpu=p.cpu, features=p.features, opt=3, reloc="pic", abiname=p.abi
    )
    try:
        module: Any = binding.parse_assembly(text, binding.create_context())
        module.triple, module.data_layout = p.triple, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected generated code; this is a bug in bellcrank: {error}") from error
    return bytes(machine.emit_object(module))
