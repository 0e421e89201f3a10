"""What takes longer than a second: words about it on a terminal's stderr (what is done and since when, for no share of
a compilation is known; or a bar, where one is), and no garbage collector in its way.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bellcrank.errors import InputError, brief

PATIENCE = 1.0  # seconds before anything is shown
BETWEEN = 1.0  # seconds between two looks at the clock
PICTURES = 0.1  # seconds between two pictures of a bar
WIDTH = 30  # of it
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
def shown(what: str, progress: Any, standing: object) -> Iterator[Callable[[float], None] | None]:
    """progress: a function that is told the share done, False for silence, True or None for a bar on a terminal, with
    what is said of the standing.
    """
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, bool):
        raise InputError(f"progress is {brief(progress)}; expected a function of the share done, True, or False.")
    if progress is False or not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    drawn = False

    def tell(share: float) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if now - start > PATIENCE and now - last > PICTURES:
            last, drawn = now, True
            full = round(WIDTH * share)
            left = f", {(now - start) * (1 / share - 1):.0f} s left" if share > 0 else ""
            bar = "\u2588" * full + "\u2591" * (WIDTH - full)
            sys.stderr.write(f"\r{what} {bar} {share:4.0%} {standing}{left}\x1b[K")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if drawn:
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
