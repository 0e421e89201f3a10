"""The threads among which batches, runs and other work are shared out.

Not those of concurrent.futures: its locks are taken in Python, and where a signal's handler raises (Ctrl-C) inside of
that, they stay taken, and whoever needs them waits for ever. Here everything that the main thread does is one step for
the interpreter: to put into a queue, to read a flag, to wait for a lock.
"""

from __future__ import annotations

import _thread
import atexit
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

PATIENCE = 0.05  # seconds between looks whether something is done, should nobody wake us


class Task:
    """A piece of work, done once. It holds what the work needs until then, whoever else has let go of it."""

    def __init__(self, work: Callable[[int], Any], k: int) -> None:
        self.work: Callable[[int], Any] | None = work
        self.k, self.done = k, False
        self.found: Any = None
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

    def result(self) -> Any:
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

    def submit(self, work: Callable[[int], Any], k: int) -> Task:
        task = Task(work, k)
        self.tasks.put(task)
        return task

    def leave(self, stop: Callable[[], None]) -> None:
        """Nobody begins anything any more, and what was begun ends before this does, whatever signals come."""
        left = False
        while not left:
            try:
                stop()
                while not self.tasks.empty():
                    self.tasks.get_nowait()
                self.__del__()
                while self.gone.qsize() < self.threads:
                    time.sleep(PATIENCE / 10.0)
                left = True
            except BaseException:  # a second Ctrl-C: the first one is on its way already
                continue

    def __del__(self) -> None:
        list(map(self.tasks.put, (None,) * self.threads))  # one step for the interpreter: no signal comes between


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


def shared(
    work: Callable[[int], Any],
    count: int,
    threads: int,
    meanwhile: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> list[Any]:
    """work(0) to work(count - 1), on so many threads of their own, and what they gave. meanwhile: called now and then.
    Where that or a signal raises, stop is called, nothing more is begun, and the error comes when all at work are done.
    """
    tasks = [Task(work, k) for k in range(count)]
    crew = Crew(min(threads, count))
    try:
        for task in tasks:
            crew.tasks.put(task)
        for task in tasks:
            while not task.done:
                task.woken.acquire(timeout=PATIENCE)
                meanwhile()
    except BaseException:
        crew.leave(stop)
        raise
    return [task.result() for task in tasks]


@cache
def pool(threads: int) -> Crew:
    return Crew(threads)


def _alone() -> None:
    """A child has none of its parent's threads."""
    pool.cache_clear()
    _crews.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
