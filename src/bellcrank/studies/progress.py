"""Progress bar of a study with its estimated end, on a terminal's stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

WIDTH = 30


class Progress:
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
        self.runs, self.left = runs, sum(last - first for first, last in todo)
        self.before = runs - self.left
        self.there = 0
        self._tell = progress if callable(progress) else None
        self._drawn = progress is not False and self._tell is None and (progress is True or sys.stderr.isatty())
        self._began = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def done(self, runs: int) -> None:
        """Count `runs` that are finished."""
        self.there += runs
        if self._tell is not None:
            self._tell((self.before + self.there) / self.runs)
        if self._drawn:
            sys.stderr.write(f"\r{self}\x1b[K")
            sys.stderr.flush()

    def __str__(self) -> str:
        share = (self.before + self.there) / self.runs
        spent = time.monotonic() - self._began
        rate = self.there / spent if spent > 0 else 0.0
        left = (self.left - self.there) / rate if rate else 0.0
        end = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        full = round(WIDTH * share)
        bar = "\u2588" * full + "\u2591" * (WIDTH - full)
        return f"{bar} {share:4.0%} of {self.runs} runs, {rate:.0f} a second, {left:.0f} s left, until {end}"

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\n")
