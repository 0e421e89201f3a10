"""Source to machine code in this process: LLVM compiles the text, or the cache has the object code already."""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

from bellcrank.emit import cache as store
from bellcrank.emit.cpu import pycall
from bellcrank.emit.cpu.host import host, llvm, target_machine
from bellcrank.emit.lifetime import unseen
from bellcrank.errors import CompileError


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
        self._held = unseen(engine)  # an engine that is finalised is unmapped
        self._other: Library | None = None
        self._joining = threading.Lock()

    def address(self, name: str) -> int:
        (engine,) = self._held
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
def _symbols() -> None:
    """Tells LLVM where the C library's and Python's functions are in this process."""
    binding = llvm()
    library = _mathematics()
    for name in ("sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log", "tanh"):
        for symbol in (name, f"{name}f"):
            binding.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
    own = _process()
    for symbol in ("malloc", "free", *ABSENT):
        if (found := getattr(own, symbol, UNUSED if symbol in ABSENT else None)) is not None:
            binding.add_symbol(symbol, ctypes.cast(found, ctypes.c_void_p).value)
    for symbol, address in pycall.SYMBOLS.items():
        binding.add_symbol(symbol, address())


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
