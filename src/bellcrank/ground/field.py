"""The ground around a machine: heights on a grid, which an edge cuts, a bucket carries, pushes and pours out again.

There is one of it, beside the compiled step and at its own rate, so that all pages show the same; what it does to the
machine is in contact.py. It is remembered, so that a replay shows the hole of its time. Nothing is lost or won: what
the heights lack is in the bucket. A bucket holds its capacity; what a full one still cuts is pushed ahead of it. Teeth
that do not move cut nothing. What is steeper than the soil stands runs down, from neighbour to neighbour.

Departs: soil takes as much room dug as it did before (no swell), and walls stand as long as they are not too steep.
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
CELL, CELLS = 0.2, 104  # m; so many on a side of the square, with one more height than cells
ROW, HALF = CELLS + 1, CELL * CELLS / 2
STILL, JUMP = 2e-3, 1.5  # m between two looks: less is no motion, more is no way that was gone
HEAP = 0.02  # m above the level: poured
SWEEPS, RESTED = 6, 1e-3  # of what runs down in one look; m too high from neighbour to neighbour, at which it rests
AHEAD = 0.4  # m: how far in front of the edge what finds no room is heaped up
OVER = 0.12  # m above the ground, within which a bucket does not lose what it has
SPREAD = 0.42  # m, how wide a load falls
POURS = 1.3  # of the capacity, a second
LEAST_CHANGE = 1e-4  # m: smaller changes are not told
MEMORY = 40_000  # changes that are remembered: ten minutes of digging at sixty looks a second


@dataclass(frozen=True)
class Tool:
    """A bucket that digs: directions in its body's axes, along the edge and out of its mouth; m and m3."""

    across: tuple[float, float, float]
    mouth: tuple[float, float, float]
    width: float
    capacity: float
    teeth: float = 0.87  # rad, from the mouth's direction towards the line from pin to teeth: where they point
    deep: float = 0.6  # how deep it is, as a share of the distance from pin to teeth

    def pointing(self, tip: Sequence[float]) -> Array:
        """Where the teeth point, in its body's axes; tip: the middle of the edge."""
        along = np.asarray(tip, float) / np.linalg.norm(tip)
        found: Array = math.cos(self.teeth) * np.asarray(self.mouth) + math.sin(self.teeth) * along
        return found

    def centre(self, tip: Sequence[float], share: float) -> Array:
        """Of what it carries: first at its back, then up to the middle of it."""
        k = float(np.linalg.norm(tip))
        return 0.52 * np.asarray(tip, float) - (1.0 - 0.45 * min(share, 1.0)) * self.deep * k * np.asarray(self.mouth)


@dataclass(frozen=True)
class Patch:
    """Heights that changed, by cell. whole: all others are level."""

    t: float
    load: float  # m3 in the bucket
    dug: float  # m3 cut out of the ground so far
    cells: dict[int, float] = field(default_factory=dict)
    whole: bool = False

    def then(self, later: Patch) -> Patch:
        """This patch and a later one as one, for who has seen neither."""
        return later if later.whole else Patch(later.t, later.load, later.dug, self.cells | later.cells, self.whole)


class Ground:
    """x and y are the world's, heights against the level of the ground."""

    def __init__(self, tool: Tool, level: float, soil: NamedSoil = SOILS["loam"]) -> None:
        self.tool, self.level, self.soil = tool, level, soil
        self._lock = threading.RLock()
        self.heal()

    def heal(self) -> None:
        """Back at the start: nothing has been dug."""
        with self._lock:
            self.heights = np.zeros((ROW, ROW))
            self._told = np.zeros((ROW, ROW))
            self.load = self.dug = 0.0
            self._loose: tuple[int, int, int, int] | None = None
            self.begin()

    @property
    def balance(self) -> float:
        """m3 of earth, as far as it differs from what was there: zero, but for rounding."""
        return float(self.heights.sum()) * CELL * CELL + self.load

    def become(self, soil: NamedSoil) -> None:
        """From now on the ground is of another soil."""
        with self._lock:
            self.soil = soil
            self._loose = (0, ROW, 0, ROW)

    def begin(self) -> None:
        """Time begins anew; the hole stays."""
        with self._lock:
            self._base, self._log = self._told.copy(), deque[Patch]()
            self._last: Array | None = None
            self._t = 0.0
            self._healed = True

    # -- digging

    def work(self, t: float, tip: Place, across: Place, mouth: float, load_at: Place) -> None:
        """The middle of the edge is at `tip` now, in the world's axes; mouth: how far it looks up, -1 to 1."""
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
        """Whether it found any earth. What the bucket has no room for is heaped up ahead."""
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
        """Where soil is pushed to; None: nowhere, for it goes straight up or down."""
        far = math.hypot(way[0], way[1])
        return None if far < 0.3 * float(np.linalg.norm(way)) else p + way * (1.5 * AHEAD / far)

    def _heap(self, at: Place, wide: float, volume: float) -> None:
        """Lays earth around a place."""
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
        below = min(float(self.heights[self._cell(tip[1]), self._cell(tip[0])]), 0.0)  # a heap keeps nothing in it
        buried = tip[2] < below + OVER
        holds = self.tool.capacity * (1.0 if buried else x * x * (3.0 - 2.0 * x))
        lost = min(self.load - holds, POURS * self.tool.capacity * dt)
        if lost <= 0.0:
            return
        self.load -= lost
        self._heap(load_at, SPREAD, lost)

    def settle(self, most: int = 10_000) -> None:
        """Until nothing runs down any more."""
        with self._lock:
            for _ in range(most):
                if self._loose is None:
                    return
                self._slump(SWEEPS)

    def _disturbed(self, at: Place, r: float) -> None:
        """Around this place soil may run down from now on."""
        rows, columns = self._window(at, r)
        new = rows.start, rows.stop, columns.start, columns.stop
        a, b, c, d = self._loose or new
        self._loose = min(a, new[0]), max(b, new[1]), min(c, new[2]), max(d, new[3])

    def _slump(self, times: int) -> None:
        """What is too steep runs down, from neighbour to neighbour."""
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
        # From here on only around what still runs.
        self._loose = (
            max(a + int(rows[0]) - 3, 0), min(a + int(rows[-1]) + 3, ROW),
            max(c + int(columns[0]) - 3, 0), min(c + int(columns[-1]) + 3, ROW),
        )  # fmt: skip

    def _window(self, at: Place, r: float) -> tuple[slice, slice]:
        """Rows and columns around a place, never none."""
        spans = []
        for c in (at[1], at[0]):
            low, high = self._cell(c - r), self._cell(c + r)
            spans.append(slice(int(low), int(high) + 1))
        return spans[0], spans[1]

    def height(self, x: Any, y: Any) -> Any:
        """Of the ground there, against its level; between four places of the grid it is a smooth sheet."""
        x, y = (np.clip((np.asarray(c) + HALF) / CELL, 0.0, CELLS - 1e-9) for c in (x, y))
        i, j, h = x.astype(int), y.astype(int), self.heights
        a, b = x - i, y - j
        near, far = (1 - a) * h[j, i] + a * h[j, i + 1], (1 - a) * h[j + 1, i] + a * h[j + 1, i + 1]
        return (1 - b) * near + b * far

    @staticmethod
    def _cell(x: Any) -> Any:
        return np.clip(np.rint((np.asarray(x) + HALF) / CELL), 0, CELLS).astype(int)

    # -- telling

    def news(self) -> Patch | None:
        """What has changed since it was last asked; None: nothing."""
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
        """All of it, as it was last told."""
        with self._lock:
            return self._whole()

    def _whole(self) -> Patch:
        h = self._told.reshape(-1)
        return Patch(self._t, self.load, self.dug, {int(k): float(h[k]) for k in np.flatnonzero(h)}, whole=True)

    def between(self, begin: float, end: float) -> tuple[Array, list[Patch]]:
        """The heights at one time, and what changed up to another."""
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
