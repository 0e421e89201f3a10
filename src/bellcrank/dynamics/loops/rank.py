"""Rank and groups of redundant loop equations, and the solution for their multipliers.

If equations are redundant, no fixed selection of them is good in all configurations: the selected ones may become
dependent where the full set does not lose rank. So all are kept, in groups: the equations of a group may depend on each
other, with as many independent ones as its rank, and on none outside it. Most mechanisms have no group at all.

N x = b, with N = C W C^T and W positive definite, is then eliminated group by group as it would be row by row. In place
of a pivot's reciprocal a group has the pseudo-inverse: it gives the smallest of all equivalent multipliers, which do
not depend on any choice and so do not jump. It comes from as many steps of Cholesky's elimination as the group's rank,
each with the row that has the largest remaining diagonal (N. J. Higham, Analysis of the Cholesky decomposition of a
semi-definite matrix, 1990): N = L L^T with thin L, and N^+ = L (L^T L)^-1 (L^T L)^-1 L^T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from bellcrank.dynamics.frame_pairs import Equation
from bellcrank.dynamics.ltl_factorisation import Rows, factorise, full_matrix, nonzero_triangle, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.scalar import Scalar, dot, fabs, is_zero, maximum, minimum, sqrt, step, where

LEAST_PIVOT = 1e-15  # remainder of a row, relative to the largest of its group, below which it is rounding


@dataclass(frozen=True)
class RedundancyGroup:
    """Equations that may depend on each other, as places in `LoopRank.rows`."""

    places: tuple[int, ...]
    rank: int


@dataclass(frozen=True)
class LoopRank:
    """Nontrivial loop equations, their groups, natural sizes, and settings for their solution."""

    rows: tuple[int, ...] = ()  # indices of the nontrivial equations
    groups: tuple[RedundancyGroup, ...] = ()
    scale: tuple[float, ...] = ()  # usual size of each row, in natural sizes of coordinates
    loop: tuple[int, ...] = ()  # index of the loop of each row
    columns: tuple[float, ...] = ()  # the natural size of each element of v (constraint_values.py); empty: 1
    usual_pivot: float = 1.0  # usual size of a partition's pivots, if below the common size, relative to that
    usual_conditioning: float = 1.0  # the same for multipliers (acceleration_accuracy.py)
    refinements: int = 0  # number of refinements of multipliers by the residual of C a = gamma

    @property
    def rank(self) -> int:
        """Return the number of independent equations."""
        return len(self.rows) - sum(len(g.places) - g.rank for g in self.groups)

    def natural(self, nv: int) -> tuple[float, ...]:
        """Return the natural size of each of the `nv` elements of v."""
        return self.columns or (1.0,) * nv

    def select(self, every: Sequence[Equation]) -> list[Equation]:
        """Return the nontrivial equations among `every`."""
        return [every[k] for k in self.rows]


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Solution for the multipliers, with a measure of its conditioning."""

    values: list[Scalar]
    # Smallest independent part of a row, relative to its loop's rows: 0 in singular configurations.
    conditioning: Scalar


Product = Callable[[int, int], Scalar]
Inverse = Callable[[Vector], list[Scalar]]


def solve_multipliers(rank: LoopRank, product: Product, right: Vector) -> Multipliers:
    """Return x with N x = right.

    Parameters
    ----------
    rank
        Rank of the loop equations.
    product
        product(i, j) is the element of N for j <= i, places in found.rows.
    right
        Right-hand side.
    """
    solved = _solve(rank, product, right)
    if rank.usual_conditioning == 1.0:
        return solved
    return replace(solved, conditioning=solved.conditioning * (1.0 / rank.usual_conditioning))


def _solve(rank: LoopRank, product: Product, right: Vector) -> Multipliers:
    n = len(rank.rows)
    N: Rows = [{j: x for j in range(i + 1) if not is_zero(x := product(i, j))} for i in range(n)]
    names = [str(k) for k in rank.rows]
    if not rank.groups:
        pivots = zip(factorise(N, names)[1], _row_sizes(rank, N), strict=True)
        least = reduce(minimum, (fabs(pivot / size) for pivot, size in pivots), 1.0)
        return Multipliers(solve(N, right, names), sqrt(least))
    return _solve_by_groups(rank, N, list(right))


def _row_sizes(rank: LoopRank, N: Rows) -> list[Scalar]:
    """Return the diagonal of N as if all rows of a loop were as large as the largest one, since a row may vanish."""
    each = [_scaled(row[k], rank.scale[k] ** -2) if k in row else 0.0 for k, row in enumerate(N)]
    most: dict[int, Scalar] = {}
    for loop, x in zip(rank.loop, each, strict=True):
        most[loop] = maximum(most[loop], x) if loop in most else x
    return [_scaled(most[loop], scale**2) for loop, scale in zip(rank.loop, rank.scale, strict=True)]


def _solve_by_groups(rank: LoopRank, N: Rows, b: list[Scalar]) -> Multipliers:
    """Eliminate first the rows that depend on no other, then the groups; and substitute back."""
    weight = _weights(rank)
    A = full_matrix([{j: _scaled(x, weight[i] * weight[j]) for j, x in row.items()} for i, row in enumerate(N)])
    b = [_scaled(x, w) for x, w in zip(b, weight, strict=True)]
    sizes = _row_sizes(rank, N)
    blocks = _blocks(rank)
    later = [[k for other in blocks[first + 1 :] for k in other.places] for first in range(len(blocks))]
    least: Scalar = 1.0
    inverses: list[Inverse] = []
    for block, later_rows in zip(blocks, later, strict=True):
        step("L", str(block.places[0]))
        group_rows = block.places
        size = reduce(maximum, [_scaled(sizes[k], weight[k] ** 2) for k in group_rows])
        inverse, smallest_pivot = _pseudo_inverse([[A[i][j] for j in group_rows] for i in group_rows], size, block.rank)
        least = minimum(least, smallest_pivot)
        _eliminate(A, b, group_rows, later_rows, inverse)
        inverses.append(inverse)
    x: list[Scalar] = [0.0] * len(b)
    for block, later_rows, inverse in reversed(list(zip(blocks, later, inverses, strict=True))):
        step("lambda", str(block.places[0]))
        right = [b[k] - dot([A[k][j] for j in later_rows], [x[j] for j in later_rows]) for k in block.places]
        for k, y in zip(block.places, inverse(right), strict=True):
            x[k] = y
    return Multipliers([_scaled(y, w) for y, w in zip(x, weight, strict=True)], sqrt(maximum(least, 0.0)))


def _blocks(rank: LoopRank) -> list[RedundancyGroup]:
    """Return each row that is in no group as a block of its own, and then the groups."""
    tied = {k for group in rank.groups for k in group.places}
    return [RedundancyGroup((k,), 1) for k in reversed(range(len(rank.rows))) if k not in tied] + list(rank.groups)


def _weights(rank: LoopRank) -> list[float]:
    """Return weights that equalise the rows of a group; independent rows keep their size."""
    weight = [1.0] * len(rank.rows)
    for group in rank.groups:
        for k in group.places:
            weight[k] = 1.0 / rank.scale[k]
    return weight


def _eliminate(
    A: list[list[Scalar]], b: list[Scalar], places: Sequence[int], later: Sequence[int], inverse: Inverse
) -> None:
    """Eliminate the unknowns `places` from the later equations."""
    for j in later:
        column = [A[i][j] for i in places]
        if all(is_zero(x) for x in column):
            continue
        move = inverse(column)
        for i in later:
            if i <= j:
                A[i][j] = A[j][i] = A[i][j] - dot([A[k][i] for k in places], move)
        b[j] = b[j] - dot(move, [b[k] for k in places])


def _pseudo_inverse(A: list[list[Scalar]], size: Scalar, rank: int) -> tuple[Inverse, Scalar]:
    """Return a function from b to the smallest x with A x = b, and the smallest relative pivot."""
    if len(A) == 1:
        one = 1.0 / A[0][0]
        return (lambda b: [b[0] * one]), fabs(A[0][0] / size)
    L, least = thin_cholesky(A, size, rank)
    inner = nonzero_triangle([[dot(p, q) for q in L] for p in L])
    names = [str(k) for k in range(rank)]

    def apply(b: Vector) -> list[Scalar]:
        y = solve(inner, solve(inner, [dot(column, b) for column in L], names), names)
        return [dot([column[i] for column in L], y) for i in range(len(b))]

    return apply, least / size


def thin_cholesky(A: list[list[Scalar]], size: Scalar, rank: int) -> tuple[list[list[Scalar]], Scalar]:
    """Return the columns of L with A = L L^T, as many as the rank, and the smallest pivot.

    Each pivot row is that with the largest diagonal of the remainder, selected by comparisons without branches.

    Parameters
    ----------
    A
        Positive semidefinite matrix.
    size
        Size of the rows.
    rank
        Rank of A.
    """
    n, least = len(A), size
    columns: list[list[Scalar]] = []
    for _ in range(rank):
        best, row = A[0][0], list(A[0])
        for i in range(1, n):
            larger = A[i][i] > best
            best = where(larger, A[i][i], best)
            row = [where(larger, x, y) for x, y in zip(A[i], row, strict=True)]
        least = minimum(least, best)
        one = 1.0 / sqrt(maximum(best, LEAST_PIVOT * size))
        column = [x * one for x in row]
        columns.append(column)
        lower = [[A[i][j] - column[i] * column[j] for j in range(i + 1)] for i in range(n)]
        A = [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    return columns, least


def _scaled(x: Scalar, factor: float) -> Scalar:
    return x if factor == 1.0 else x * factor
