"""Numerical evaluation of the loop equations, for batches of configurations; their natural sizes and rank.

Natural sizes make decisions independent of units and dimensions. An equation between lengths is scaled by the largest
lever of its own loop, one between directions by 1. A rotational coordinate has the natural size 1 rad, a sliding one
the smallest lever among its loops. With this scaling, C of a watch inside a crane has the same singular values as C of
the watch alone.

The rank is decided by the gap in the singular values of C, given in its natural sizes in several configurations. Loops
that share no coordinate are decided separately. In each such block the rank is the smallest r such that, below a
ceiling, singular value r in most configurations is CLEAR_GAP_RATIO times as large as singular value r + 1 in any of
them. A long linkage may have values of 1e-6 that count: they decrease gradually, each not much smaller than the one
before. A value that is zero except for rounding, or for the last digit of a file, is clearly separated from all others
in every configuration.

Other cubic operations on C (..., m, n) are done block by block too. Rows that share a column are in one block, directly
or through others; columns without any row are in none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops.constraint_equations import (
    coordinate_equations,
    end_cosines,
    equation_families,
    loop_equations,
)
from bellcrank.model.tree import Tree
from bellcrank.scalar import is_zero

Array = np.ndarray[Any, Any]
# Levers and elements of C below this, relative to the largest of their loop, are rounding.
NEGLIGIBLE_RATIO = 1e-12
ROUNDING_ELEMENT = 1e-15  # elements of C in natural sizes that are smaller are zero
RANK_CEILING = 3e-4  # singular values above this always count: files have 1.571 where a quarter of a turn is meant
CLEAR_GAP_RATIO = 100.0  # ratio of neighbouring singular values that is considered a gap
SMALLEST_DIVISOR = 1e-300


@dataclass(frozen=True, eq=False)
class ConstraintValues:
    """Values, Jacobian and bias of the loop equations."""

    value: Array  # (..., m)
    C: Array  # (..., m, nv)
    bias: Array  # (..., m)


def evaluate_constraints(tree: Tree, q: Array, v: Array | None = None) -> ConstraintValues:
    """Return values, Jacobian and bias.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, (..., nq).
    v
        Velocities, (..., nv), or None for rest.
    """
    q = np.asarray(q, float)
    batch = q.shape[:-1]
    if batch and q.size == tree.nq:  # evaluate a batch of one with plain numbers, which takes a fifth of the time
        one = evaluate_constraints(
            tree, q.reshape(-1), None if v is None else np.broadcast_to(v, (*batch, tree.nv)).reshape(-1)
        )
        return ConstraintValues(*(x.reshape(*batch, *x.shape) for x in (one.value, one.C, one.bias)))
    rates = None if v is None else list(np.moveaxis(np.broadcast_to(v, (*batch, tree.nv)), -1, 0))
    equations_found = loop_equations(tree, _elements(q), rates)
    m = len(equations_found)
    value, bias, C = np.zeros((*batch, m)), np.zeros((*batch, m)), np.zeros((*batch, m, tree.nv))
    for k, e in enumerate(equations_found):
        value[..., k], bias[..., k] = e.value, e.bias
        for j, x in e.row.items():
            C[..., k, j] = x
    return ConstraintValues(value, C, bias)


def displace(tree: Tree, q: Array, displacement: Array) -> Array:
    """Return q after a displacement in the space of v.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, (..., nq).
    displacement
        (..., nv).
    """
    new = kinematics.integrate(tree, _elements(q), _elements(displacement))
    return np.stack(np.broadcast_arrays(*new), axis=-1) if new else np.array(q)


def ends_upright(tree: Tree, q: Array) -> Array:
    """Return a mask of the configurations `q` of `tree` in which no end of a loop is upside down."""
    upright = np.ones(q.shape[:-1], bool)
    for x in end_cosines(tree, _elements(np.asarray(q, float))):
        upright &= np.asarray(x) > 0.0
    return upright


def _elements(x: Array) -> list[Array]:
    return list(np.moveaxis(x, -1, 0))


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors that make C dimensionless: rows[:, None] * C * columns."""

    rows: Array  # (m,): one over the natural size of each equation
    columns: Array  # (nv,): natural size of each element of v

    def scaled(self, C: Array) -> Array:
        """Return `C` in natural sizes, without rounding errors."""
        return self._without_rounding(C, C * self.rows[:, None] * self.columns)

    def scale_rows(self, C: Array) -> Array:
        """Return `C` with rows in natural sizes and columns as they are, without rounding errors."""
        return self._without_rounding(C, C * self.rows[:, None])

    def _without_rounding(self, C: Array, scaled: Array) -> Array:
        largest = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0) * self.rows[:, None] * self.columns
        return np.where(largest < ROUNDING_ELEMENT, 0.0, scaled)


def natural_scales(tree: Tree, C: Array) -> Scales:
    """Return natural sizes for `tree`, from `C` in one or more configurations (..., m, nv)."""
    size = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0)
    turning, rows = rotational_columns(tree), np.ones(C.shape[-2])
    columns = np.where(turning, 1.0, np.inf)
    family_levers = _levers(tree, size, turning)
    longest = max((lever for _, lever in family_levers), default=0.0)
    # Equations without rotations come last, because they need the sizes of slides.
    for family, lever in sorted(family_levers, key=lambda x: x[1] == 0.0):
        natural_length = lever or _slide_size(size[family], columns) or longest or 1.0
        rows[family] = 1.0 / natural_length
        moves = size[family].max(axis=0, initial=0.0) > NEGLIGIBLE_RATIO * size[family].max(initial=0.0)
        columns = np.where(moves & ~turning, np.minimum(columns, natural_length), columns)
    return Scales(rows, np.where(np.isfinite(columns), columns, longest or 1.0))


def rotational_columns(tree: Tree) -> Array:
    """Return a mask of the elements of v that rotate a body of `tree`."""
    turning, still = np.zeros(tree.nv, bool), [0.0] * tree.nq
    for link in tree.links:
        if link.kind.name != "modal":
            for s, k in zip(link.subspace(still), link.v_index, strict=True):
                turning[k] |= not all(is_zero(x) for x in s.ang)
    return turning


def _levers(tree: Tree, size: Array, turning: Array) -> list[tuple[list[int], float]]:
    """Return the equations with a unit, by loop, and their largest change for a rotation by 1 rad; else 0."""
    coupled, family_levers = coordinate_equations(tree), []
    for family, is_length in equation_families(tree):
        if is_length or family[0] in coupled:
            family_levers.append((family, float(size[family][:, turning].max(initial=0.0))))
    longest = max((lever for _, lever in family_levers), default=0.0)
    return [(family, lever if lever > NEGLIGIBLE_RATIO * longest else 0.0) for family, lever in family_levers]


def _slide_size(size: Array, columns: Array) -> float:
    """Return the size of equations without rotations, by the natural sizes of coordinates in other loops."""
    known = np.isfinite(columns)
    return float((size[:, known] * columns[known]).max(initial=0.0))


def independent_blocks(C: Array) -> list[tuple[Array, Array]]:
    """Return rows and columns of each block of `C`; a row of zeros is a block of its own, without columns."""
    pattern = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0) > 0.0
    mark = list(range(len(pattern)))

    def top(k: int) -> int:
        """Return the representative of the block of row `k`."""
        while mark[k] != k:
            mark[k] = mark[mark[k]]
            k = mark[k]
        return k

    for column in pattern.T:
        rows = np.flatnonzero(column)
        for k in rows[1:]:
            mark[top(int(k))] = top(int(rows[0]))
    blocks: dict[int, list[int]] = {}
    for k in range(len(pattern)):
        blocks.setdefault(top(k), []).append(k)
    return [(np.array(rows), np.flatnonzero(pattern[rows].any(axis=0))) for rows in blocks.values()]


def _nonzero_blocks(C: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows, columns and the matrix of each block that is not zero."""
    for rows, columns in independent_blocks(C):
        if len(columns):
            yield rows, columns, C[..., rows[:, None], columns]


def pseudo_inverse(C: Array, least: float) -> Array:
    """Return the pseudo-inverse of `C`; singular values below `least` times a block's largest count as zero."""
    P = np.zeros((*C.shape[:-2], C.shape[-1], C.shape[-2]))
    for rows, columns, part in _nonzero_blocks(C):
        P[..., columns[:, None], rows] = np.linalg.pinv(part, rcond=least)
    return P


def redundancy(C: Array, rank: int) -> Array:
    """Return projections onto the vanishing combinations of the rows of `C`, which has this `rank`: (..., m, m)."""
    U = np.linalg.svd(C)[0][..., :rank]
    return np.asarray(np.eye(C.shape[-2]) - U @ np.swapaxes(U, -1, -2))


def damped_step(C: Array, damping: Array, b: Array) -> Array:
    """Return C^T (C C^T + damping 1)^-1 b for each matrix.

    Parameters
    ----------
    C
        Matrices, (..., m, n).
    damping
        Relative to the mean of the diagonal of C C^T, block by block.
    b
        Right-hand sides, (..., m).
    """
    x = np.zeros((*C.shape[:-2], C.shape[-1]))
    for rows, columns, part in _nonzero_blocks(C):
        N = part @ np.swapaxes(part, -1, -2)
        size = np.maximum(np.trace(N, axis1=-2, axis2=-1) / len(rows), 1e-300)
        N += (damping * size)[..., None, None] * np.eye(len(rows))
        multipliers = np.linalg.solve(N, b[..., rows, None])[..., 0]
        x[..., columns] = np.einsum("...mk,...m->...k", part, multipliers)
    return x


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
    for rows, columns, part in _nonzero_blocks(C):
        block_rank = _decide_block(rows, columns, part, np.ones(len(columns)))
        if block_rank.rest > block_rank.floor or block_rank.rank < min(part.shape[1:]):
            larger = 1.0 / np.maximum(np.abs(part).max(axis=(0, 1)), SMALLEST_DIVISOR)
            rescaled_rank = _decide_block(rows, columns, part, larger)
            if rescaled_rank.rank > block_rank.rank and rescaled_rank.ratio >= CLEAR_GAP_RATIO:
                block_rank = rescaled_rank
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
