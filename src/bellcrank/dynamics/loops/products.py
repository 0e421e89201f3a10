"""Sparse matrix products, for large trees with loops in which most pairs of joints do not interact.

Zeros are skipped, so that the work to trace a product grows with its nonzero elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bellcrank.dynamics.sweep import Vector
from bellcrank.scalar import Scalar, total

Column: TypeAlias = dict[int, Scalar]  # nonzero elements by index


def columns(M: Sequence[Vector]) -> list[Column]:
    """Return the sparse columns of the square matrix `M`."""
    found: list[Column] = [{} for _ in M]
    for i, row in enumerate(M):
        for k, x in enumerate(row):
            if x.__class__ is not float or x != 0.0:
                found[k][i] = x
    return found


def times(M: Sequence[Column], column: Column) -> Column:
    """Return the matrix with columns `M`, times a `column`."""
    places = sorted({i for k in column for i in M[k]})
    return {i: total(M[k][i] * x for k, x in column.items() if i in M[k]) for i in places}


def dot(row: Vector, x: Vector) -> Scalar:
    """Return the inner product of `row` and `x`, skipping constant zeros in `row`."""
    return total(a * b for a, b in zip(row, x, strict=True) if a.__class__ is not float or a != 0.0)
