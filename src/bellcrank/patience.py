"""A word on a terminal's stderr about what takes longer than a second and has no share done, as compiling has none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE = 1.0  # seconds before anything is shown
BETWEEN = 1.0  # seconds between two looks at the clock
_inside = threading.local()  # what has begun inside of something that is told already says nothing of its own


@contextmanager
def said(what: str, progress: Any = None) -> Iterator[None]:
    """progress: False for silence, True or None for a word and the seconds on a terminal; of a function that is told
    the share done there is nothing to tell.
    """
    if not (progress is None or progress is True) or not sys.stderr.isatty() or getattr(_inside, "busy", False):
        yield
        return
    over = threading.Event()
    teller = _Teller(what, over)
    _inside.busy = True
    teller.start()
    try:
        yield
    finally:
        _inside.busy = False
        over.set()
        teller.join()
        if teller.told:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def told(words: Callable[..., str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Of a function: it is said in these words, made of its arguments, what it does."""

    def around(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            with said(words(*args, **named)):
                return function(*args, **named)

        return call

    return around


class _Teller(threading.Thread):
    """Says what is being done, and for how long already."""

    def __init__(self, what: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.what, self.over, self.told = what, over, False

    def run(self) -> None:
        began, wait = time.monotonic(), PATIENCE
        while not self.over.wait(wait):
            self.told, wait = True, BETWEEN
            sys.stderr.write(f"\r{self.what} ... {time.monotonic() - began:.0f} s\x1b[K")
            sys.stderr.flush()
