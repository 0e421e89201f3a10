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

DISPLAY_DELAY_SECONDS = 1.0  # s before anything is shown
MESSAGE_INTERVAL_SECONDS = 1.0  # s between two updates of a message
BAR_INTERVAL_SECONDS = 0.1  # s between two updates of a bar
BAR_WIDTH_CHARACTERS = 30  # characters of a bar
_inside = threading.local()  # work inside of work that is displayed displays nothing itself


def _show(text: str) -> None:
    """Replace the present line of the terminal by `text`."""
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


@contextmanager
def progress_message(what: str, progress: Any = None) -> Iterator[None]:
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
    finished, displayed = threading.Event(), threading.Event()
    message_thread = threading.Thread(target=_repeat_message, args=(what, finished, displayed), daemon=True)
    _inside.busy = True
    message_thread.start()
    try:
        yield
    finally:
        _inside.busy = False
        finished.set()
        message_thread.join()
        if displayed.is_set():
            _show("")


@contextmanager
def progress_bar(what: str, progress: Any, status: object) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that reports the share done, or None if nothing is shown.

    Parameters
    ----------
    what
        The work.
    progress
        A function of the share done, False for silence, True or None for a bar on a terminal.
    status
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

    def update(share: float) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if now - start > DISPLAY_DELAY_SECONDS and now - last > BAR_INTERVAL_SECONDS:
            last, drawn = now, True
            left = f", {(now - start) * (1 / share - 1):.0f} s left" if share > 0 else ""
            _show(f"{what} {bar(share)} {status}{left}")

    try:
        yield update
    finally:
        if drawn:
            _show("")


def bar(share: float) -> str:
    """Return a bar of characters for a `share` done, with its percentage."""
    full = round(BAR_WIDTH_CHARACTERS * share)
    return "\u2588" * full + "\u2591" * (BAR_WIDTH_CHARACTERS - full) + f" {share:4.0%}"


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable the garbage collector, which would traverse a growing graph repeatedly without finding garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _repeat_message(what: str, finished: threading.Event, displayed: threading.Event) -> None:
    """Show the work and its duration until it is `finished`."""
    began, wait = time.monotonic(), DISPLAY_DELAY_SECONDS
    while not finished.wait(wait):
        displayed.set()
        wait = MESSAGE_INTERVAL_SECONDS
        _show(f"{what} ... {time.monotonic() - began:.0f} s")
