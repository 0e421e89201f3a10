"""What this computer is, as LLVM sees it: processor, features, and how many lanes its vectors have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Host:
    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int

    def lanes(self, dtype: str) -> int:
        return self.vector_bytes // (8 if dtype == "float64" else 4)


@cache
def llvm() -> Any:
    """llvmlite's binding, initialised once. Imported here and not at the top: `import bellcrank` must not load LLVM."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def host() -> Host:
    binding = llvm()
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        width = 64
        features["prefer-256-bit"] = False  # else LLVM splits every 512-bit operation in two
    elif features.get("avx"):
        width = 32
    else:
        width = 16  # NEON, SSE2
    version = ".".join(map(str, binding.llvm_version_info))
    return Host(binding.get_process_triple(), binding.get_host_cpu_name(), features.flatten(), version, width)


def target_machine() -> Any:
    binding, h = llvm(), host()
    target = binding.Target.from_triple(h.triple)
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=3, reloc="pic", codemodel="small")
