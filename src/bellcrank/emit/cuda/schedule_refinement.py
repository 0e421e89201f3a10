"""Schedule refinement: move units to shorten live ranges, late where they end none, early where they end several.

It runs dozens of times on thousands of units, so all data are arrays: pairs of unit and value for each read, and a
permutation for the position of every unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bellcrank.emit.cuda.units import Unit

Numbers: TypeAlias = np.ndarray[Any, Any]
MAX_ROUNDS = 20  # iterations at most; it converges much earlier


def refine_schedule(sequence: Sequence[Unit]) -> list[Unit]:
    """Return `sequence` with units moved to shorten live ranges, as long as that helps."""
    if not sequence:
        return []
    wires = _UseDefArrays(sequence)
    best = np.arange(len(sequence))
    score = wires.score(best)
    for _ in range(MAX_ROUNDS):
        moved = wires.move_units(best)
        if (new := wires.score(moved)) >= score:
            break
        best, score = moved, new
    return [sequence[i] for i in best.tolist()]


class _UseDefArrays:
    """Reads and definitions as indices of units and of values."""

    def __init__(self, sequence: Sequence[Unit]) -> None:
        numbers: dict[int, int] = {}
        reads = [[numbers.setdefault(serial, len(numbers)) for serial in unit.used_serials] for unit in sequence]
        makes = [[numbers.setdefault(serial, len(numbers)) for serial in unit.defined_serials] for unit in sequence]
        self.units, self.values = len(sequence), len(numbers)
        self.reader, self.read = _flat(reads)
        self.maker, self.defined = _flat(makes)
        self.definer = np.full(self.values, -1)  # unit that defines each value; -1 for inputs
        self.definer[self.defined] = self.maker
        self.makes = np.bincount(self.maker, minlength=self.units)
        self.count = np.bincount(self.read, minlength=self.values)  # number of reads of each value
        self.end = np.cumsum(self.count)
        definers = self.definer.tolist()
        # units that each unit depends on
        self.dependencies = [[definers[v] for v in row if definers[v] >= 0] for row in reads]

    def positions(self, order: Numbers) -> Numbers:
        position = np.empty_like(order)
        position[order] = np.arange(self.units)
        return position

    def score(self, order: Numbers) -> tuple[int, int]:
        """Return the maximum number of live values, and the sum over all units.

        An input is live from its first to its last use.
        """
        position = self.positions(order)
        uses = self._use_positions(position)
        known = self.count > 0
        since = np.where(self.definer >= 0, position[self.definer], uses[self._nth_use(0)])[known]
        until = uses[self._nth_use(-1)][known]
        n = self.units
        alive = np.cumsum(np.bincount(since, minlength=n) - np.bincount(until, minlength=n))
        return int(alive.max()), int(alive.sum())

    def _use_positions(self, position: Numbers) -> Numbers:
        """Return positions of all reads, by value and ascending, and a last entry for values that are never read."""
        read_positions = position[self.reader]
        return np.append(read_positions[np.lexsort((read_positions, self.read))], -1)

    def _nth_use(self, n: int) -> Numbers:
        """Return the index in `_use_positions` of each value's first (0), last (-1) or last but one (-2) use."""
        index = self.end - self.count if n == 0 else self.end + n
        return np.where(self.count >= max(1, -n), index, len(self.read))

    def move_units(self, order: Numbers) -> Numbers:
        """Return the order with each unit at its desired position, or as close to it as its operands allow."""
        position = self.positions(order)
        position_list, rests = position.tolist(), self.dependencies
        done = bytearray(self.units)
        new_order: list[int] = []
        for first in self._desired_order(position).tolist():
            stack = [first]
            while stack:
                i = stack[-1]
                pending = [j for j in rests[i] if not done[j]]
                if done[i] or not pending:
                    stack.pop()
                    if not done[i]:
                        done[i] = 1
                        new_order.append(i)
                else:
                    stack.extend(sorted(pending, key=position_list.__getitem__, reverse=True))
        return np.array(new_order)

    def _desired_order(self, position: Numbers) -> Numbers:
        """Return all units in the order of their desired positions."""
        uses = self._use_positions(position)
        first, last, last_but_one = (uses[self._nth_use(n)] for n in (0, -1, -2))
        frees = last[self.read] == position[self.reader]  # reads that end the live range of their value
        freed = np.bincount(self.reader[frees], minlength=self.units)
        first_use = np.full(self.units, self.units)
        used = self.count[self.defined] > 0
        np.minimum.at(first_use, self.maker[used], first[self.defined[used]])
        ready = np.full(self.units, -1)  # position after all operands and after other reads of values that it frees
        is_computed = self.definer[self.read] >= 0
        np.maximum.at(ready, self.reader[is_computed], position[self.definer[self.read[is_computed]]])
        np.maximum.at(ready, self.reader[frees], last_but_one[self.read[frees]])
        wish = position.astype(float)
        late = (freed == 0) & (first_use < self.units)
        early = ~late & (freed > self.makes)
        wish[late] = first_use[late] - 0.5
        wish[early] = np.minimum(wish[early], ready[early] + 0.5)
        return np.lexsort((position, wish))


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Return the row index and the value of each element."""
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.array([x for row in rows for x in row], int)
