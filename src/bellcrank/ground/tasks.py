"""Digging tasks scored from the ground itself: a trench to dig to depth, and a truck bed to load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellcrank.ground.field import CELL_SIZE, HALF_WIDTH, ROW_POINTS, Array, Ground

MARGIN = 1.0  # m around the rectangle in which mistakes count


@dataclass(frozen=True)
class DigTask:
    """Rectangle on the ground with a depth to dig (m) or a volume to fill in (m3)."""

    name: str
    low: tuple[float, float]  # m, x and y of the lower corner
    high: tuple[float, float]
    depth: float = 0.0
    fill: float = 0.0

    def score(self, ground: Ground) -> float:
        """Return the score of ground `ground`, 0 to 100: work done, less half of the work done outside the task."""
        inside, near = rectangle_mask(self.low, self.high, 0.0), rectangle_mask(self.low, self.high, MARGIN)
        h, cell = ground.heights, CELL_SIZE * CELL_SIZE
        outside = near & ~inside
        if self.depth:
            wanted = float(inside.sum()) * self.depth * cell
            done = float(np.clip(-h[inside], 0.0, self.depth).sum()) * cell
            wrong = float(np.maximum(-h[inside] - self.depth, 0.0).sum() + np.maximum(-h[outside], 0.0).sum()) * cell
        else:
            wanted = self.fill
            done = min(float(np.maximum(h[inside], 0.0).sum()) * cell, self.fill)
            wrong = float(np.maximum(h[outside], 0.0).sum()) * cell
        return 100.0 * min(max((done - 0.5 * wrong) / wanted, 0.0), 1.0)


def rectangle_mask(low: tuple[float, float], high: tuple[float, float], margin: float) -> Array:
    """Return the mask of cells in the rectangle from `low` to `high`, enlarged by `margin` (m)."""
    coordinates = np.arange(ROW_POINTS) * CELL_SIZE - HALF_WIDTH
    x = (coordinates >= low[0] - margin - 1e-9) & (coordinates <= high[0] + margin + 1e-9)
    y = (coordinates >= low[1] - margin - 1e-9) & (coordinates <= high[1] + margin + 1e-9)
    return np.outer(y, x)


TASKS: dict[str, Callable[[], DigTask]] = {
    "trench": lambda: DigTask("trench", (4.6, -0.8), (7.4, 0.8), depth=0.6),
    "truck": lambda: DigTask("truck", (-1.4, 5.0), (2.6, 7.2), fill=3.0),
}
