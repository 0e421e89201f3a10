"""Progress display for work that takes longer than a second, and a pause of the garbage collector.

On a terminal's stderr it shows the current work and its duration (a compilation has no known share done), or a bar
where the share is known.
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

PATIENCE = 1.0  # s before anything is shown
BETWEEN = 1.0  # s between two updates of a message
PICTURES = 0.1  # s between two updates of a bar
WIDTH = 30  # characters of a bar
_inside = threading.local()  # work inside of work that is displayed displays nothing itself


@contextmanager
def said(what: str, progress: Any = None) -> Iterator[None]:
    """Show a message and the elapsed seconds on a terminal while the block runs.

    Parameters
    ----------
    what
        The work.
    progress
        True or None for a message; False, or a function (which needs the share done), for none.
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
    """Yield a function that reports the share done, or None if nothing is shown.

    Parameters
    ----------
    what
        The work.
    progress
        A function of the share done, False for silence, True or None for a bar on a terminal.
    standing
        Status whose text is printed beside the bar.
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
    """Disable the garbage collector, which would traverse a growing graph repeatedly without finding garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Teller(threading.Thread):
    """Thread that prints the work and its duration."""

    def __init__(self, what: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.what, self.over, self.told = what, over, False

    def run(self) -> None:
        began, wait = time.monotonic(), PATIENCE
        while not self.over.wait(wait):
            self.told, wait = True, BETWEEN
            sys.stderr.write(f"\r{self.what} ... {time.monotonic() - began:.0f} s\x1b[K")
            sys.stderr.flush()
