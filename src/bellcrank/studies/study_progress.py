"""Progress bar of a study with its estimated end, on a terminal's stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

BAR_WIDTH = 30


class StudyProgress:
    """Progress of a study.

    Parameters
    ----------
    runs
        Number of all runs.
    todo
        First and last run of each chunk that is missing.
    progress
        Function that is called with the share done, False for silence, True or None for a bar on a terminal.
    """

    def __init__(self, runs: int, todo: Sequence[tuple[int, int]], progress: Any) -> None:
        self.runs, self.to_do = runs, sum(last - first for first, last in todo)
        self.done_before = runs - self.to_do
        self.finished = 0
        self._callback = progress if callable(progress) else None
        self._shows_bar = progress is not False and self._callback is None and (progress is True or sys.stderr.isatty())
        self._began = time.monotonic()

    def __enter__(self) -> StudyProgress:
        return self

    def count_done(self, runs: int) -> None:
        """Count `runs` that are finished."""
        self.finished += runs
        if self._callback is not None:
            self._callback((self.done_before + self.finished) / self.runs)
        if self._shows_bar:
            sys.stderr.write(f"\r{self}\x1b[K")
            sys.stderr.flush()

    def __str__(self) -> str:
        share = (self.done_before + self.finished) / self.runs
        spent = time.monotonic() - self._began
        rate = self.finished / spent if spent > 0 else 0.0
        left = (self.to_do - self.finished) / rate if rate else 0.0
        end = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        full = round(BAR_WIDTH * share)
        bar = "\u2588" * full + "\u2591" * (BAR_WIDTH - full)
        return f"{bar} {share:4.0%} of {self.runs} runs, {rate:.0f} a second, {left:.0f} s left, until {end}"

    def __exit__(self, *_: object) -> None:
        if self._shows_bar:
            sys.stderr.write("\n")
