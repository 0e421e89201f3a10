"""Memory layout of Python objects and NumPy arrays, which the entry of a kernel reads (python_entry.py).

It applies to 64-bit CPython with a GIL; kernel.supported checks it on a live array.

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
