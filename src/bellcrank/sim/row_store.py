"""Rows of a run that has no end: all of them, or the newest ones."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Kept:
    """At least `limit` rows are kept, once there are so many, and not many more; None: all."""

    def __init__(self, width: int, limit: int | None = None) -> None:
        self.limit = limit
        self.forgotten = 0
        self._pieces: deque[Array] = deque([np.zeros((0, width))])
        self._count = 0

    def add(self, rows: Array) -> None:
        if not len(rows):
            return
        self._pieces.append(rows)
        self._count += len(rows)
        while self.limit is not None and self._count - len(self._pieces[0]) >= self.limit:
            gone = len(self._pieces.popleft())
            self._count -= gone
            self.forgotten += gone

    def rows(self) -> Array:
        return np.concatenate(list(self._pieces))
