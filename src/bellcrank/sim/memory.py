"""Memory for runs: arrays for rows.

Large arrays come fresh from the system, page by page, and that can take longer than computing what goes in. So a
simulator keeps the one of its last large record, and uses it again as soon as nobody looks at it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LARGE = 4_000_000  # numbers: up to about here the C library itself keeps what was given back
ALONE = 3  # references to an array that only its Memory knows: the attribute, the local name, the argument


class Memory:
    def __init__(self) -> None:
        self._last: Array | None = None

    def rows(self, shape: tuple[int, ...]) -> Array:
        """An array of this shape with anything in it."""
        size = math.prod(shape)
        if size < LARGE:
            return np.empty(shape)
        last = self._last
        # Every view of it, in a record or taken from one, holds a reference to it.
        if last is None or not size <= last.size < 2 * size or sys.getrefcount(last) > ALONE:
            self._last = last = None  # before there is another of its size
            self._last = last = np.empty(size)
        return last[:size].reshape(shape)
