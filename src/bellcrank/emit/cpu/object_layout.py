"""How objects of Python and arrays of NumPy lie in memory, which the entry of a kernel reads (entry.py), for 64-bit
CPython with a GIL; kernel.supported checks it on a live array.

- PyObject: reference count, type. PyArrayObject goes on with data, nd, dimensions, strides, base, descr, flags. NumPy
  keeps these fields at their places, because its macros read them from compiled extensions:
  https://numpy.org/doc/stable/reference/c-api/types-and-structures.html#c.PyArrayObject
- An array of native floats has the one descr of its type (a copy, as unpickling makes, is merely slower), so an address
  tells the dtype and the byte order. Subclasses have another type.
- NumPy's functions sit in the table of the capsule `_ARRAY_API`; the indices below are those of __multiarray_api.h, and
  are the same in 1.26 and 2.x: https://numpy.org/doc/stable/reference/c-api/array.html

These addresses differ between processes, while object code is cached on disk: hence `@py`, a table of addresses that
`@call` reads and emit/cpu/kernel.py fills. CPython's own functions are ordinary externals, for the linker to find.
"""

from __future__ import annotations

import ctypes

# The head of a PyArrayObject, in order: the name, in IR, in ctypes.
FIELDS = (
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
PLAIN = 0x001 | 0x100  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE
FLOATS = ("float64", "float32")
TABLE = ("PyArray_Type", "PyArray_Return", "PyArray_NewFromDescr", *FLOATS, "out")  # what @py holds, in order

ABI = (0x01000009, 0x02000000)  # PyArray_GetNDArrayCVersion of NumPy 1.x and 2.x
API = {"PyArray_GetNDArrayCVersion": 0, "PyArray_Type": 2, "PyArray_Return": 76, "PyArray_NewFromDescr": 94}
HEADER = object.__basicsize__  # bytes before what an object has of its own: 16, and 32 where there is no GIL

# The functions of CPython that @call declares: the type of the result, and of the parameters.
EXTERNALS = {
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyEval_SaveThread": ("ptr", ""),
    "PyEval_RestoreThread": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
    "Py_DecRef": ("void", "ptr"),
}
