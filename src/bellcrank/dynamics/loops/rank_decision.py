"""The numerical rank of the loop equations, decided by the gap in the singular values of C.

C is given in its natural sizes (scaling.py) in several configurations. Loops that share no coordinate are decided
separately. In each such block the rank is the smallest r such that, below a ceiling, singular value r in most
configurations is CLEAR times as large as singular value r + 1 in any of them. A long linkage may have values of 1e-6
that count: they fall off gradually, each not much smaller than the one before. What is zero but for rounding, or but
for the last digit of a file, stands apart from all others everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.blocks import blocks
from bellcrank.dynamics.loops.scaling import ROUNDING

Array = np.ndarray[Any, Any]
CEILING = 3e-4  # singular values above this always count: files have 1.571 where a quarter of a turn is meant
CLEAR = 100.0  # ratio of neighbouring singular values that is a gap
SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class BlockRank:
    """The rank of loops that share coordinates among themselves and with no others."""

    rows: Array
    columns: Array
    values: Array  # (configurations, k): singular values, the largest first
    floor: float  # what rounding makes of a zero
    candidates: tuple[int, ...]  # ranks with a clear gap below them, the smallest first; or that of the widest gap
    choice: int = 0  # which of them is taken

    @property
    def rank(self) -> int:
        return self.candidates[self.choice]

    @property
    def signal(self) -> float:
        """The smallest singular value that counts, in most configurations; infinite for rank 0."""
        return float(_signal(self.values)[self.rank])

    @property
    def rest(self) -> float:
        """The largest singular value that does not count, in any configuration; not less than rounding."""
        return max(float(_rest(self.values)[self.rank]), self.floor)

    @property
    def ratio(self) -> float:
        return self.signal / self.rest

    @property
    def cut(self) -> float:
        """What lies below this counts as zero."""
        return float(np.sqrt(min(self.signal, 1.0) * self.rest))

    def strict(self, noise: float) -> BlockRank:
        """The same with every singular value counted that is not rounding."""
        exact = [k for k, r in enumerate(self.candidates) if _rest(self.values)[r] <= max(noise, 10.0 * self.floor)]
        return replace(self, choice=exact[0] if exact else len(self.candidates) - 1)

    @property
    def around(self) -> Array:
        """Singular values next to the decision, in the configuration where they are closest to each other."""
        padded = np.concatenate([self.values, np.full((len(self.values), 1), self.floor)], axis=1)
        r = max(1, self.rank)
        k = int(np.argmin(padded[:, r - 1] / np.maximum(padded[:, r], self.floor)))
        return np.asarray(self.values[k, max(0, r - 3) : r + 2])


def decided(C: Array) -> list[BlockRank]:
    """The rank of each block; C (configurations, m, nv) in natural sizes, m and nv of the whole mechanism.

    A coordinate that moves its loops by very little gives small singular values, too, as a crank of a tenth of a
    millimetre does in a linkage of a kilometre. So where a gap may be of that kind, its columns are enlarged to the
    size of the others, and rounding with them.
    """
    found = []
    for rows, columns in blocks(C):
        if len(columns):
            part = C[:, rows[:, None], columns]
            one = _decided(rows, columns, part, np.ones(len(columns)))
            if one.rest > one.floor or one.rank < min(part.shape[1:]):
                larger = 1.0 / np.maximum(np.abs(part).max(axis=(0, 1)), SMALLEST)
                other = _decided(rows, columns, part, larger)
                one = other if other.rank > one.rank and other.ratio >= CLEAR else one
            found.append(one)
    return found


def _decided(rows: Array, columns: Array, C: Array, sizes: Array) -> BlockRank:
    values = np.linalg.svd(C * sizes, compute_uv=False)
    floor = ROUNDING * float(np.sqrt(C.shape[1] * C.shape[2]) * sizes.max())
    signal, rest = _signal(values), _rest(values)
    ratio = signal / np.maximum(rest, floor)
    low = np.flatnonzero(rest < CEILING)
    clear = [int(r) for r in low if ratio[r] >= CLEAR]
    return BlockRank(rows, columns, values, floor, tuple(clear or [int(low[np.argmax(ratio[low])])]))


def _signal(values: Array) -> Array:
    """By rank: the last singular value that counts, in most configurations."""
    return np.concatenate([[np.inf], np.median(values, axis=0)])


def _rest(values: Array) -> Array:
    """By rank: the first singular value that does not count, where it is largest."""
    return np.concatenate([values.max(axis=0), [0.0]])


def total(found: Sequence[BlockRank]) -> int:
    return sum(x.rank for x in found)
