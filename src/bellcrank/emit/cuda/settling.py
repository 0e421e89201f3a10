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
ROUNDS = 20  # iterations at most; it converges much earlier


def settled(sequence: Sequence[Unit]) -> list[Unit]:
    """Return `sequence` with units moved to shorten live ranges, as long as that helps."""
    if not sequence:
        return []
    wires = _Wires(sequence)
    best = np.arange(len(sequence))
    score = wires.score(best)
    for _ in range(ROUNDS):
        moved = wires.moved(best)
        if (new := wires.score(moved)) >= score:
            break
        best, score = moved, new
    return [sequence[i] for i in best.tolist()]


class _Wires:
    """Reads and definitions as indices of units and of values."""

    def __init__(self, sequence: Sequence[Unit]) -> None:
        numbers: dict[int, int] = {}
        reads = [[numbers.setdefault(serial, len(numbers)) for serial in unit.reads] for unit in sequence]
        makes = [[numbers.setdefault(serial, len(numbers)) for serial in unit.makes] for unit in sequence]
        self.units, self.values = len(sequence), len(numbers)
        self.reader, self.read = _flat(reads)
        self.maker, self.made = _flat(makes)
        self.by = np.full(self.values, -1)  # unit that defines each value; -1 for inputs
        self.by[self.made] = self.maker
        self.makes = np.bincount(self.maker, minlength=self.units)
        self.count = np.bincount(self.read, minlength=self.values)  # number of reads of each value
        self.end = np.cumsum(self.count)
        by = self.by.tolist()
        self.rests = [[by[v] for v in row if by[v] >= 0] for row in reads]  # units that each unit depends on

    def place(self, order: Numbers) -> Numbers:
        found = np.empty_like(order)
        found[order] = np.arange(self.units)
        return found

    def score(self, order: Numbers) -> tuple[int, int]:
        """Return the maximum number of live values, and the sum over all units.

        An input is live from its first to its last use.
        """
        at = self.place(order)
        uses = self._uses(at)
        known = self.count > 0
        since = np.where(self.by >= 0, at[self.by], uses[self._nth(0)])[known]
        until = uses[self._nth(-1)][known]
        n = self.units
        alive = np.cumsum(np.bincount(since, minlength=n) - np.bincount(until, minlength=n))
        return int(alive.max()), int(alive.sum())

    def _uses(self, at: Numbers) -> Numbers:
        """Return positions of all reads, by value and ascending, and a last entry for values that are never read."""
        where = at[self.reader]
        return np.append(where[np.lexsort((where, self.read))], -1)

    def _nth(self, n: int) -> Numbers:
        """Return the index in `_uses` of the first (0), the last (-1) or the last but one (-2) use of each value."""
        found = self.end - self.count if n == 0 else self.end + n
        return np.where(self.count >= max(1, -n), found, len(self.read))

    def moved(self, order: Numbers) -> Numbers:
        """Return the order with each unit at its desired position, or as close to it as its operands allow."""
        at = self.place(order)
        place, rests = at.tolist(), self.rests
        done = bytearray(self.units)
        found: list[int] = []
        for first in self._wished(at).tolist():
            stack = [first]
            while stack:
                i = stack[-1]
                before = [j for j in rests[i] if not done[j]]
                if done[i] or not before:
                    stack.pop()
                    if not done[i]:
                        done[i] = 1
                        found.append(i)
                else:
                    stack.extend(sorted(before, key=place.__getitem__, reverse=True))
        return np.array(found)

    def _wished(self, at: Numbers) -> Numbers:
        """Return all units in the order of their desired positions."""
        uses = self._uses(at)
        first, last, before = (uses[self._nth(n)] for n in (0, -1, -2))
        frees = last[self.read] == at[self.reader]  # reads that end the live range of their value
        freed = np.bincount(self.reader[frees], minlength=self.units)
        wanted = np.full(self.units, self.units)
        used = self.count[self.made] > 0
        np.minimum.at(wanted, self.maker[used], first[self.made[used]])
        ready = np.full(self.units, -1)  # position after all operands and after other reads of values that it frees
        there = self.by[self.read] >= 0
        np.maximum.at(ready, self.reader[there], at[self.by[self.read[there]]])
        np.maximum.at(ready, self.reader[frees], before[self.read[frees]])
        wish = at.astype(float)
        late = (freed == 0) & (wanted < self.units)
        early = ~late & (freed > self.makes)
        wish[late] = wanted[late] - 0.5
        wish[early] = np.minimum(wish[early], ready[early] + 0.5)
        return np.lexsort((at, wish))


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Return the row index and the value of each element."""
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.array([x for row in rows for x in row], int)
