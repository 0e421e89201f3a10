"""Height field of the ground around a machine, which an edge cuts and a bucket carries, pushes and pours out.

There is one field, updated beside the compiled step at its own rate, so that all pages show the same ground; contact.py
computes its effect on the machine. Changes are logged, so that a replay shows the hole at its time. Volume is
conserved: soil missing from the heights is in the bucket. A bucket holds its capacity; soil that a full bucket cuts is
pushed ahead of it. Teeth that do not move cut nothing. Soil above its steepest slope slumps from cell to cell.

Differences from real soil: it does not swell when it is dug, and walls stand as long as they are not too steep.

Digging tasks are scored from the ground itself: a trench to dig to depth, and a truck bed to load.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.ground.soils import SOILS, NamedSoil

Array = np.ndarray[Any, Any]
Place = Sequence[float] | Array
CELL_SIZE, CELLS = 0.2, 104  # m; cells on a side of the square, which has one more height than cells
ROW_POINTS, HALF_WIDTH = CELLS + 1, CELL_SIZE * CELLS / 2
MIN_MOTION, MAX_MOTION = 2e-3, 1.5  # m between two updates: less counts as no motion, more as a jump
HEAP_HEIGHT = 0.02  # m above the level, from which soil counts as poured
SLUMP_ROUNDS, REST_STEP = 6, 1e-3  # slump rounds per update; m of excess step at which soil rests
HEAP_DISTANCE = 0.4  # m in front of the edge, where excess soil is heaped up
KEEP_CLEARANCE = 0.12  # m above the ground, within which a bucket keeps its load
POUR_WIDTH = 0.42  # m, width over which a load falls
POUR_RATE = 1.3  # 1/s, share of the capacity that pours out
MIN_CHANGE = 1e-4  # m, smaller changes are not reported
MAX_LOGGED_CHANGES = 40_000  # logged changes: ten minutes of digging at 60 Hz


@dataclass(frozen=True)
class Tool:
    """Digging bucket: directions of edge and mouth in its body's axes, width (m) and capacity (m3)."""

    across: tuple[float, float, float]
    mouth: tuple[float, float, float]
    width: float
    capacity: float
    teeth: float = 0.87  # rad, direction of the teeth, from the mouth towards the line from pin to teeth
    deep: float = 0.6  # depth, as a share of the distance from pin to teeth

    def teeth_direction(self, tip: Sequence[float]) -> Array:
        """Return the direction of the teeth in the body's axes; `tip` is the middle of the edge."""
        along = np.asarray(tip, float) / np.linalg.norm(tip)
        direction: Array = math.cos(self.teeth) * np.asarray(self.mouth) + math.sin(self.teeth) * along
        return direction

    def load_centre(self, tip: Sequence[float], share: float) -> Array:
        """Return the centre of the load in the body's axes: at the back when nearly empty, near the middle when full.

        Parameters
        ----------
        tip
            Middle of the edge in the body's axes, m.
        share
            Filled share of the capacity.
        """
        k = float(np.linalg.norm(tip))
        return 0.52 * np.asarray(tip, float) - (1.0 - 0.45 * min(share, 1.0)) * self.deep * k * np.asarray(self.mouth)


@dataclass(frozen=True)
class Patch:
    """Changed heights by cell; `full_state` marks a full state, in which all other cells are level."""

    t: float
    load: float  # m3 in the bucket
    dug: float  # m3 cut out of the ground so far
    cells: dict[int, float] = field(default_factory=dict)
    whole: bool = False

    def merged_with(self, later: Patch) -> Patch:
        """Return this patch and a `later` one as one, for a client that has seen neither."""
        return later if later.whole else Patch(later.t, later.load, later.dug, self.cells | later.cells, self.whole)


class Ground:
    """Ground as a height field; x and y are the world's, heights are relative to the level of the ground.

    Parameters
    ----------
    tool
        Bucket that digs.
    level
        Height of the undisturbed ground in the world, m.
    soil
        Soil; loam by default.
    """

    def __init__(self, tool: Tool, level: float, soil: NamedSoil = SOILS["loam"]) -> None:
        self.tool, self.level, self.soil = tool, level, soil
        self._lock = threading.RLock()
        self.heal()

    def heal(self) -> None:
        """Reset the ground to its undisturbed state."""
        with self._lock:
            self.heights = np.zeros((ROW_POINTS, ROW_POINTS))
            self._reported = np.zeros((ROW_POINTS, ROW_POINTS))
            self.load = self.dug = 0.0
            self._slump_window: tuple[int, int, int, int] | None = None
            self.begin()

    @property
    def balance(self) -> float:
        """Difference of the soil volume from the initial one, m3: zero up to rounding."""
        return float(self.heights.sum()) * CELL_SIZE * CELL_SIZE + self.load

    def set_soil(self, soil: NamedSoil) -> None:
        """Change the ground's soil to `soil` from now on."""
        with self._lock:
            self.soil = soil
            self._slump_window = (0, ROW_POINTS, 0, ROW_POINTS)

    def begin(self) -> None:
        """Restart the time and the log of changes; the hole stays."""
        with self._lock:
            self._base, self._log = self._reported.copy(), deque[Patch]()
            self._last: Array | None = None
            self._t = 0.0
            self._was_reset = True

    # -- digging

    def work(self, t: float, tip: Place, across: Place, mouth: float, load_at: Place) -> None:
        """Move the edge to a new position: cut, spill and slump.

        Parameters
        ----------
        t
            Time, s.
        tip
            Middle of the edge in the world, m.
        across
            Direction of the edge in the world.
        mouth
            Upward component of the mouth's direction, -1 to 1.
        load_at
            Point in the world where a spilled load falls, m.
        """
        with self._lock:
            position = np.asarray(tip, float) - (0.0, 0.0, self.level)
            dt, self._t = min(max(t - self._t, 0.0), 0.1), t
            distance = math.inf if self._last is None else float(np.linalg.norm(position - self._last))
            if distance > MAX_MOTION:
                self._last = position
            elif distance > MIN_MOTION:
                assert self._last is not None
                steps = math.ceil(distance / (CELL_SIZE / 2))
                displacement = position - self._last
                cut = [
                    self._cut(self._last + displacement * (k / steps), across, displacement)
                    for k in range(1, steps + 1)
                ]
                if any(cut):
                    self._mark_unstable((position + self._last) / 2, distance / 2 + self.tool.width / 2 + 3 * CELL_SIZE)
                self._last = position
            self._spill(position, mouth, load_at, dt)
            self._slump(SLUMP_ROUNDS)

    def _cut(self, p: Array, across: Place, displacement: Array) -> bool:
        """Cut soil at one position of the edge and return whether there was any; heap up the excess ahead."""
        if p[2] > self.heights.max():
            return False
        along = np.linspace(-0.5, 0.5, 2 * math.ceil(self.tool.width / CELL_SIZE) + 1) * self.tool.width
        x, y = p[0] + along * across[0], p[1] + along * across[1]
        inside = (np.abs(x) <= HALF_WIDTH) & (np.abs(y) <= HALF_WIDTH)
        cells = np.unique(self._cell(y[inside]) * ROW_POINTS + self._cell(x[inside]))
        h = self.heights.reshape(-1)
        excess = np.maximum(h[cells] - p[2], 0.0)
        volume = float(excess.sum()) * CELL_SIZE * CELL_SIZE
        if volume <= 0.0:
            return False
        loaded_volume = min(volume, max(self.tool.capacity - self.load, 0.0))
        heap_point = self._heap_point(p, displacement) if volume > loaded_volume else None
        h[cells] -= excess if heap_point is not None else (loaded_volume / volume) * excess
        self.load += loaded_volume
        self.dug += loaded_volume
        if heap_point is not None:
            self._heap(heap_point, HEAP_DISTANCE, volume - loaded_volume)
        return True

    def _heap_point(self, p: Array, displacement: Array) -> Array | None:
        """Return the point to which soil is pushed, or None if the edge moves straight up or down."""
        horizontal_length = math.hypot(displacement[0], displacement[1])
        if horizontal_length < 0.3 * float(np.linalg.norm(displacement)):
            return None
        return np.asarray(p + displacement * (1.5 * HEAP_DISTANCE / horizontal_length))

    def _heap(self, centre: Place, width: float, volume: float) -> None:
        """Add a volume of soil around a point."""
        rows, columns = self._window(centre, 2.5 * width)
        dx = np.arange(ROW_POINTS)[columns] * CELL_SIZE - HALF_WIDTH - centre[0]
        dy = np.arange(ROW_POINTS)[rows] * CELL_SIZE - HALF_WIDTH - centre[1]
        share = np.exp(-(dx[None, :] ** 2 + dy[:, None] ** 2) / (2.0 * width * width)) + 1e-300
        self.heights[rows, columns] += share * (volume / share.sum() / (CELL_SIZE * CELL_SIZE))
        self._mark_unstable(centre, 2.5 * width + 3 * CELL_SIZE)

    def _spill(self, tip: Array, mouth: float, load_at: Place, dt: float) -> None:
        if self.load <= 0.0:
            return
        holding = min(max((mouth + 0.2) / 0.65, 0.0), 1.0)
        # A heap does not hold the load in the bucket.
        lowest_edge = min(float(self.heights[self._cell(tip[1]), self._cell(tip[0])]), 0.0)
        buried = tip[2] < lowest_edge + KEEP_CLEARANCE
        held_volume = self.tool.capacity * (1.0 if buried else holding * holding * (3.0 - 2.0 * holding))
        lost = min(self.load - held_volume, POUR_RATE * self.tool.capacity * dt)
        if lost <= 0.0:
            return
        self.load -= lost
        self._heap(load_at, POUR_WIDTH, lost)

    def settle(self, most: int = 10_000) -> None:
        """Slump until the soil is at rest, in at most `most` rounds."""
        with self._lock:
            for _ in range(most):
                if self._slump_window is None:
                    return
                self._slump(SLUMP_ROUNDS)

    def _mark_unstable(self, centre: Place, r: float) -> None:
        """Mark the area around a point as able to slump."""
        rows, columns = self._window(centre, r)
        new = rows.start, rows.stop, columns.start, columns.stop
        a, b, c, d = self._slump_window or new
        self._slump_window = min(a, new[0]), max(b, new[1]), min(c, new[2]), max(d, new[3])

    def _slump(self, times: int) -> None:
        """Let soil that is too steep run down from cell to cell."""
        if self._slump_window is None:
            return
        a, b, c, d = self._slump_window
        h, (repose, wall) = self.heights[a:b, c:d], self.soil.slopes
        for _ in range(times):
            moved = np.zeros(h.shape, bool)
            for x, m in ((h, moved), (h.T, moved.T)):
                step, higher = x[1:] - x[:-1], np.maximum(x[1:], x[:-1])
                max_step = np.where(higher > HEAP_HEIGHT, repose, wall) * CELL_SIZE
                flow = 0.25 * (step - np.minimum(np.maximum(step, -max_step), max_step))
                x[:-1] += flow
                x[1:] -= flow
                m[1:] |= np.abs(flow) > 0.25 * REST_STEP
            rows, columns = np.flatnonzero(moved.any(1)), np.flatnonzero(moved.any(0))
            if not rows.size:
                self._slump_window = None
                return
        # The next rounds only visit the neighbourhood of moving soil.
        self._slump_window = (
            max(a + int(rows[0]) - 3, 0), min(a + int(rows[-1]) + 3, ROW_POINTS),
            max(c + int(columns[0]) - 3, 0), min(c + int(columns[-1]) + 3, ROW_POINTS),
        )  # fmt: skip

    def _window(self, centre: Place, r: float) -> tuple[slice, slice]:
        """Return rows and columns around a point, at least one of each."""
        x, y = (slice(int(self._cell(c - r)), int(self._cell(c + r)) + 1) for c in (centre[0], centre[1]))
        return y, x

    def height(self, x: Any, y: Any) -> Any:
        """Return the ground's height at (`x`, `y`) relative to its level, m, interpolated bilinearly."""
        x, y = (np.clip((np.asarray(c) + HALF_WIDTH) / CELL_SIZE, 0.0, CELLS - 1e-9) for c in (x, y))
        i, j, h = x.astype(int), y.astype(int), self.heights
        a, b = x - i, y - j
        near, far = (1 - a) * h[j, i] + a * h[j, i + 1], (1 - a) * h[j + 1, i] + a * h[j + 1, i + 1]
        return (1 - b) * near + b * far

    @staticmethod
    def _cell(x: Any) -> Any:
        return np.clip(np.rint((np.asarray(x) + HALF_WIDTH) / CELL_SIZE), 0, CELLS).astype(int)

    # -- reporting changes

    def take_changes(self) -> Patch | None:
        """Return the changes since the last call, or None."""
        with self._lock:
            changed = np.flatnonzero(np.abs(self.heights - self._reported) > MIN_CHANGE)
            last = self._log[-1] if self._log else None
            if not (changed.size or self._was_reset) and last and (last.load, last.dug) == (self.load, self.dug):
                return None
            values = self.heights.reshape(-1)[changed]
            self._reported.reshape(-1)[changed] = values
            patch = Patch(self._t, self.load, self.dug, dict(zip(changed.tolist(), values.tolist(), strict=True)))
            self._log.append(patch)
            while len(self._log) > MAX_LOGGED_CHANGES:
                _apply_patch(self._base, self._log.popleft())
            was_reset, self._was_reset = self._was_reset, False
            return self._full_patch() if was_reset else patch

    def full_state(self) -> Patch:
        """Return the full state at the last call of `take_changes`."""
        with self._lock:
            return self._full_patch()

    def _full_patch(self) -> Patch:
        h = self._reported.reshape(-1)
        return Patch(self._t, self.load, self.dug, {int(k): float(h[k]) for k in np.flatnonzero(h)}, whole=True)

    def history(self, begin: float, end: float) -> tuple[Array, list[Patch]]:
        """Return the heights at time `begin` and the changes from then to time `end`."""
        with self._lock:
            base, later = self._base.copy(), list[Patch]()
            for patch in self._log:
                if patch.t <= begin:
                    _apply_patch(base, patch)
                    later = [Patch(begin, patch.load, patch.dug)]
                elif patch.t <= end:
                    later.append(patch)
            return base, later


def _apply_patch(heights: Array, patch: Patch) -> None:
    flat = heights.reshape(-1)
    flat[list(patch.cells)] = list(patch.cells.values())


TASK_MARGIN = 1.0  # m around the rectangle in which mistakes count


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
        inside, near = rectangle_mask(self.low, self.high, 0.0), rectangle_mask(self.low, self.high, TASK_MARGIN)
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
