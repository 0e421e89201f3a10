"""Thread priority for real time, as far as permitted: a fixed priority, locked memory, a core of its own.

The thread is pinned to a core only together with the priority. Without it, a pinned thread would have to wait for other
programs on that core, so the choice is left to the system unless a core was requested.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

THREAD_PRIORITY = 50  # of 1 to 99: above ordinary threads, below kernel threads at 99
# MCL_CURRENT | MCL_ONFAULT: touched pages stay in memory. Without the second flag the system would also load reserved
# pages: the arenas of a library that wrote a file take a gigabyte.
MLOCKALL_FLAGS = 1 | 4


@contextmanager
def realtime_priority(core: int | None = None) -> Iterator[list[str]]:
    """Raise the priority of the calling thread, and yield one line for each measure that was not permitted.

    On exit the thread has its former scheduling. `core` is the core to be pinned to; None selects one if that helps.
    """
    notes: list[str] = []
    is_prioritised = False
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(THREAD_PRIORITY))
        is_prioritised = True
    except (OSError, AttributeError) as error:
        notes.append(f"no SCHED_FIFO ({_reason(error)}): other programs may delay the loop")
    try:
        _lock_memory()
    except (OSError, AttributeError, TypeError) as error:  # Windows has no library without a name
        notes.append(f"memory is not locked ({_reason(error)}): a page may have to be fetched")
    pinned_core = core if core is not None else max(cores) if is_prioritised and len(cores) > 1 else None
    if pinned_core is None:
        why = "there is only one" if is_prioritised else "without SCHED_FIFO that may do harm"
        notes.append(f"not pinned to a core: {why}")
    else:
        try:
            os.sched_setaffinity(0, {pinned_core})
        except (OSError, AttributeError) as error:
            notes.append(f"not pinned to core {pinned_core} ({_reason(error)})")
    try:
        yield notes
    finally:
        if is_prioritised:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if cores:
            os.sched_setaffinity(0, cores)


def _lock_memory() -> None:
    if ctypes.CDLL(None, use_errno=True).mlockall(MLOCKALL_FLAGS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
