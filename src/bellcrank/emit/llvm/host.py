"""Processor that LLVM compiles for, and the compilation of LLVM IR for it, with a cache of object code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellcrank.emit import cache as store
from bellcrank.errors import CompileError, InputError, unknown
from bellcrank.process_state import evaluated_once


@dataclass(frozen=True)
class Host:
    """Processor and LLVM version that code is compiled for."""

    triple: str
    cpu: str
    features: str
    llvm: str
    vector_bytes: int

    def lanes(self, dtype: str) -> int:
        """Return the lanes of a vector of `dtype`."""
        return self.vector_bytes // (8 if dtype == "float64" else 4)

    @property
    def registers(self) -> int:
        """Number of vector registers: AVX-512 and NEON have twice as many as earlier x86 extensions."""
        return 16 if self.triple.startswith(("x86_64", "i686")) and self.vector_bytes < 64 else 32

    @property
    def avx512(self) -> bool:
        """True for AVX-512: masked stores are as fast as full ones, and short displacements count in vectors."""
        return self.vector_bytes == 64


@evaluated_once
def llvm() -> Any:
    """Return LLVM's binding, initialised once; imported here, because `import bellcrank` must not load LLVM."""
    import llvmlite.binding as binding

    _make_lock_atomic(binding.ffi)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Processor levels that can be chosen instead of this processor: the feature they require, and their bytes of a vector.
PROCESSOR_LEVELS = {
    "x86-64": ("sse2", 16),
    "x86-64-v2": ("sse4.2", 16),
    "x86-64-v3": ("avx2", 32),
    "x86-64-v4": ("avx512f", 64),
}


def requested_level(name: str, features: Mapping[str, bool]) -> tuple[str, int]:
    """Return features and vector bytes of the processor level `name`; raise an InputError unless `features` has it."""
    if name not in PROCESSOR_LEVELS:
        raise InputError(unknown("processor in BELLCRANK_CPU", name, PROCESSOR_LEVELS))
    needs, width = PROCESSOR_LEVELS[name]
    if not features.get(needs):
        raise InputError(
            f"BELLCRANK_CPU is {name}, but this processor has no {needs}. Unset it, or name a lower level."
        )
    return "-prefer-256-bit" if width == 64 else "", width


def _make_lock_atomic(ffi: Any) -> None:
    """Make taking and releasing llvmlite's lock atomic with respect to signals.

    Every call of LLVM is made `with` a lock whose `__enter__` and `__exit__` are written in Python. If a signal handler
    raises (Ctrl-C) inside either of them, also in the finalisers of dropped code, the main thread keeps the lock for
    ever and no other thread can compile again. Those methods of the inner lock are a single step of the interpreter.
    """
    lock = ffi.lib._lock
    if not lock._cblist:  # callbacks that were registered for every call are respected
        type(lock).__enter__, type(lock).__exit__ = lock._lock.__enter__, lock._lock.__exit__


@evaluated_once
def host() -> Host:
    """Return this processor; or the level that $BELLCRANK_CPU names, so that code also runs on lesser processors."""
    binding = llvm()
    features = binding.get_host_cpu_features()
    if name := os.environ.get("BELLCRANK_CPU"):
        text, width = requested_level(name, features)
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
    """Return a new LLVM target machine for the host."""
    binding, h = llvm(), host()
    target = binding.Target.from_triple(h.triple)
    # opt=1: level 3 would only schedule the instructions once more, which takes a fifth of the time and gains nothing,
    # because emit/llvm/scheduling.py has scheduled them well.
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=1, reloc="pic", codemodel="small")


def object_key(text: str) -> str:
    """Return the name of the cache file for the object code of the module `text`."""
    h = host()
    return store.key(text, h.cpu, h.features, h.llvm) + ".o"


def compile_cached(text: str) -> tuple[bytes, bool, str]:
    """Return the object code of the module `text`, True if it came from the cache, and its file name there."""
    name = object_key(text)
    cached_code = store.load(name)
    if cached_code is not None:
        return cached_code, True, name
    code = compile_text(text)
    store.save(name, code)
    return code, False, name


def compile_text(text: str) -> bytes:
    """Return the object code of the LLVM IR module `text`, compiled now."""
    return bytes(target_machine().emit_object(verified_module(text)))


def verified_module(text: str) -> Any:
    """Return the LLVM IR module `text`, parsed and checked."""
    binding = llvm()
    context = binding.create_context()  # a context of its own, because constants and types stay in it for ever
    try:
        module: Any = binding.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected generated code; this is a bug in bellcrank: {error}") from error
    return module


@evaluated_once
def _binding_for_all_targets() -> Any:
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def other_machine(triple: str, **options: Any) -> Any:
    """Return a new LLVM target machine for the processor `triple`, with further `options` of llvmlite."""
    return _binding_for_all_targets().Target.from_triple(triple).create_target_machine(opt=3, **options)


def compile_for_other(text: str, triple: str, **options: Any) -> bytes:
    """Return the object code of the module `text` for the processor `triple`; `options` as for `other_machine`."""
    machine, module = other_machine(triple, **options), verified_module(text)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return bytes(machine.emit_object(module))


def code_size(object_code: bytes) -> int:
    """Return the bytes of machine code in `object_code`, without constants and tables."""
    sections = llvm().ObjectFileRef.from_data(object_code).sections()
    return sum(section.size() for section in sections if section.is_text())


def assembly(text: str) -> str:
    """Return the assembly of the module `text`, for readers."""
    return str(target_machine().emit_assembly(llvm().parse_assembly(text)))
