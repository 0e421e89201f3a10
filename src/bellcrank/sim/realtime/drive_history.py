"""History of a drive: the rows of the record, and the values of free parameters at each of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.parameters import Parameters

Array = np.ndarray[Any, Any]
MOST_CHANGES = 40_000  # changes: eleven minutes at sixty per second


class ParameterLog:
    """Present parameter values `p`, and a log of changes with the times from which they hold."""

    def __init__(self, parameters: Parameters, p: Array) -> None:
        self.parameters, self.p = parameters, p.copy()
        self.restart()

    def restart(self) -> None:
        """Restart the time and clear the log; the values stay."""
        self._log = deque([(-math.inf, self.p.copy())], MOST_CHANGES)

    def change(self, values: Mapping[str, float], t: float, check: bool = True) -> Array:
        """Set values of some parameters; nothing changes if one of them is invalid.

        Parameters
        ----------
        values
            New values by name.
        t
            Time from which they hold, s.
        check
            True checks that the values are physically possible.
        """
        new = self.parameters.changed(self.p, values, "tune", check)
        self.p = new
        self._log.append((t, new))
        return new

    def rows(self, t: Array, step: float) -> Array | None:
        """Return the values that held at rows with times `t`, (1, rows, np); None without changes.

        A change counts for rows at least half a `step` after it.
        """
        changes = list(self._log)
        if len(changes) < 2:
            return None
        since = np.searchsorted([when for when, _ in changes], t - 0.5 * step, side="right") - 1
        values: Array = np.array([p for _, p in changes])[np.maximum(since, 0)][None]
        return values


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
