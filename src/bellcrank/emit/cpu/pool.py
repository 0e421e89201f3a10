"""The threads among which batches are shared out."""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Sequence
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


def settle(others: Sequence[Future[int]]) -> None:
    """Waits, come what may: the arrays must outlive those who still write to them. An interrupt comes afterwards."""
    from concurrent.futures import wait

    interrupt: BaseException | None = None
    while True:
        try:
            wait(others)
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that are all there. They are started by another one, which no signal interrupts: a thread whose start was
    cut short is one that the end of the interpreter waits for, and nobody ends.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # only some need it, and all would wait for its import

    made: SimpleQueue[ThreadPoolExecutor | BaseException] = SimpleQueue()

    def start() -> None:
        try:
            crew = ThreadPoolExecutor(threads, thread_name_prefix="bellcrank")
            all_there = threading.Barrier(threads)
            wait([crew.submit(all_there.wait) for _ in range(threads)])
            made.put(crew)
        except BaseException as error:
            made.put(error)

    _thread.start_new_thread(start, ())  # all of it or nothing, which threading's start() is not
    found = made.get()
    if isinstance(found, BaseException):
        raise found
    return found


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=pool.cache_clear)
