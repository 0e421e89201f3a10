"""Dug ground in a record: initial heights on a square grid, and their changes over time.

It is stored in the provenance (`ground`), so that every file format keeps it: packed integers in units of half a
millimetre. `run.ground.at(t)` are the heights at a time.
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

HEIGHT_UNIT_M = 5e-4  # m, unit of heights in a file
MERGE_SECONDS = 0.1  # s: changes within this time are merged
MAX_ROWS = 4096  # maximum number of rows of the grid in a file


@dataclass(frozen=True)
class DugGround:
    """Heights of the ground over time.

    Heights are (rows, rows) by y and x around the origin, with the spacing `cell` in m, and in m above `level`.
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
        """Number of rows of the grid, and of columns."""
        return len(self.first)

    def at(self, t: float) -> Array:
        """Return the heights at a time.

        Parameters
        ----------
        t : float
            Time, s.

        Returns
        -------
        ndarray, shape (rows, rows)
            Heights above `level` by y and x, m.
        """
        heights = self.first.copy()
        k = int(np.searchsorted(self.t, t, side="right"))
        heights.reshape(-1)[self.cells[:k]] = self.heights[:k]  # the last change of a cell wins
        return heights

    def volume(self, t: float) -> float:
        """Return the volume of ground above `level`; dug holes count negative.

        Parameters
        ----------
        t : float
            Time, s.

        Returns
        -------
        float
            Volume, m^3.
        """
        return float(self.at(t).sum()) * self.cell * self.cell

    @property
    def plain(self) -> dict[str, Any]:
        """Plain data for the provenance: numbers and packed text."""
        rounded = [np.rint(x / HEIGHT_UNIT_M).astype("<i2") for x in (self.first, self.heights)]
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
    """Return the ground of a record.

    Parameters
    ----------
    level
        Height of the undisturbed ground, m.
    cell
        Spacing of the grid, m.
    first
        Initial heights above `level`, shape (rows, rows), m.
    changes
        Times, and heights by cell from then on, in the order of time.
    """
    merged: dict[float, dict[int, float]] = {}
    for t, cells in changes:
        last = next(reversed(merged), None)
        merge_time = last if last is not None and t - last < MERGE_SECONDS else t
        merged.setdefault(merge_time, {}).update(cells)
    rows = [(t, cell_, height) for t, cells in merged.items() for cell_, height in cells.items()]
    when, changed, heights = (np.array(x, float) for x in zip(*rows, strict=True)) if rows else (np.empty(0),) * 3
    return DugGround(level, cell, np.array(first, float), when, changed.astype(np.int64), heights)


def read_ground(data: Any) -> DugGround:
    """Return the ground from the entry `data` of a provenance; raise a ReadError if it is invalid."""
    try:
        n, k = int(data["rows"]), int(data["changes"])
        level, cell = float(data["level"]), float(data["cell"])
        if not (0 < n <= MAX_ROWS and k >= 0 and cell > 0.0):
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
            "(level, cell, rows, changes, heights). Save the record again, or remove `ground` from its provenance."
        ) from error
    return DugGround(level, cell, HEIGHT_UNIT_M * first.reshape(n, n), t, cells, HEIGHT_UNIT_M * heights)
