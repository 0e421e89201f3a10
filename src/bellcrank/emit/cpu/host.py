"""This computer as LLVM sees it, and machine code for it: compiled from text or found in the cache, and loaded.

Machine code that is in a cycle with its kernel is held where the garbage collector does not look (`unseen`). Whatever
is in a cycle is first finalised, all of it and in any order, and then emptied, again in any order: code would be
unmapped by the first, while somebody else's `__del__` may still call it. What is held out of sight looks, to the
collector, as if it were held from outside: it is not a part of any cycle, is finalised by nobody, and goes when the
last of those that hold it has been emptied.
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
from bellcrank.emit.cpu.object_layout import API, EXTERNALS
from bellcrank.errors import CompileError, InputError, unknown
from bellcrank.once import once

if TYPE_CHECKING:
    from bellcrank.emit.cpu.poisoning import Poisoning


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

    @property
    def avx512(self) -> bool:
        """Whether some lanes of a vector are stored as fast as all, and short displacements are counted in vectors."""
        return self.vector_bytes == 64


@once
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


@once
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
    # emit/cpu/plan.py has put them in a good one.
    return target.create_target_machine(cpu=h.cpu, features=h.features, opt=1, reloc="pic", codemodel="small")


class Library:
    """Machine code in memory, as long as this object lives."""

    def __init__(self, object_code: bytes) -> None:
        binding = llvm()
        _symbols()
        machine = target_machine()
        # use_lmm: one slab for code and constants, so that the small code model's 32-bit distances always reach.
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine, use_lmm=True)
        engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        # An engine that is finalised is unmapped, and so are the functions that its code calls.
        self._held = unseen(engine, poisoning()) if POISONED else unseen(engine)
        self._other: Library | None = None
        self._joining = threading.Lock()

    def address(self, name: str) -> int:
        engine = self._held[0]
        found: int = engine.get_function_address(name) or engine.get_global_value_address(name)
        if not found:
            raise CompileError(f'the compiled module has no symbol "{name}"; this is a bug of bellcrank.')
        return found

    def joined(self, object_code: bytes) -> int:
        """Loads the other half (emit/cpu/halves.py), and tells either where the other is; gives its size."""
        with self._joining:  # what somebody may be running is not loaded again
            if self._other is None:
                other = Library(object_code)
                for here, there, name in ((other, self, "one"), (self, other, "many")):
                    ctypes.c_void_p.from_address(here.address(f"{name}.at")).value = there.address(name)
                self._other = other
        return code_size(object_code)


UNUSED = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -1)
# What some systems do not have. Code that names one of them is loaded there all the same, and does not get as far as
# calling it: a drive brings another clock (sim/exchange.py), several cores for one state are refused.
ABSENT = ("sched_yield", "clock_gettime", "clock_nanosleep")


def _process() -> ctypes.CDLL:
    """What the interpreter itself has of the C library; on Windows, which has no such thing, its C runtime."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


def _mathematics() -> ctypes.CDLL:
    """The C library's functions: in the interpreter itself where it has them, else wherever the system says."""
    own = _process()
    if hasattr(own, "tanh") and hasattr(own, "tanhf"):
        return own
    from ctypes.util import find_library

    return ctypes.CDLL(find_library("m"))


@cache
def numpy_function(name: str) -> int:
    """The address of an entry of NumPy's C-API."""
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table: int = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    return ctypes.c_void_p.from_address(table + API[name] * ctypes.sizeof(ctypes.c_void_p)).value or 0


def exported(name: str) -> int:
    """Where a function of the interpreter is."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@once
def _symbols() -> bool:
    """Tell LLVM where the C library's and Python's functions are in this process; return True."""
    binding = llvm()
    library = _mathematics()
    for name in ("sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log", "tanh"):
        for symbol in (name, f"{name}f"):
            binding.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
    own = _process()
    for symbol in ("malloc", "free", *ABSENT):
        if (found := getattr(own, symbol, UNUSED if symbol in ABSENT else None)) is not None:
            binding.add_symbol(symbol, ctypes.cast(found, ctypes.c_void_p).value)
    for symbol in EXTERNALS:
        binding.add_symbol(symbol, exported(symbol))
    if POISONED:
        for symbol in ("malloc", "Py_IncRef"):
            binding.add_symbol(symbol, poisoning().address(symbol))
    return True


@once
def poisoning() -> Poisoning:
    """Return the functions that fill memory with NaN before machine code gets it.

    Loaded code holds their addresses, so that there is one object, which lives as long as the code does.
    """
    from bellcrank.emit.cpu.poisoning import Poisoning

    malloc = ctypes.cast(_process().malloc, ctypes.c_void_p).value or 0
    numpys = numpy_function("PyArray_NewFromDescr")
    originals = {"malloc": malloc, "Py_IncRef": exported("Py_IncRef"), "PyArray_NewFromDescr": numpys}
    return Poisoning(llvm(), target_machine(), originals)


def object_key(text: str) -> str:
    h = host()
    return store.key(text, h.cpu, h.features, h.llvm) + ".o"


def compiled(text: str) -> tuple[bytes, bool, str]:
    """Object code of a module, whether it came from the cache, and its name there."""
    name = object_key(text)
    found = store.load(name)
    if found is not None:
        return found, True, name
    code = compile_text(text)
    store.save(name, code)
    return code, False, name


def compile_text(text: str) -> bytes:
    binding = llvm()
    context = binding.create_context()  # of its own: constants and types stay in theirs for ever
    try:
        module: Any = binding.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM did not accept generated text; this is a bug of bellcrank: {error}") from error
    return bytes(target_machine().emit_object(module))


def code_size(object_code: bytes) -> int:
    """Bytes of machine code, constants and tables aside."""
    sections = llvm().ObjectFileRef.from_data(object_code).sections()
    return sum(section.size() for section in sections if section.is_text())


def assembly(text: str) -> str:
    """What the processor will read, for people who want to look."""
    return str(target_machine().emit_assembly(llvm().parse_assembly(text)))


def unseen(*things: object) -> np.ndarray[Any, Any]:
    """An array of objects, the only container that the collector does not look into.

    It must not hold, by any path, who holds it: such a cycle would never be found.
    """
    held = np.empty(len(things), object)
    for i, thing in enumerate(things):
        held[i] = thing
    return held
