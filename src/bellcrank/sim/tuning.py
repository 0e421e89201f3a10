"""Free numbers that are changed while a drive runs: what they are, and what they were in each row of the record."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.parameters import Parameters

Array = np.ndarray[Any, Any]
REMEMBERED = 40_000  # changes: eleven minutes of sixty a second


class Tuning:
    """p: the values in force. Changes are told with the time from which on they hold."""

    def __init__(self, parameters: Parameters, p: Array) -> None:
        self.parameters, self.p = parameters, p.copy()
        self.begin()

    def begin(self) -> None:
        """Time begins anew; the values stay."""
        self._log = deque([(-math.inf, self.p.copy())], REMEMBERED)

    def change(self, values: Mapping[str, float], t: float, judged: bool = True) -> Array:
        """What is not named stays as it is, and all of it where one of them cannot be."""
        new = self.parameters.changed(self.p, values, "tune", judged)
        self.p = new
        self._log.append((t, new))
        return new

    def rows(self, t: Array, step: float) -> Array | None:
        """The values that held when each row was reached, (1, rows, np); None: they never changed."""
        changes = list(self._log)
        if len(changes) < 2:
            return None
        since = np.searchsorted([when for when, _ in changes], t - 0.5 * step, side="right") - 1
        found: Array = np.array([p for _, p in changes])[np.maximum(since, 0)][None]
        return found
