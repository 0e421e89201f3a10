"""Progress of runs, sampled while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.graph import Layout


@dataclass
class RunStanding:
    """Time and step size of the slowest run; `h` is None for fixed steps.

    A step size that keeps falling indicates stiffness.
    """

    t: float = 0.0
    h: float | None = None

    def update(self, t: float, h: float | None) -> None:
        """Store the time `t` and the step size `h` of the slowest run."""
        self.t, self.h = t, h

    def __str__(self) -> str:
        return f"at {self.t:.4g} s" + (f", step {self.h:.1e} s" if self.h is not None else "")


@dataclass(frozen=True)
class ProgressReporter:
    """Reports the progress of runs from samples of their states."""

    layout: Layout
    seconds: float
    adaptive: bool  # True for adaptive step sizes
    report: Callable[[float], None] | None
    standing: RunStanding

    def share(self, state: Any, xp: Any = np) -> float:
        """Return the mean completed share of runs, and store the standing of the slowest of them.

        Parameters
        ----------
        state
            States of the runs, (size, runs).
        xp
            Array module of `state`.
        """
        live, t, h = (state[self.layout.place(name)] for name in ("live", "t", "h"))
        clock = xp.where(live > 0.0, t, self.seconds)
        slowest = int(clock.argmin())
        self.standing.update(float(t[slowest]), float(h[slowest]) if self.adaptive else None)
        return float(clock.mean()) / self.seconds
