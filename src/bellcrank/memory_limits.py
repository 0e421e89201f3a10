"""Free memory, and an early error if a computation will not fit into it."""

from __future__ import annotations

import ctypes
import os
import sys

from bellcrank.errors import InputError

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
