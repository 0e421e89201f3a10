"""Memory for runs: an error where there is not enough, and arrays for rows.

Large arrays come fresh from the system, page by page, and that can take longer than computing what goes in. So a
simulator keeps the one of its last large record, and uses it again as soon as nobody looks at it.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from typing import Any

import numpy as np

from bellcrank.errors import InputError

Array = np.ndarray[Any, Any]
KEEP = 2_000_000_000  # bytes that need no second thought
LARGE = 4_000_000  # numbers: up to about here the C library itself keeps what was given back
ALONE = 3  # references to an array that only its Memory knows: the attribute, the local name, the argument


def check_room(what: str, size: float, remedy: str) -> None:
    """An error where so many bytes do not fit the memory that is free."""
    if size > KEEP and size > (free := free_memory()):
        raise InputError(f"{what} needs {size / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; {remedy}.")


def free_memory() -> float:
    """Bytes, as far as the system tells: what is free on Linux and Windows, all there is elsewhere."""
    try:
        if sys.platform == "win32":
            return _of_windows()
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _of_windows() -> float:
    class Status(ctypes.Structure):  # MEMORYSTATUSEX
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((f"n{k}", ctypes.c_uint64) for k in range(7)),
        ]

    status = Status(ctypes.sizeof(Status))
    if not getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # noqa: B009
        raise OSError("GlobalMemoryStatusEx")
    return float(status.n1)  # available, after the total


class Memory:
    def __init__(self) -> None:
        self._last: Array | None = None

    def rows(self, shape: tuple[int, ...]) -> Array:
        """An array of this shape with anything in it."""
        size = math.prod(shape)
        if size < LARGE:
            return np.empty(shape)
        last = self._last
        # Every view of it, in a record or taken from one, holds a reference to it.
        if last is None or not size <= last.size < 2 * size or sys.getrefcount(last) > ALONE:
            self._last = last = None  # before there is another of its size
            self._last = last = np.empty(size)
        return last[:size].reshape(shape)
