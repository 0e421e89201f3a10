"""Numerical rank of the loop equations, decided by the gap in the singular values of C.

C is given in its natural sizes (equation_scaling.py) in several configurations. Loops that share no coordinate are
decided separately. In each such block the rank is the smallest r such that, below a ceiling, singular value r in most
configurations is CLEAR_GAP_RATIO times as large as singular value r + 1 in any of them. A long linkage may have values
of 1e-6 that count: they decrease gradually, each not much smaller than the one before. A value that is zero except for
rounding, or for the last digit of a file, is clearly separated from all others in every configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.block_algebra import independent_blocks
from bellcrank.dynamics.loops.equation_scaling import ROUNDING_ELEMENT

Array = np.ndarray[Any, Any]
RANK_CEILING = 3e-4  # singular values above this always count: files have 1.571 where a quarter of a turn is meant
CLEAR_GAP_RATIO = 100.0  # ratio of neighbouring singular values that is considered a gap
SMALLEST_DIVISOR = 1e-300


@dataclass(frozen=True, eq=False)
class BlockRank:
    """Rank of a set of loops that share coordinates among themselves and with no others."""

    rows: Array
    columns: Array
    values: Array  # (configurations, k): singular values, the largest first
    floor: float  # size of a zero with rounding
    candidates: tuple[int, ...]  # ranks with a clear gap below them, the smallest first; or that of the widest gap
    choice: int = 0  # index of the chosen candidate

    @property
    def rank(self) -> int:
        """Return the rank that is chosen among the candidates."""
        return self.candidates[self.choice]

    @property
    def signal(self) -> float:
        """Return the smallest singular value that counts, in most configurations; infinite for rank 0."""
        return float(_signal(self.values)[self.rank])

    @property
    def rest(self) -> float:
        """Return the largest singular value that does not count, in any configuration; not less than rounding."""
        return max(float(_rest(self.values)[self.rank]), self.floor)

    @property
    def ratio(self) -> float:
        """Return the ratio of the singular values on both sides of the gap."""
        return self.signal / self.rest

    @property
    def cut(self) -> float:
        """Return the limit below which singular values count as zero."""
        return float(np.sqrt(min(self.signal, 1.0) * self.rest))

    def strict(self, noise: float) -> BlockRank:
        """Return the decision that counts every singular value above rounding, which is at least `noise`."""
        exact = [k for k, r in enumerate(self.candidates) if _rest(self.values)[r] <= max(noise, 10.0 * self.floor)]
        return replace(self, choice=exact[0] if exact else len(self.candidates) - 1)

    @property
    def around(self) -> Array:
        """Return the singular values next to the decision, in the configuration where they are closest."""
        padded = np.concatenate([self.values, np.full((len(self.values), 1), self.floor)], axis=1)
        r = max(1, self.rank)
        k = int(np.argmin(padded[:, r - 1] / np.maximum(padded[:, r], self.floor)))
        return np.asarray(self.values[k, max(0, r - 3) : r + 2])


def decide_ranks(C: Array) -> list[BlockRank]:
    """Return the rank of each block of `C` (configurations, m, nv) in natural sizes, for the whole mechanism.

    A coordinate that moves its loops by very little also gives small singular values, as a crank of a tenth of a
    millimetre does in a linkage of a kilometre. So if a gap may be of that kind, its columns are scaled to the size of
    the others, and rounding with them.
    """
    ranks = []
    for rows, columns in independent_blocks(C):
        if len(columns):
            part = C[:, rows[:, None], columns]
            block_rank = _decide_block(rows, columns, part, np.ones(len(columns)))
            if block_rank.rest > block_rank.floor or block_rank.rank < min(part.shape[1:]):
                larger = 1.0 / np.maximum(np.abs(part).max(axis=(0, 1)), SMALLEST_DIVISOR)
                rescaled_rank = _decide_block(rows, columns, part, larger)
                block_rank = (
                    rescaled_rank
                    if rescaled_rank.rank > block_rank.rank and rescaled_rank.ratio >= CLEAR_GAP_RATIO
                    else block_rank
                )
            ranks.append(block_rank)
    return ranks


def _decide_block(rows: Array, columns: Array, C: Array, sizes: Array) -> BlockRank:
    values = np.linalg.svd(C * sizes, compute_uv=False)
    floor = ROUNDING_ELEMENT * float(np.sqrt(C.shape[1] * C.shape[2]) * sizes.max())
    signal, rest = _signal(values), _rest(values)
    ratio = signal / np.maximum(rest, floor)
    low = np.flatnonzero(rest < RANK_CEILING)
    clear = [int(r) for r in low if ratio[r] >= CLEAR_GAP_RATIO]
    return BlockRank(rows, columns, values, floor, tuple(clear or [int(low[np.argmax(ratio[low])])]))


def _signal(values: Array) -> Array:
    """Return the last singular value that counts, in most configurations, for each rank."""
    return np.concatenate([[np.inf], np.median(values, axis=0)])


def _rest(values: Array) -> Array:
    """Return the first singular value that does not count, where it is largest, for each rank."""
    return np.concatenate([values.max(axis=0), [0.0]])


def total_rank(blocks: Sequence[BlockRank]) -> int:
    """Return the sum of the ranks of `blocks`."""
    return sum(x.rank for x in blocks)
