"""Digging tasks scored from the ground itself: a trench to dig to depth, and a truck bed to load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellcrank.ground.field import CELL, HALF, ROW, Array, Ground

AROUND = 1.0  # m around the rectangle in which mistakes count


@dataclass(frozen=True)
class Task:
    """Rectangle on the ground with a depth to dig (m) or a volume to fill in (m3)."""

    name: str
    low: tuple[float, float]  # m, x and y of the lower corner
    high: tuple[float, float]
    depth: float = 0.0
    fill: float = 0.0

    def score(self, g: Ground) -> float:
        """Return the score of ground `g`, 0 to 100: work done, less half of the work done outside the task."""
        inside, near = within(self.low, self.high, 0.0), within(self.low, self.high, AROUND)
        h, cell = g.heights, CELL * CELL
        beside = near & ~inside
        if self.depth:
            wanted = float(inside.sum()) * self.depth * cell
            done = float(np.clip(-h[inside], 0.0, self.depth).sum()) * cell
            wrong = float(np.maximum(-h[inside] - self.depth, 0.0).sum() + np.maximum(-h[beside], 0.0).sum()) * cell
        else:
            wanted = self.fill
            done = min(float(np.maximum(h[inside], 0.0).sum()) * cell, self.fill)
            wrong = float(np.maximum(h[beside], 0.0).sum()) * cell
        return 100.0 * min(max((done - 0.5 * wrong) / wanted, 0.0), 1.0)


def within(low: tuple[float, float], high: tuple[float, float], more: float) -> Array:
    """Return the mask of cells in the rectangle from `low` to `high`, enlarged by `more` (m)."""
    at = np.arange(ROW) * CELL - HALF
    x = (at >= low[0] - more - 1e-9) & (at <= high[0] + more + 1e-9)
    y = (at >= low[1] - more - 1e-9) & (at <= high[1] + more + 1e-9)
    return np.outer(y, x)


TASKS: dict[str, Callable[[], Task]] = {
    "trench": lambda: Task("trench", (4.6, -0.8), (7.4, 0.8), depth=0.6),
    "truck": lambda: Task("truck", (-1.4, 5.0), (2.6, 7.2), fill=3.0),
}
