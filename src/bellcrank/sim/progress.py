"""How far a run is, on a terminal's stderr, for whatever takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.graph import Layout

PATIENCE = 1.0  # seconds before anything is shown
BETWEEN = 0.1  # seconds between two pictures
WIDTH = 30


@dataclass
class Standing:
    """Where the slowest run is, and its step, where it chooses them: one that falls and falls is stiff."""

    t: float = 0.0
    h: float | None = None

    def see(self, t: float, h: float | None) -> None:
        self.t, self.h = t, h

    def __str__(self) -> str:
        return f"at {self.t:.4g} s" + (f", step {self.h:.1e} s" if self.h is not None else "")


@dataclass(frozen=True)
class ProgressTeller:
    """Looks at the states of runs now and then, for whoever wants to know how far they are."""

    layout: Layout
    seconds: float
    chosen: bool  # whether runs choose their steps
    tell: Callable[[float], None] | None
    standing: Standing

    def share(self, state: Any, xp: Any = np) -> float:
        """How far these runs are, on average; what is shown is where the slowest is."""
        live, t, h = (state[self.layout.place(name)] for name in ("live", "t", "h"))
        clock = xp.where(live > 0.0, t, self.seconds)
        slowest = int(clock.argmin())
        self.standing.see(float(t[slowest]), float(h[slowest]) if self.chosen else None)
        return float(clock.mean()) / self.seconds


@contextmanager
def shown(what: str, progress: Any, standing: Standing) -> Iterator[Callable[[float], None] | None]:
    """progress: a function that is told the share done, False for silence, True or None for a bar on a terminal."""
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
        if now - start > PATIENCE and now - last > BETWEEN:
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
