"""Ground that was dug, in a record: heights on a square grid, what they were first, and what changed when.

It is plain data in the provenance (`ground`), so that every format of files keeps it: whole numbers of half a
millimetre, packed. `run.ground.at(t)` are the heights at a time; a replay goes back and forth in it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.model.parts import Array

UNIT = 5e-4  # m, of a height in a file
OFTEN = 0.1  # s: changes that are closer together are told as one
MOST_ROWS = 4096  # rows of a grid that a file may ask for


@dataclass(frozen=True)
class DugGround:
    """cell: m between heights, which are (rows, rows) by y and x around the middle, in m above `level`.

    Change k, at t[k], sets heights.flat[cells[k]] to heights[k]; times do not decrease.
    """

    level: float
    cell: float
    first: Array
    t: Array
    cells: Array
    heights: Array

    @property
    def rows(self) -> int:
        return len(self.first)

    def at(self, t: float) -> Array:
        """The heights at a time, (rows, rows) by y and x."""
        found = self.first.copy()
        k = int(np.searchsorted(self.t, t, side="right"))
        found.reshape(-1)[self.cells[:k]] = self.heights[:k]  # of one cell the last one stays
        return found

    def volume(self, t: float) -> float:
        """m3 above the level."""
        return float(self.at(t).sum()) * self.cell * self.cell

    @property
    def plain(self) -> dict[str, Any]:
        """What a provenance can hold of it: numbers and packed text."""
        rounded = [np.rint(x / UNIT).astype("<i2") for x in (self.first, self.heights)]
        parts = [self.t.astype("<f8"), self.cells.astype("<u4"), rounded[1], rounded[0]]
        packed = zlib.compress(b"".join(x.tobytes() for x in parts), 9)
        return {
            "level": self.level,
            "cell": self.cell,
            "rows": self.rows,
            "changes": len(self.t),
            "heights": base64.b64encode(packed).decode(),
        }


def dug_ground(
    level: float, cell: float, first: Array, changes: Sequence[tuple[float, Mapping[int, float]]]
) -> DugGround:
    """changes: a time, and the heights by cell from then on; in the order of time."""
    told: dict[float, dict[int, float]] = {}
    for t, cells in changes:
        last = next(reversed(told), None)
        at = last if last is not None and t - last < OFTEN else t
        told.setdefault(at, {}).update(cells)
    rows = [(t, cell_, height) for t, cells in told.items() for cell_, height in cells.items()]
    when, where, heights = (np.array(x, float) for x in zip(*rows, strict=True)) if rows else (np.empty(0),) * 3
    return DugGround(level, cell, np.array(first, float), when, where.astype(np.int64), heights)


def read_ground(data: Any) -> DugGround:
    """From a provenance; a ReadError where that is no ground."""
    try:
        n, k = int(data["rows"]), int(data["changes"])
        level, cell = float(data["level"]), float(data["cell"])
        if not (0 < n <= MOST_ROWS and k >= 0 and cell > 0.0):
            raise ValueError
        size = 14 * k + 2 * n * n
        raw = zlib.decompressobj().decompress(base64.b64decode(data["heights"], validate=True), size + 1)
        if len(raw) != size:
            raise ValueError
        t, cells = np.frombuffer(raw, "<f8", k), np.frombuffer(raw, "<u4", k, 8 * k).astype(np.int64)
        heights, first = np.frombuffer(raw, "<i2", k, 12 * k), np.frombuffer(raw, "<i2", n * n, 14 * k)
        if (k and cells.max() >= n * n) or (np.diff(t) < 0.0).any() or not np.isfinite([level, cell, *t]).all():
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ReadError(
            "the ground in this record is damaged: expected a grid of heights and its changes, as a drive saves them "
            "(level, cell, rows, changes, heights). Save the record again, or take `ground` out of its provenance."
        ) from error
    return DugGround(level, cell, UNIT * first.reshape(n, n), t, cells, UNIT * heights)
