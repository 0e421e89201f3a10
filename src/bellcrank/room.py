"""Memory that is free, and an error where something will not fit in: before it begins, not after an hour."""

from __future__ import annotations

import ctypes
import os
import sys

from bellcrank.errors import InputError

KEEP = 2_000_000_000  # bytes that need no second thought


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
