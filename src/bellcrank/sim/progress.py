"""Where runs are, looked at now and then while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.graph import Layout


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
