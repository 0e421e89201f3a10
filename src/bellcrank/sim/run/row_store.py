"""Row storage for runs of unlimited length: all rows, or the newest ones."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class RowStore:
    """Store of all rows (`limit` None), or of at least the newest `limit` rows and not many more."""

    def __init__(self, width: int, limit: int | None = None) -> None:
        self.limit = limit
        self.dropped = 0
        self._pieces: deque[Array] = deque([np.zeros((0, width))])
        self._count = 0

    def add(self, rows: Array) -> None:
        """Append `rows`, and drop the oldest blocks beyond the limit."""
        if not len(rows):
            return
        self._pieces.append(rows)
        self._count += len(rows)
        while self.limit is not None and self._count - len(self._pieces[0]) >= self.limit:
            dropped_rows = len(self._pieces.popleft())
            self._count -= dropped_rows
            self.dropped += dropped_rows

    def rows(self) -> Array:
        """Return the stored rows as one array."""
        return np.concatenate(list(self._pieces))
