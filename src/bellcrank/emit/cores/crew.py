"""The threads behind a kernel that computes one state on several cores: started when needed, asleep when not.

A worker enters its native loop (handover.py) without the GIL and comes back when nobody has called for a while; then it
sleeps until the next call wakes it. It holds the machine code but not the kernel, so that the kernel can be forgotten,
which stops it. The collector may do so at any time and in any thread, even in that of the worker, so stopping takes no
lock and waits for nobody. A forked child has none of its parent's threads and starts its own.
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

from bellcrank.emit.cores import protocol as shared
from bellcrank.emit.cpu.host import Library


def allowed() -> list[int]:
    """The CPUs that this thread may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def here() -> int:
    """The CPU that this thread runs on just now, or -1."""
    try:
        return int(ctypes.CDLL(None).sched_getcpu())
    except (AttributeError, OSError, TypeError):
        return -1


class Crew:
    """Workers 1 to processors - 1 of one module."""

    def __init__(self, library: Library, processors: int) -> None:
        self.library, self.processors = library, processors
        self.shared = library.address("shared")
        self._enter = [ctypes.CFUNCTYPE(None)(library.address(f"worker_{k}")) for k in range(1, processors)]
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._gates: list[SimpleQueue[None]] = []  # not events: to put something in never waits
        self.cpus: Sequence[int] = ()
        self.patience = 0
        self._decide()
        _crews.add(self)

    def word(self, offset: int) -> Any:
        return ctypes.c_int64.from_address(self.shared + offset)

    # -- on which CPUs

    def _decide(self) -> None:
        """Waiting for a core that must be shared with whoever waits is slower than one core alone."""
        self.enough = len(allowed()) >= self.processors
        self.word(shared.LINE * shared.MODE).value = int(not self.enough)

    def on(self, cpus: Sequence[int], patience: int = 0) -> None:
        """Insists on these CPUs for the workers, few as they may be, and waits for them for so many turns."""
        self.cpus, self.patience, self.enough = list(cpus), patience, True
        self.word(shared.LINE * shared.MODE).value = 0
        self.word(shared.LINE * shared.MODE + shared.PATIENCE).value = patience

    def _places(self) -> list[int]:
        mine, others = here(), allowed()
        free = [cpu for cpu in others if cpu != mine] or others
        return [free[k % len(free)] for k in range(self.processors - 1)]

    # -- awake and asleep

    @property
    def awake(self) -> int:
        """How many workers are in their loops."""
        states = [self.word(shared.done_at(k)).value & 3 for k in range(1, self.processors)]
        return sum(state != shared.AWAY for state in states)

    @property
    def counts(self) -> tuple[int, int]:
        """How many states were computed together, and how many by the caller alone."""
        line = shared.LINE * shared.BUSY
        return self.word(line + shared.TOGETHER).value, self.word(line + shared.ALONE).value

    def wake(self) -> None:
        if not self.enough or self.awake == self.processors - 1:
            return
        with self._lock:
            if not self._threads:
                self._start()
            for gate in self._gates:
                if gate.empty():
                    gate.put(None)

    def _start(self) -> None:
        places = list(self.cpus) or self._places()
        self._gates = [SimpleQueue() for _ in self._enter]
        stop = self.word(shared.LINE * shared.STOP)
        for k, (enter, gate) in enumerate(zip(self._enter, self._gates, strict=True)):
            keep = (self.library, stop)
            thread = threading.Thread(
                target=_work, args=(enter, gate, stop, places[k % len(places)], keep), daemon=True,
                name=f"bellcrank worker {k + 1}",
            )  # fmt: skip
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Ends the threads, for good and in their own time."""
        self.word(shared.LINE * shared.STOP).value = 1
        for gate in self._gates:
            gate.put(None)

    def forget(self) -> None:
        """In a forked child: there are no threads, and nobody is in a step."""
        self._lock, self._threads, self._gates = threading.Lock(), [], []
        step = self.word(shared.LINE * shared.STEP).value  # goes on, or messages of the parent's would be of ours
        ctypes.memset(self.shared, 0, shared.messages_start(self.processors))
        self.word(shared.LINE * shared.STEP).value = step
        if self.cpus:
            self.on(self.cpus, self.patience)
        else:
            self._decide()


def _work(enter: Callable[[], None], gate: SimpleQueue[None], stop: Any, cpu: int, keep: object) -> None:
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # then the operating system places it
            os.sched_setaffinity(0, {cpu})
    while True:
        gate.get()
        if stop.value:
            return
        enter()


_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


def _at_exit(patience: float = 0.5) -> None:
    """The interpreter ends, and should find nobody in machine code."""
    crews = list(_crews)
    for crew in crews:
        crew.stop()
    for thread in [thread for crew in crews for thread in crew._threads]:
        thread.join(patience)


def _after_fork() -> None:
    for crew in list(_crews):
        crew.forget()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
