"""Sparse matrix products, for large trees with loops in which most pairs of joints do not interact.

Zeros are skipped, so that the work to trace a product grows with its nonzero elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.scalar import Scalar, ordered_sum

SparseColumn: TypeAlias = dict[int, Scalar]  # nonzero elements by index


def sparse_columns(M: Sequence[Vector]) -> list[SparseColumn]:
    """Return the sparse columns of the square matrix `M`."""
    sparse: list[SparseColumn] = [{} for _ in M]
    for i, row in enumerate(M):
        for k, x in enumerate(row):
            if x.__class__ is not float or x != 0.0:
                sparse[k][i] = x
    return sparse


def sparse_product(M: Sequence[SparseColumn], column: SparseColumn) -> SparseColumn:
    """Return the matrix with columns `M`, times a `column`."""
    places = sorted({i for k in column for i in M[k]})
    return {i: ordered_sum(M[k][i] * x for k, x in column.items() if i in M[k]) for i in places}


def sparse_dot(row: Vector, x: Vector) -> Scalar:
    """Return the inner product of `row` and `x`, skipping constant zeros in `row`."""
    return ordered_sum(a * b for a, b in zip(row, x, strict=True) if a.__class__ is not float or a != 0.0)
