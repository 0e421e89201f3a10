"""What this computer is, as LLVM sees it: processor, features, and how many lanes its vectors have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from bellcrank.errors import InputError, unknown


@dataclass(frozen=True)
class Host:
    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int

    def lanes(self, dtype: str) -> int:
        return self.vector_bytes // (8 if dtype == "float64" else 4)

    @property
    def registers(self) -> int:
        """For vectors: AVX-512 and NEON have twice as many as what came before on x86."""
        return 16 if self.triple.startswith(("x86_64", "i686")) and self.vector_bytes < 64 else 32


@cache
def llvm() -> Any:
    """llvmlite's binding, initialised once. Imported here and not at the top: `import bellcrank` must not load LLVM."""
    import llvmlite.binding as binding

    _make_its_lock_whole(binding.ffi)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Processors that code may be made for instead of this one, what they need of it, and the bytes of their vectors.
LEVELS = {"x86-64": ("sse2", 16), "x86-64-v2": ("sse4.2", 16), "x86-64-v3": ("avx2", 32), "x86-64-v4": ("avx512f", 64)}


def asked(name: str, has: Mapping[str, bool]) -> tuple[str, int]:
    """Features and vector bytes of the processor that $BELLCRANK_CPU names; this one must be able to run its code."""
    if name not in LEVELS:
        raise InputError(unknown("processor in BELLCRANK_CPU", name, LEVELS))
    needs, width = LEVELS[name]
    if not has.get(needs):
        raise InputError(
            f"BELLCRANK_CPU is {name}, and this processor has no {needs}. Unset it, or name a lower level."
        )
    return "-prefer-256-bit" if width == 64 else "", width


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
    """This processor; or, so that code also runs on a lesser one, what $BELLCRANK_CPU names."""
    binding = llvm()
    features = binding.get_host_cpu_features()
    if name := os.environ.get("BELLCRANK_CPU"):
        text, width = asked(name, features)
        version = ".".join(map(str, binding.llvm_version_info))
        return Host(binding.get_process_triple(), name, text, version, width)
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
    # opt=1: what 3 does besides is to order instructions once more, which takes a fifth of the time and gains nothing:
    # emit/order.py has put them in a good one.
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=1, reloc="pic", codemodel="small")
