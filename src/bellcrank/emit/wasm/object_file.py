"""LLVM IR to WebAssembly object files."""

from __future__ import annotations

from typing import Any

from bellcrank.emit.llvm.host import llvm
from bellcrank.errors import CompileError
from bellcrank.process_state import evaluated_once

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+nontrapping-fptoint,+simd128,+sign-ext"  # supported by every browser since 2023


@evaluated_once
def _target() -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE)


def compile_object(text: str) -> bytes:
    """Return the object file of the module `text`."""
    binding = llvm()
    machine = _target().create_target_machine(cpu="generic", features=FEATURES, opt=3, reloc="static")
    try:
        module: Any = binding.parse_assembly(text, binding.create_context())
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected the generated code; this is a bug in bellcrank: {error}") from error
    return bytes(machine.emit_object(module))
