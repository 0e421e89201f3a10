"""LLVM IR to PTX, by the NVPTX backend inside llvmlite; CUDA is not needed for this."""

from __future__ import annotations

import re
from typing import Any

from bellcrank.emit.llvm.host import llvm
from bellcrank.errors import CompileError
from bellcrank.process_state import evaluated_once

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST_ARCHITECTURE = "sm_75"  # the oldest GPU that current CUDA supports; the driver translates for newer ones


@evaluated_once
def _machine() -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE).create_target_machine(cpu=OLDEST_ARCHITECTURE, features="+ptx70", opt=3)


def ptx(text: str, promote: bool = False) -> str:
    """Return the PTX of the LLVM IR `text`; with `promote`, variables (alloca) become registers."""
    binding = llvm()
    try:
        module: Any = binding.parse_assembly(f'target triple = "{TRIPLE}"\n{text}', binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected the generated code; this is a bug in bellcrank: {error}") from error
    if promote:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, binding.create_pass_builder(_machine(), binding.create_pipeline_tuning_options()))
    return str(_machine().emit_assembly(module))


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
