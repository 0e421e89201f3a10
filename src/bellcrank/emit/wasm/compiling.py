"""Text of LLVM's to WebAssembly."""

from __future__ import annotations

from typing import Any

from bellcrank.emit.cpu.host import llvm
from bellcrank.errors import CompileError
from bellcrank.once import once

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+nontrapping-fptoint,+simd128,+sign-ext"  # every browser has them since 2023


@once
def _target() -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE)


def compiled(text: str) -> bytes:
    """The object file of a module."""
    binding = llvm()
    machine = _target().create_target_machine(cpu="generic", features=FEATURES, opt=3, reloc="static")
    try:
        module: Any = binding.parse_assembly(text, binding.create_context())
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM did not accept generated text; this is a bug of bellcrank: {error}") from error
    return bytes(machine.emit_object(module))
