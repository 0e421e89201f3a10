"""The threads among which batches are shared out.

Not those of concurrent.futures: its locks are taken in Python, and where a signal's handler raises (Ctrl-C) inside of
that, they stay taken, and whoever needs them waits for ever. Here everything that the main thread does is one step for
the interpreter: to put into a queue, to read a flag, to wait for a lock.
"""

from __future__ import annotations

import _thread
import atexit
import os
from collections.abc import Callable, Sequence
from functools import cache
from queue import Empty, SimpleQueue
from weakref import WeakSet

PATIENCE = 0.05  # seconds between looks whether something is done, should nobody wake us


class Task:
    """A piece of work, done once. It holds what the work needs until then, whoever else has let go of it."""

    def __init__(self, work: Callable[[int], int], k: int) -> None:
        self.work: Callable[[int], int] | None = work
        self.k, self.found, self.done = k, 0, False
        self.error: BaseException | None = None
        self.woken = _thread.allocate_lock()
        self.woken.acquire()

    def run(self) -> None:
        assert self.work is not None
        try:
            self.found = self.work(self.k)
        except BaseException as error:
            self.error = error
        self.work, self.done = None, True  # what is asked comes before who is woken
        self.woken.release()

    def result(self) -> int:
        if self.error is not None:
            raise self.error
        return self.found


class Crew:
    """Threads that do what is put before them, until nobody holds them any more."""

    threads = 0  # until there are queues

    def __init__(self, threads: int) -> None:
        self.tasks: SimpleQueue[Task | None] = SimpleQueue()
        self.gone: SimpleQueue[None] = SimpleQueue()
        self.threads = threads
        for _ in range(threads):
            _thread.start_new_thread(_serve, (self.tasks, self.gone))  # all of it or nothing
        _crews.add(self)

    def submit(self, work: Callable[[int], int], k: int) -> Task:
        task = Task(work, k)
        self.tasks.put(task)
        return task

    def __del__(self) -> None:
        for _ in range(self.threads):
            self.tasks.put(None)


_crews: WeakSet[Crew] = WeakSet()


def _serve(tasks: SimpleQueue[Task | None], gone: SimpleQueue[None]) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        del task  # and what it holds, while the next is waited for
    gone.put(None)


@atexit.register
def _end() -> None:
    """No thread may be on its way into Python when the interpreter goes."""
    for crew in list(_crews):
        crew.__del__()
        try:
            for _ in range(crew.threads):
                crew.gone.get(timeout=1.0)
        except Empty:  # one is still at work: it ends with the process
            pass


def settle(others: Sequence[Task]) -> None:
    """Waits, come what may: the arrays must outlive those who still write to them. An interrupt comes afterwards."""
    interrupt: BaseException | None = None
    for task in others:
        while not task.done:
            try:
                task.woken.acquire(timeout=PATIENCE)
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


@cache
def pool(threads: int) -> Crew:
    return Crew(threads)


def _alone() -> None:
    """A child has none of its parent's threads."""
    pool.cache_clear()
    _crews.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
