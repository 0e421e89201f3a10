"""Deadline table that is updated in place while a drive runs; without a terminal, one line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.live import Live
from rich.text import Text

from bellcrank.cli import screen
from bellcrank.quoting import visible
from bellcrank.sim.realtime.deadline_text import one_line, summary

LINE_SECONDS = 5.0  # s between lines


class LiveLine:
    """Context manager; call it a few times per second with the time of the run, its status and its report."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.due = clock, clock() + LINE_SECONDS
        console = screen.stdout_console()
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> LiveLine:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, t: float, word: str, report: Callable[[], dict[str, Any]]) -> None:
        """Update the table, or print a line when it is due."""
        if self.live is not None:
            self.live.update(Text(visible(f"\n{t:.1f} s  {word}\n{summary(report())}")), refresh=True)
        elif self.clock() >= self.due:
            self.due += LINE_SECONDS
            screen.lines(f"{t:.0f} s  {word}: {one_line(report())}")
