"""Worker threads of a kernel that computes one state on several cores, started on demand and asleep when idle.

A worker enters its native loop (handover.py) without the GIL and returns after some time without calls; then it sleeps
until the next call wakes it. It holds the machine code but not the kernel, so that the kernel can be garbage-collected,
which stops it. The collector may do so at any time and in any thread, even in the worker's own, so stopping takes no
lock and waits for no thread. A forked child has none of its parent's threads and starts its own.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from bellcrank.emit.cores import handover_worker as shared
from bellcrank.emit.cpu.machine_code import Library


def allowed_cpus() -> list[int]:
    """Return the CPUs that this thread may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def current_cpu() -> int:
    """Return the CPU that this thread currently runs on, or -1."""
    try:
        return int(ctypes.CDLL(None).sched_getcpu())
    except (AttributeError, OSError, TypeError):
        return -1


class ThreadTeam:
    """Workers 1 to processors - 1 of one module."""

    def __init__(self, library: Library, processors: int) -> None:
        self.library, self.processors = library, processors
        self.shared = library.address("shared")
        self._enter = [ctypes.CFUNCTYPE(None)(library.address(f"worker_{k}")) for k in range(1, processors)]
        self._lock = threading.Lock()
        self.together_lock = threading.Lock()  # held by a caller that insists on all workers
        self._threads: list[threading.Thread] = []
        self._gates: list[SimpleQueue[None]] = []  # not events: put() never blocks
        self.cpus: Sequence[int] = ()
        self.patience = 0
        self._set_mode()
        _teams.add(self)

    def word(self, offset: int) -> Any:
        """Return the 64-bit word at `offset` in @shared."""
        return ctypes.c_int64.from_address(self.shared + offset)

    # -- placement

    def _set_mode(self) -> None:
        """Use workers only if there are enough CPUs.

        Sharing a core with a waiting thread is slower than computing on one core alone.
        """
        self.has_enough_cpus = len(allowed_cpus()) >= self.processors
        self.word(shared.LINE_BYTES * shared.MODE_LINE).value = int(not self.has_enough_cpus)

    def pin(self, cpus: Sequence[int], patience: int = 0) -> None:
        """Pin the workers to certain CPUs, even if there are too few.

        Parameters
        ----------
        cpus
            CPUs of the workers.
        patience
            Additional spins to wait for a worker that has not begun.
        """
        self.cpus, self.patience, self.has_enough_cpus = list(cpus), patience, True
        self.word(shared.LINE_BYTES * shared.MODE_LINE).value = 0
        self.word(shared.LINE_BYTES * shared.MODE_LINE + shared.WAIT_LIMIT_OFFSET).value = patience

    def _default_cpus(self) -> list[int]:
        own_cpu, others = current_cpu(), allowed_cpus()
        free = [cpu for cpu in others if cpu != own_cpu] or others
        return [free[k % len(free)] for k in range(self.processors - 1)]

    # -- waking and sleeping

    @property
    def awake(self) -> int:
        """Number of workers in their native loops."""
        states = [self.word(shared.done_offset(k)).value & 3 for k in range(1, self.processors)]
        return sum(state != shared.AWAY for state in states)

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of states that were computed together, and by the caller alone."""
        line = shared.LINE_BYTES * shared.BUSY_LINE
        return self.word(line + shared.TOGETHER_OFFSET).value, self.word(line + shared.ALONE_OFFSET).value

    def wake(self) -> None:
        """Wake all sleeping workers; start them on first use."""
        if not self.has_enough_cpus or self.awake == self.processors - 1:
            return
        with self._lock:
            if not self._threads:
                self._start()
            for gate in self._gates:
                if gate.empty():
                    gate.put(None)

    def _start(self) -> None:
        cpus = list(self.cpus) or self._default_cpus()
        self._gates = [SimpleQueue() for _ in self._enter]
        stop = self.word(shared.LINE_BYTES * shared.STOP_LINE)
        for k, (enter, gate) in enumerate(zip(self._enter, self._gates, strict=True)):
            keep = (self.library, stop)
            thread = threading.Thread(
                target=_worker_main, args=(enter, gate, stop, cpus[k % len(cpus)], keep), daemon=True,
                name=f"bellcrank worker {k + 1}",
            )  # fmt: skip
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the threads permanently, without waiting for them."""
        self.word(shared.LINE_BYTES * shared.STOP_LINE).value = 1
        for gate in self._gates:
            gate.put(None)

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child, which has no worker threads and no step in progress."""
        self._lock, self._threads, self._gates = threading.Lock(), [], []
        self.together_lock = threading.Lock()
        step = self.word(
            shared.LINE_BYTES * shared.STEP_LINE
        ).value  # continues: otherwise old messages would match new steps
        ctypes.memset(self.shared, 0, shared.messages_start(self.processors))
        self.word(shared.LINE_BYTES * shared.STEP_LINE).value = step
        if self.cpus:
            self.pin(self.cpus, self.patience)
        else:
            self._set_mode()


def _worker_main(enter: Callable[[], None], gate: SimpleQueue[None], stop: Any, cpu: int, keep: object) -> None:
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # on failure the operating system places the thread
            os.sched_setaffinity(0, {cpu})
    while True:
        gate.get()
        if stop.value:
            return
        enter()


_teams: weakref.WeakSet[ThreadTeam] = weakref.WeakSet()


def _at_exit(patience: float = 0.5) -> None:
    """Stop and join all workers before the interpreter ends, so that none is in machine code."""
    teams = list(_teams)
    for team in teams:
        team.stop()
    for thread in [thread for team in teams for thread in team._threads]:
        thread.join(patience)


def _after_fork() -> None:
    for team in list(_teams):
        team.reset_after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
