"""Thread priority for real time, as far as permitted: a fixed priority, locked memory, a core of its own.

The thread is pinned to a core only together with the priority. Without it, a pinned thread would have to wait for other
programs on that core, so the choice is left to the system unless a core was requested.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

PRIORITY = 50  # of 1 to 99: above ordinary threads, below kernel threads at 99
# MCL_CURRENT | MCL_ONFAULT: touched pages stay in memory. Without the second flag the system would also load reserved
# pages: the arenas of a library that wrote a file take a gigabyte.
CURRENT_ON_FAULT = 1 | 4


@contextmanager
def urgent(core: int | None = None) -> Iterator[list[str]]:
    """Raise the priority of the calling thread, and yield one line for each measure that was not permitted.

    On exit the thread has its former scheduling. `core` is the core to be pinned to; None selects one if that helps.
    """
    notes: list[str] = []
    first = False
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        first = True
    except (OSError, AttributeError) as error:
        notes.append(f"no SCHED_FIFO ({_why(error)}): other programs may delay the loop")
    try:
        _lock_memory()
    except (OSError, AttributeError, TypeError) as error:  # Windows has no library without a name
        notes.append(f"memory is not locked ({_why(error)}): a page may have to be fetched")
    wanted = core if core is not None else max(cores) if first and len(cores) > 1 else None
    if wanted is None:
        why = "there is only one" if first else "without SCHED_FIFO that may do harm"
        notes.append(f"not pinned to a core: {why}")
    else:
        try:
            os.sched_setaffinity(0, {wanted})
        except (OSError, AttributeError) as error:
            notes.append(f"not pinned to core {wanted} ({_why(error)})")
    try:
        yield notes
    finally:
        if first:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if cores:
            os.sched_setaffinity(0, cores)


def _lock_memory() -> None:
    if ctypes.CDLL(None, use_errno=True).mlockall(CURRENT_ON_FAULT):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
