"""Height field of the ground around a machine, which an edge cuts and a bucket carries, pushes and pours out.

There is one field, updated beside the compiled step at its own rate, so that all pages show the same ground; contact.py
computes its effect on the machine. Changes are logged, so that a replay shows the hole at its time. Volume is
conserved: soil missing from the heights is in the bucket. A bucket holds its capacity; soil that a full bucket cuts is
pushed ahead of it. Teeth that do not move cut nothing. Soil above its steepest slope slumps from cell to cell.

Departs: soil does not swell when it is dug, and walls stand as long as they are not too steep.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.ground.soils import SOILS, NamedSoil

Array = np.ndarray[Any, Any]
Place = Sequence[float] | Array
CELL, CELLS = 0.2, 104  # m; cells on a side of the square, which has one more height than cells
ROW, HALF = CELLS + 1, CELL * CELLS / 2
STILL, JUMP = 2e-3, 1.5  # m between two updates: less counts as no motion, more as a jump
HEAP = 0.02  # m above the level, from which soil counts as poured
SWEEPS, RESTED = 6, 1e-3  # slump rounds per update; m of excess step at which soil rests
AHEAD = 0.4  # m in front of the edge, where excess soil is heaped up
OVER = 0.12  # m above the ground, within which a bucket keeps its load
SPREAD = 0.42  # m, width over which a load falls
POURS = 1.3  # 1/s, share of the capacity that pours out
LEAST_CHANGE = 1e-4  # m, smaller changes are not reported
MEMORY = 40_000  # logged changes: ten minutes of digging at 60 Hz


@dataclass(frozen=True)
class Tool:
    """Digging bucket: directions of edge and mouth in its body's axes, width (m) and capacity (m3)."""

    across: tuple[float, float, float]
    mouth: tuple[float, float, float]
    width: float
    capacity: float
    teeth: float = 0.87  # rad, direction of the teeth, from the mouth towards the line from pin to teeth
    deep: float = 0.6  # depth, as a share of the distance from pin to teeth

    def pointing(self, tip: Sequence[float]) -> Array:
        """Return the direction of the teeth in the body's axes; `tip` is the middle of the edge."""
        along = np.asarray(tip, float) / np.linalg.norm(tip)
        found: Array = math.cos(self.teeth) * np.asarray(self.mouth) + math.sin(self.teeth) * along
        return found

    def centre(self, tip: Sequence[float], share: float) -> Array:
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
    """Changed heights by cell; `whole` marks a full state, in which all other cells are level."""

    t: float
    load: float  # m3 in the bucket
    dug: float  # m3 cut out of the ground so far
    cells: dict[int, float] = field(default_factory=dict)
    whole: bool = False

    def then(self, later: Patch) -> Patch:
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
            self.heights = np.zeros((ROW, ROW))
            self._told = np.zeros((ROW, ROW))
            self.load = self.dug = 0.0
            self._loose: tuple[int, int, int, int] | None = None
            self.begin()

    @property
    def balance(self) -> float:
        """Difference of the soil volume from the initial one, m3: zero up to rounding."""
        return float(self.heights.sum()) * CELL * CELL + self.load

    def become(self, soil: NamedSoil) -> None:
        """Change the ground's soil to `soil` from now on."""
        with self._lock:
            self.soil = soil
            self._loose = (0, ROW, 0, ROW)

    def begin(self) -> None:
        """Restart the time and the log of changes; the hole stays."""
        with self._lock:
            self._base, self._log = self._told.copy(), deque[Patch]()
            self._last: Array | None = None
            self._t = 0.0
            self._healed = True

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
            now = np.asarray(tip, float) - (0.0, 0.0, self.level)
            dt, self._t = min(max(t - self._t, 0.0), 0.1), t
            way = math.inf if self._last is None else float(np.linalg.norm(now - self._last))
            if way > JUMP:
                self._last = now
            elif way > STILL:
                assert self._last is not None
                steps = math.ceil(way / (CELL / 2))
                gone = now - self._last
                cut = [self._cut(self._last + gone * (k / steps), across, gone) for k in range(1, steps + 1)]
                if any(cut):
                    self._disturbed((now + self._last) / 2, way / 2 + self.tool.width / 2 + 3 * CELL)
                self._last = now
            self._spill(now, mouth, load_at, dt)
            self._slump(SWEEPS)

    def _cut(self, p: Array, across: Place, way: Array) -> bool:
        """Cut soil at one position of the edge and return whether there was any; heap up the excess ahead."""
        if p[2] > self.heights.max():
            return False
        along = np.linspace(-0.5, 0.5, 2 * math.ceil(self.tool.width / CELL) + 1) * self.tool.width
        x, y = p[0] + along * across[0], p[1] + along * across[1]
        inside = (np.abs(x) <= HALF) & (np.abs(y) <= HALF)
        cells = np.unique(self._cell(y[inside]) * ROW + self._cell(x[inside]))
        h = self.heights.reshape(-1)
        over = np.maximum(h[cells] - p[2], 0.0)
        volume = float(over.sum()) * CELL * CELL
        if volume <= 0.0:
            return False
        taken = min(volume, max(self.tool.capacity - self.load, 0.0))
        ahead = self._ahead(p, way) if volume > taken else None
        h[cells] -= over if ahead is not None else (taken / volume) * over
        self.load += taken
        self.dug += taken
        if ahead is not None:
            self._heap(ahead, AHEAD, volume - taken)
        return True

    def _ahead(self, p: Array, way: Array) -> Array | None:
        """Return the point to which soil is pushed, or None if the edge moves straight up or down."""
        far = math.hypot(way[0], way[1])
        return None if far < 0.3 * float(np.linalg.norm(way)) else p + way * (1.5 * AHEAD / far)

    def _heap(self, at: Place, wide: float, volume: float) -> None:
        """Add a volume of soil around a point."""
        rows, columns = self._window(at, 2.5 * wide)
        dx = np.arange(ROW)[columns] * CELL - HALF - at[0]
        dy = np.arange(ROW)[rows] * CELL - HALF - at[1]
        share = np.exp(-(dx[None, :] ** 2 + dy[:, None] ** 2) / (2.0 * wide * wide)) + 1e-300
        self.heights[rows, columns] += share * (volume / share.sum() / (CELL * CELL))
        self._disturbed(at, 2.5 * wide + 3 * CELL)

    def _spill(self, tip: Array, mouth: float, load_at: Place, dt: float) -> None:
        if self.load <= 0.0:
            return
        x = min(max((mouth + 0.2) / 0.65, 0.0), 1.0)
        below = min(
            float(self.heights[self._cell(tip[1]), self._cell(tip[0])]), 0.0
        )  # a heap does not hold the load in the bucket
        buried = tip[2] < below + OVER
        holds = self.tool.capacity * (1.0 if buried else x * x * (3.0 - 2.0 * x))
        lost = min(self.load - holds, POURS * self.tool.capacity * dt)
        if lost <= 0.0:
            return
        self.load -= lost
        self._heap(load_at, SPREAD, lost)

    def settle(self, most: int = 10_000) -> None:
        """Slump until the soil is at rest, in at most `most` rounds."""
        with self._lock:
            for _ in range(most):
                if self._loose is None:
                    return
                self._slump(SWEEPS)

    def _disturbed(self, at: Place, r: float) -> None:
        """Mark the area around a point as able to slump."""
        rows, columns = self._window(at, r)
        new = rows.start, rows.stop, columns.start, columns.stop
        a, b, c, d = self._loose or new
        self._loose = min(a, new[0]), max(b, new[1]), min(c, new[2]), max(d, new[3])

    def _slump(self, times: int) -> None:
        """Let soil that is too steep run down from cell to cell."""
        if self._loose is None:
            return
        a, b, c, d = self._loose
        h, (repose, wall) = self.heights[a:b, c:d], self.soil.slopes
        for _ in range(times):
            moved = np.zeros(h.shape, bool)
            for x, m in ((h, moved), (h.T, moved.T)):
                step, high = x[1:] - x[:-1], np.maximum(x[1:], x[:-1])
                most = np.where(high > HEAP, repose, wall) * CELL
                flow = 0.25 * (step - np.minimum(np.maximum(step, -most), most))
                x[:-1] += flow
                x[1:] -= flow
                m[1:] |= np.abs(flow) > 0.25 * RESTED
            rows, columns = np.flatnonzero(moved.any(1)), np.flatnonzero(moved.any(0))
            if not rows.size:
                self._loose = None
                return
        # The next rounds only visit the neighbourhood of moving soil.
        self._loose = (
            max(a + int(rows[0]) - 3, 0), min(a + int(rows[-1]) + 3, ROW),
            max(c + int(columns[0]) - 3, 0), min(c + int(columns[-1]) + 3, ROW),
        )  # fmt: skip

    def _window(self, at: Place, r: float) -> tuple[slice, slice]:
        """Return rows and columns around a point, at least one of each."""
        spans = []
        for c in (at[1], at[0]):
            low, high = self._cell(c - r), self._cell(c + r)
            spans.append(slice(int(low), int(high) + 1))
        return spans[0], spans[1]

    def height(self, x: Any, y: Any) -> Any:
        """Return the ground's height at (`x`, `y`) relative to its level, m, interpolated bilinearly."""
        x, y = (np.clip((np.asarray(c) + HALF) / CELL, 0.0, CELLS - 1e-9) for c in (x, y))
        i, j, h = x.astype(int), y.astype(int), self.heights
        a, b = x - i, y - j
        near, far = (1 - a) * h[j, i] + a * h[j, i + 1], (1 - a) * h[j + 1, i] + a * h[j + 1, i + 1]
        return (1 - b) * near + b * far

    @staticmethod
    def _cell(x: Any) -> Any:
        return np.clip(np.rint((np.asarray(x) + HALF) / CELL), 0, CELLS).astype(int)

    # -- reporting changes

    def news(self) -> Patch | None:
        """Return the changes since the last call, or None."""
        with self._lock:
            changed = np.flatnonzero(np.abs(self.heights - self._told) > LEAST_CHANGE)
            last = self._log[-1] if self._log else None
            if not (changed.size or self._healed) and last and (last.load, last.dug) == (self.load, self.dug):
                return None
            values = self.heights.reshape(-1)[changed]
            self._told.reshape(-1)[changed] = values
            made = Patch(self._t, self.load, self.dug, dict(zip(changed.tolist(), values.tolist(), strict=True)))
            self._log.append(made)
            while len(self._log) > MEMORY:
                _laid(self._base, self._log.popleft())
            anew, self._healed = self._healed, False
            return self._whole() if anew else made

    def whole(self) -> Patch:
        """Return the full state at the last call of `news`."""
        with self._lock:
            return self._whole()

    def _whole(self) -> Patch:
        h = self._told.reshape(-1)
        return Patch(self._t, self.load, self.dug, {int(k): float(h[k]) for k in np.flatnonzero(h)}, whole=True)

    def between(self, begin: float, end: float) -> tuple[Array, list[Patch]]:
        """Return the heights at time `begin` and the changes from then to time `end`."""
        with self._lock:
            base, later = self._base.copy(), list[Patch]()
            for patch in self._log:
                if patch.t <= begin:
                    _laid(base, patch)
                    later = [Patch(begin, patch.load, patch.dug)]
                elif patch.t <= end:
                    later.append(patch)
            return base, later


def _laid(heights: Array, patch: Patch) -> None:
    flat = heights.reshape(-1)
    flat[list(patch.cells)] = list(patch.cells.values())
