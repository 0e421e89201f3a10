"""Thread pool for batches, runs and other work.

It replaces concurrent.futures, whose locks are taken in Python code: if a signal handler raises (Ctrl-C) inside of
that, they stay locked, and threads that need them wait for ever. Here every operation of the main thread is a single
step of the interpreter: putting into a queue, reading a flag, waiting for a lock.
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

POLL_INTERVAL_SECONDS = 0.05  # seconds between polls for completion, in case no wake-up arrives


class PoolTask:
    """A piece of work, done once; it keeps references to what the work needs until then."""

    def __init__(self, work: Callable[[int], Any], k: int) -> None:
        """Prepare the call work(k).

        Parameters
        ----------
        work
            The function.
        k
            Its argument.
        """
        self.work: Callable[[int], Any] | None = work
        self.k, self.done = k, False
        self.value: Any = None
        self.error: BaseException | None = None
        self.wake_lock = _thread.allocate_lock()
        self.wake_lock.acquire()

    def run(self) -> None:
        """Do the work and wake the waiting thread."""
        assert self.work is not None
        try:
            self.value = self.work(self.k)
        except BaseException as error:
            self.error = error
        self.work, self.done = None, True  # before the waiting thread is woken, which reads the flag
        self.wake_lock.release()

    def result(self) -> Any:
        """Return the result of the work, or raise its exception."""
        if self.error is not None:
            raise self.error
        return self.value


class ThreadPool:
    """Threads that execute submitted tasks as long as this object is referenced."""

    threads = 0  # until there are queues

    def __init__(self, threads: int) -> None:
        """Start `threads` threads."""
        self.tasks: SimpleQueue[PoolTask | None] = SimpleQueue()
        self.finished_threads: SimpleQueue[None] = SimpleQueue()
        self.threads = threads
        for _ in range(threads):
            _thread.start_new_thread(
                _serve, (self.tasks, self.finished_threads)
            )  # starts a thread completely or not at all
        _pools.add(self)

    def submit(self, work: Callable[[int], Any], k: int) -> PoolTask:
        """Submit work(k), for the function `work` and its argument `k`."""
        task = PoolTask(work, k)
        self.tasks.put(task)
        return task

    def abandon(self, stop: Callable[[], None]) -> None:
        """Call `stop`, discard tasks that have not begun, and wait for running ones, regardless of signals."""
        all_finished = False
        while not all_finished:
            try:
                stop()
                while not self.tasks.empty():
                    self.tasks.get_nowait()
                self.__del__()
                while self.finished_threads.qsize() < self.threads:
                    time.sleep(POLL_INTERVAL_SECONDS / 10.0)
                all_finished = True
            except BaseException:  # a second Ctrl-C: the first one is being handled already
                continue

    def __del__(self) -> None:
        list(
            map(self.tasks.put, (None,) * self.threads)
        )  # one step of the interpreter, so that no signal interrupts it


_pools: WeakSet[ThreadPool] = WeakSet()


def _serve(tasks: SimpleQueue[PoolTask | None], finished_threads: SimpleQueue[None]) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        del task  # and the objects it references, before waiting for the next one
    finished_threads.put(None)


@atexit.register
def _stop_threads() -> None:
    """Stop all threads: none may enter Python while the interpreter finalises."""
    for thread_pool in list(_pools):
        thread_pool.__del__()
        try:
            for _ in range(thread_pool.threads):
                thread_pool.finished_threads.get(timeout=1.0)
        except Empty:  # a thread is still working: it ends with the process
            pass


def wait_for_tasks(tasks: Sequence[PoolTask]) -> None:
    """Wait for `tasks`, then raise a pending interrupt; arrays must outlive the threads that write to them."""
    interrupt: BaseException | None = None
    for task in tasks:
        while not task.done:
            try:
                task.wake_lock.acquire(timeout=POLL_INTERVAL_SECONDS)
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def run_on_threads(
    work: Callable[[int], Any],
    count: int,
    threads: int,
    meanwhile: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Return [work(0), ..., work(count - 1)], computed by new threads.

    Parameters
    ----------
    work
        The function.
    count
        Number of calls.
    threads
        Number of threads.
    meanwhile
        Called regularly by this thread.
    stop
        Called if `meanwhile` or a signal handler raises; then no further call is begun, and the error is raised when
        all running calls have ended.
    """
    tasks = [PoolTask(work, k) for k in range(count)]
    thread_pool = ThreadPool(min(threads, count))
    try:
        for task in tasks:
            thread_pool.tasks.put(task)
        for task in tasks:
            while not task.done:
                task.wake_lock.acquire(timeout=POLL_INTERVAL_SECONDS)
                meanwhile()
    except BaseException:
        thread_pool.abandon(stop)
        raise
    return [task.result() for task in tasks]


@cache
def shared_pool(threads: int) -> ThreadPool:
    """Return the shared pool of `threads` threads."""
    return ThreadPool(threads)


def _forget_threads() -> None:
    """Forget the threads of the parent in a forked child."""
    shared_pool.cache_clear()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
