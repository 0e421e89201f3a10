"""The compiled Python entry (emit/cpu/entry.py) as a builtin function: addresses filled in, lifetimes tied together."""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bellcrank.emit.cpu.entry import FIELDS, FLOATS, PLAIN, TABLE
from bellcrank.emit.cpu.host import unseen

_ABI = (0x01000009, 0x02000000)  # PyArray_GetNDArrayCVersion of NumPy 1.x and 2.x
_API = {"PyArray_GetNDArrayCVersion": 0, "PyArray_Type": 2, "PyArray_Return": 76, "PyArray_NewFromDescr": 94}
_FASTCALL_KEYWORDS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS


class _Array(ctypes.Structure):
    _fields_ = [(name, kind) for name, _, kind in FIELDS]


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Definition:
    """What a builtin is made of, lent to it. A builtin reads it until its very end, when the collector may have emptied
    everything around it: so its memory is never freed, only lent again, and the flags, which are what is read then, are
    the same in all.
    """

    _free: list[_MethodDef] = []

    def __init__(self, name: str, function: int, doc: str) -> None:
        try:
            self.method = self._free.pop()
        except IndexError:
            self.method = _MethodDef()
        self.method.name, self.method.function, self.method.doc = name.encode(), function, doc.encode()
        self.method.flags = _FASTCALL_KEYWORDS

    def __del__(self) -> None:
        self._free.append(self.method)


class _Owner(str):
    """The `__module__` of a builtin, which also holds what the builtin points at."""

    __slots__ = ("kept",)
    kept: object


def _numpy(name: str) -> int:
    """The address of an entry of NumPy's C-API."""
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table: int = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    return ctypes.c_void_p.from_address(table + _API[name] * ctypes.sizeof(ctypes.c_void_p)).value or 0


@cache
def supported() -> bool:
    """Whether this interpreter and this NumPy have the layouts that `@call` relies on."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    if ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy("PyArray_GetNDArrayCVersion"))() not in _ABI:
        return False
    probe = np.zeros((2, 3))
    seen = _Array.from_address(id(probe))
    return (
        (seen.type, seen.data, seen.nd, seen.descr)
        == (_numpy("PyArray_Type"), probe.ctypes.data, probe.ndim, id(np.dtype("float64")))
        and seen.flags & PLAIN == PLAIN
        and (ctypes.c_int64 * 2).from_address(seen.dims)[:] == [2, 3]
    )


def native(address_of: Callable[[str], int], name: str, doc: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled `@call` as a builtin, with `fallback` behind it; `fallback` itself where that is not supported.

    `address_of` gives the address of a symbol of the compiled module. The builtin keeps it, so what it refers to (say,
    the engine, as a bound method does) lives as long as the builtin; it must not refer to `fallback`, which may be in a
    cycle with the builtin. A `doc` that begins with `name(a, b)\\n--\\n\\n`
    gives the builtin a signature.
    """
    if not supported():
        return fallback
    table = (ctypes.c_void_p * len(TABLE)).from_address(address_of("py"))
    own = {name: id(np.dtype(name)) for name in FLOATS} | {"out": id(sys.intern("out"))}
    table[:] = [own[entry] if entry in own else _numpy(entry) for entry in TABLE]
    definition = _Definition(name, address_of("call"), doc)
    owner = _Owner(__name__)
    owner.kept = unseen(definition, address_of)
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    new = prototype(("PyCFunction_NewEx", ctypes.pythonapi))
    builtin: Callable[..., Any] = new(ctypes.addressof(definition.method), fallback, owner)
    return builtin
