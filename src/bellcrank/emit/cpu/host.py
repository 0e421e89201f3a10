"""Host processor as LLVM describes it, and machine code for it: compiled from text or found in the cache, and loaded.

Machine code that is in a reference cycle with its kernel is held where the garbage collector does not look
(`hide_from_collector`). The collector first finalises all objects of a cycle, in any order, and then clears them, again
in any order. The first step would unmap code that a `__del__` of another object may still call. To the collector, an
object that is held out of sight looks as if it were held from outside: it is not a part of any cycle, is not finalised,
and is freed when the last of its holders has been cleared.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import POISONED
from bellcrank.emit import cache as store
from bellcrank.emit.cpu.object_layout import NUMPY_API_INDICES, PYTHON_FUNCTIONS
from bellcrank.errors import CompileError, InputError, unknown
from bellcrank.single_evaluation import evaluated_once

if TYPE_CHECKING:
    from bellcrank.emit.cpu.poisoning import Poisoning


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


class Library:
    """Machine code in memory, valid as long as this object lives."""

    def __init__(self, object_code: bytes) -> None:
        binding = llvm()
        _register_symbols()
        machine = target_machine()
        # use_lmm: one slab for code and constants, so that the small code model's 32-bit distances suffice.
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine, use_lmm=True)
        engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        # The finaliser of an engine unmaps it, and with it the functions that its code calls.
        self._hidden_engine = hide_from_collector(engine, poisoning()) if POISONED else hide_from_collector(engine)
        self._batch_library: Library | None = None
        self._batch_lock = threading.Lock()

    def address(self, name: str) -> int:
        """Return the address of the symbol `name`; raise CompileError if there is none."""
        engine = self._hidden_engine[0]
        symbol_address: int = engine.get_function_address(name) or engine.get_global_value_address(name)
        if not symbol_address:
            raise CompileError(f'the compiled module has no symbol "{name}"; this is a bug in bellcrank.')
        return symbol_address

    def load_batch_module(self, object_code: bytes) -> int:
        """Load the batch module `object_code` (deferred_batch.py) once, connect both modules; return its code size."""
        with self._batch_lock:  # code that another thread may be running is not loaded again
            if self._batch_library is None:
                batch_library = Library(object_code)
                for caller, callee, name in ((batch_library, self, "one"), (self, batch_library, "many")):
                    ctypes.c_void_p.from_address(caller.address(f"{name}.at")).value = callee.address(name)
                self._batch_library = batch_library
        return code_size(object_code)


MISSING_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -1)
# Functions that some systems lack. Code that refers to one of them is loaded there all the same, and never calls it:
# a real-time drive uses another clock (sim/realtime_memory.py), and several cores for one state are refused.
OPTIONAL_FUNCTIONS = ("sched_yield", "clock_gettime", "clock_nanosleep")


def _c_library() -> ctypes.CDLL:
    """Return the C library as linked into the interpreter; on Windows, its C runtime."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


def _math_library() -> ctypes.CDLL:
    """Return the library with the C mathematical functions: the interpreter if it has them, else the system's libm."""
    c_library = _c_library()
    if hasattr(c_library, "tanh") and hasattr(c_library, "tanhf"):
        return c_library
    from ctypes.util import find_library

    return ctypes.CDLL(find_library("m"))


@cache
def numpy_function(name: str) -> int:
    """Return the address of the entry `name` of NumPy's C-API."""
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table: int = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    return ctypes.c_void_p.from_address(table + NUMPY_API_INDICES[name] * ctypes.sizeof(ctypes.c_void_p)).value or 0


def interpreter_function(name: str) -> int:
    """Return the address of the function `name` of the interpreter."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@evaluated_once
def _register_symbols() -> bool:
    """Register the addresses of the C library's and Python's functions with LLVM; return True."""
    binding = llvm()
    library = _math_library()
    for name in ("sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log", "tanh"):
        for symbol in (name, f"{name}f"):
            binding.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
    c_library = _c_library()
    for symbol in ("malloc", "free", *OPTIONAL_FUNCTIONS):
        if (
            function := getattr(c_library, symbol, MISSING_FUNCTION if symbol in OPTIONAL_FUNCTIONS else None)
        ) is not None:
            binding.add_symbol(symbol, ctypes.cast(function, ctypes.c_void_p).value)
    for symbol in PYTHON_FUNCTIONS:
        binding.add_symbol(symbol, interpreter_function(symbol))
    if POISONED:
        for symbol in ("malloc", "Py_IncRef"):
            binding.add_symbol(symbol, poisoning().address(symbol))
    return True


@evaluated_once
def poisoning() -> Poisoning:
    """Return the functions that fill memory with NaN before machine code gets it.

    Loaded code holds their addresses, so there is one object, which lives for the rest of the process.
    """
    from bellcrank.emit.cpu.poisoning import Poisoning

    malloc = ctypes.cast(_c_library().malloc, ctypes.c_void_p).value or 0
    numpys = numpy_function("PyArray_NewFromDescr")
    originals = {"malloc": malloc, "Py_IncRef": interpreter_function("Py_IncRef"), "PyArray_NewFromDescr": numpys}
    return Poisoning(llvm(), target_machine(), originals)


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
    binding = llvm()
    context = binding.create_context()  # a context of its own, because constants and types stay in it for ever
    try:
        module: Any = binding.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected generated code; this is a bug in bellcrank: {error}") from error
    return bytes(target_machine().emit_object(module))


def code_size(object_code: bytes) -> int:
    """Return the bytes of machine code in `object_code`, without constants and tables."""
    sections = llvm().ObjectFileRef.from_data(object_code).sections()
    return sum(section.size() for section in sections if section.is_text())


def assembly(text: str) -> str:
    """Return the assembly of the module `text`, for readers."""
    return str(target_machine().emit_assembly(llvm().parse_assembly(text)))


def hide_from_collector(*things: object) -> np.ndarray[Any, Any]:
    """Return an array that holds `things`: the only container that the garbage collector does not traverse.

    They must not refer to the holder of the array by any path, because such a cycle would never be collected.
    """
    holder = np.empty(len(things), object)
    for i, thing in enumerate(things):
        holder[i] = thing
    return holder
