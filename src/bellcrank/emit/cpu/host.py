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

    _make_its_lock_whole(binding.ffi)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def _make_its_lock_whole(ffi: Any) -> None:
    """Lets a signal come before or after llvmlite takes its lock or gives it back, never in between.

    Every call of LLVM is made `with` a lock whose `__enter__` and `__exit__` are written in Python. Where a signal's
    handler raises (Ctrl-C) inside either, which happens in the finalisers of dropped code too, the main thread keeps
    the lock for ever and no other thread compiles again. Those of the lock inside are one step for the interpreter.
    """
    lock = ffi.lib._lock
    if not lock._cblist:  # who asked to be told of every call is told
        type(lock).__enter__, type(lock).__exit__ = lock._lock.__enter__, lock._lock.__exit__


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
