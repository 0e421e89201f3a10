"""Machine code in this process: loaded object code, the symbols that it refers to, and the objects that it reads.

Machine code that is in a reference cycle with its kernel is held where the garbage collector does not look
(`hide_from_collector`). The collector first finalises all objects of a cycle, in any order, and then clears them, again
in any order. The first step would unmap code that a `__del__` of another object may still call. To the collector, an
object that is held out of sight looks as if it were held from outside: it is not a part of any cycle, is not finalised,
and is freed when the last of its holders has been cleared.

The entry of a kernel (python_entry.py) reads Python objects and NumPy arrays. Their layout in memory is that of 64-bit
CPython with a GIL; kernel.supported checks it on a live array.

- PyObject: reference count, type. PyArrayObject continues with data, nd, dimensions, strides, base, descr, flags. NumPy
  keeps these fields at their places, because its macros read them from compiled extensions:
  https://numpy.org/doc/stable/reference/c-api/types-and-structures.html#c.PyArrayObject
- An array of native floats has the unique descr of its type (a copy, as unpickling makes, is merely slower), so that an
  address determines the dtype and the byte order. Subclasses have another type.
- NumPy's functions are in the table of the capsule `_ARRAY_API`; the indices below are those of __multiarray_api.h, and
  are the same in 1.26 and 2.x: https://numpy.org/doc/stable/reference/c-api/array.html

These addresses differ between processes, while object code is cached on disk. Hence `@py` is a table of addresses that
`@call` reads and emit/cpu/kernel.py fills. CPython's own functions are ordinary externals, resolved by the linker.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import POISONED
from bellcrank.emit.llvm.host import code_size, llvm, target_machine
from bellcrank.errors import CompileError
from bellcrank.process_state import evaluated_once

if TYPE_CHECKING:
    from bellcrank.emit.cpu.poisoning import Poisoning

# First fields of a PyArrayObject, in order: the name, the type in IR, the type in ctypes.
ARRAY_FIELDS = (
    ("count", "i64", ctypes.c_int64),
    ("type", "ptr", ctypes.c_void_p),
    ("data", "ptr", ctypes.c_void_p),
    ("nd", "i32", ctypes.c_int32),
    ("dims", "ptr", ctypes.c_void_p),
    ("strides", "ptr", ctypes.c_void_p),
    ("base", "ptr", ctypes.c_void_p),
    ("descr", "ptr", ctypes.c_void_p),
    ("flags", "i32", ctypes.c_int32),
)
PLAIN_ARRAY_FLAGS = 0x001 | 0x100  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
WRITEABLE_FLAG = 0x400  # NPY_ARRAY_WRITEABLE
FLOAT_DTYPES = ("float64", "float32")
# Entries of @py, in order.
ADDRESS_TABLE = ("PyArray_Type", "PyArray_Return", "PyArray_NewFromDescr", *FLOAT_DTYPES, "out")

NUMPY_ABI_VERSIONS = (0x01000009, 0x02000000)  # PyArray_GetNDArrayCVersion of NumPy 1.x and 2.x
NUMPY_API_INDICES = {
    "PyArray_GetNDArrayCVersion": 0,
    "PyArray_Type": 2,
    "PyArray_Return": 76,
    "PyArray_NewFromDescr": 94,
}
OBJECT_HEADER_BYTES = object.__basicsize__  # bytes of the header of an object: 16, or 32 without a GIL

# The functions of CPython that @call declares: the types of the result and of the parameters.
PYTHON_FUNCTIONS = {
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyEval_SaveThread": ("ptr", ""),
    "PyEval_RestoreThread": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
    "Py_DecRef": ("void", "ptr"),
}
MISSING_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -1)
# Functions that some systems lack. Code that refers to one of them is loaded there all the same, and never calls it:
# a real-time drive uses another clock (sim/realtime/realtime_memory.py), and several cores for one state are refused.
OPTIONAL_FUNCTIONS = ("sched_yield", "clock_gettime", "clock_nanosleep")


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

    def set_pointer(self, name: str, address: int) -> None:
        """Store `address` in the global pointer `name`."""
        ctypes.c_void_p.from_address(self.address(name)).value = address

    def load_batch_module(self, object_code: bytes) -> int:
        """Load the batch module `object_code` (kernel_module.py) once, connect both modules; return its code size."""
        with self._batch_lock:  # code that another thread may be running is not loaded again
            if self._batch_library is None:
                batch_library = Library(object_code)
                for caller, callee, name in ((batch_library, self, "one"), (self, batch_library, "many")):
                    caller.set_pointer(f"{name}.at", callee.address(name))
                self._batch_library = batch_library
        return code_size(object_code)


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


def hide_from_collector(*things: object) -> np.ndarray[Any, Any]:
    """Return an array that holds `things`: the only container that the garbage collector does not traverse.

    They must not refer to the holder of the array by any path, because such a cycle would never be collected.
    """
    holder = np.empty(len(things), object)
    for i, thing in enumerate(things):
        holder[i] = thing
    return holder
