"""Memory: buffers that generated code writes (results, rows, workspaces, spare states), and errors if it is too small.

With BELLCRANK_POISON=1 in the environment every such buffer is filled with NaN before generated code gets it. An
element that the code does not write, or reads before writing it, is then NaN instead of arbitrary. The code itself is
the same. The tests of this package run in this mode.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from typing import Any, TypeVar

import numpy as np

from bellcrank.errors import InputError

T = TypeVar("T")
POISON_VARIABLE = "BELLCRANK_POISON"
POISONED = os.environ.get(POISON_VARIABLE, "") not in ("", "0")
POISON_BYTE = 0xFF  # a float with all bits set is a quiet NaN, in either precision


def empty_buffer(shape: int | tuple[int, ...], dtype: Any = "float64", xp: Any = np) -> Any:
    """Allocate an array of floats for generated code to write.

    Parameters
    ----------
    shape
        Its shape.
    dtype
        Type of the numbers.
    xp
        Library that allocates it, numpy or cupy.
    """
    return poisoned(xp.empty(shape, dtype))


def poisoned(array: T) -> T:
    """Fill an `array` of floats (of any library) with NaN if buffers are poisoned; return the same array."""
    if POISONED:
        whole: Any = array
        whole[...] = np.nan
    return array


UNCHECKED_BYTES = 2_000_000_000  # bytes; smaller sizes are not checked


def check_memory(what: str, size: float, remedy: str) -> None:
    """Raise InputError if a computation does not fit into the free memory.

    Parameters
    ----------
    what
        The computation, for the message.
    size
        Its size in bytes.
    remedy
        Advice for the message.
    """
    if size > UNCHECKED_BYTES and size > (free := free_memory()):
        raise InputError(f"{what} needs {size / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; {remedy}.")


def check_array_memory(name: str, value: object) -> None:
    """Raise InputError if a copy of an array does not fit into the free memory.

    A view of few numbers, as of numpy.broadcast_to, may declare any shape.

    Parameters
    ----------
    name
        Name of the argument, for the message.
    value
        The argument; everything but an array passes.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):
        check_memory(f"{name}, of the shape {shape},", 8.0 * math.prod(shape), "take a smaller batch")


def free_memory() -> float:
    """Return the free memory in bytes on Linux and Windows; elsewhere the total memory."""
    try:
        if sys.platform == "win32":
            return _windows_free_memory()
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _windows_free_memory() -> float:
    class Status(ctypes.Structure):  # MEMORYSTATUSEX
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((f"n{k}", ctypes.c_uint64) for k in range(7)),
        ]

    status = Status(ctypes.sizeof(Status))
    if not getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # noqa: B009
        raise OSError("GlobalMemoryStatusEx")
    return float(status.n1)  # available memory, the field after the total
