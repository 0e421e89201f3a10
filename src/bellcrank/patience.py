"""What takes longer than a second and has no share done, as compiling has none: a word about it on a terminal's stderr,
and no garbage collector in its way.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which goes through a growing graph again and again and finds nothing to take."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


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
