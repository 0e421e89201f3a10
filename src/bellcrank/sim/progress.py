"""A progress bar on a terminal, for whatever takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0  # seconds before anything is shown


@contextmanager
def shown(what: str, progress: Any) -> Iterator[Callable[[float], None] | None]:
    """progress: a function that is told the share done, False for silence, True or None for a bar on a terminal."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    start = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    task = bar.add_task(what, total=1.0)
    visible = False

    def tell(share: float) -> None:
        nonlocal visible
        if not visible and time.monotonic() - start > PATIENCE:
            bar.start()
            visible = True
        bar.update(task, completed=share)

    try:
        yield tell
    finally:
        if visible:
            bar.stop()
