"""The ground around an excavator as pages draw it: heights on a grid, which the teeth cut and a load is poured on.

A drawing and no part of the model, whose soil is level again behind the teeth and has no weight in the bucket. There is
one of it, made here from the motion, so that all pages show the same; and it is remembered, so that a replay shows the
hole of its time. Nothing is lost or won: what the heights lack is in the bucket. A bucket holds its capacity; a full
one passes through and cuts nothing. Teeth that do not move cut nothing either.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CELL, CELLS = 0.2, 104  # m; so many on a side of the square, with one more height than cells
ROW, HALF = CELLS + 1, CELL * CELLS / 2
STILL, JUMP = 2e-3, 1.5  # m between two looks: less is no motion, more is no way that was gone
WALL, REPOSE = 1.8, 0.7  # slopes of what was cut and of what was poured
HEAP = 0.02  # m above the level: poured
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

    def __init__(self, tool: Tool, level: float) -> None:
        self.tool, self.level = tool, level
        self._lock = threading.RLock()
        self.heal()

    def heal(self) -> None:
        """Back at the start: nothing has been dug."""
        with self._lock:
            self.heights = np.zeros((ROW, ROW))
            self._told = np.zeros((ROW, ROW))
            self.load = self.dug = 0.0
            self.begin()

    def begin(self) -> None:
        """Time begins anew; the hole stays."""
        with self._lock:
            self._base, self._log = self._told.copy(), deque[Patch]()
            self._last: Array | None = None
            self._t = 0.0
            self._healed = True

    # -- digging

    def work(
        self, t: float, tip: Sequence[float], across: Sequence[float], mouth: float, load_at: Sequence[float]
    ) -> None:
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
                cut = [self._cut(self._last + (now - self._last) * (k / steps), across) for k in range(1, steps + 1)]
                if any(cut):
                    self._slump((now + self._last) / 2, way / 2 + self.tool.width / 2 + 3 * CELL, 3)
                self._last = now
            self._spill(now, mouth, load_at, dt)

    def _cut(self, p: Array, across: Sequence[float]) -> bool:
        """Whether it found any earth, and room for it."""
        room = self.tool.capacity - self.load
        if room <= 0.0 or p[2] > self.heights.max():
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
        share = min(1.0, room / volume)
        h[cells] -= share * over
        self.load += share * volume
        self.dug += share * volume
        return True

    def _spill(self, tip: Array, mouth: float, load_at: Sequence[float], dt: float) -> None:
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
        rows, columns = self._window(load_at, 2.5 * SPREAD)
        dx = np.arange(ROW)[columns] * CELL - HALF - load_at[0]
        dy = np.arange(ROW)[rows] * CELL - HALF - load_at[1]
        share = np.exp(-(dx[None, :] ** 2 + dy[:, None] ** 2) / (2.0 * SPREAD * SPREAD))
        self.heights[rows, columns] += share * (lost / share.sum() / (CELL * CELL))
        self._slump(load_at, 2.5 * SPREAD + 3 * CELL, 6)

    def _slump(self, at: Sequence[float] | Array, r: float, times: int) -> None:
        """What is too steep runs down, from neighbour to neighbour."""
        h = self.heights[self._window(at, r)]
        for _ in range(times):
            for a in (h, h.T):
                step, high = np.diff(a, axis=0), np.maximum(a[1:], a[:-1])
                most = np.where(high > HEAP, REPOSE, WALL) * CELL
                flow = 0.25 * (step - np.clip(step, -most, most))
                a[:-1] += flow
                a[1:] -= flow

    def _window(self, at: Sequence[float] | Array, r: float) -> tuple[slice, slice]:
        """Rows and columns around a place, never none."""
        spans = []
        for c in (at[1], at[0]):
            low, high = self._cell(c - r), self._cell(c + r)
            spans.append(slice(int(low), int(high) + 1))
        return spans[0], spans[1]

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
