"""Products with matrices most of whose elements are zeros: of a large tree with loops, most pairs of joints never meet.

Nothing is computed with a zero, so that the work to write such a product down grows with what is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bellcrank.dynamics.sweep import Vector
from bellcrank.scalar import Scalar, total

Column: TypeAlias = dict[int, Scalar]  # elements by their places, without zeros


def columns(M: Sequence[Vector]) -> list[Column]:
    """Of a square matrix."""
    found: list[Column] = [{} for _ in M]
    for i, row in enumerate(M):
        for k, x in enumerate(row):
            if x.__class__ is not float or x != 0.0:
                found[k][i] = x
    return found


def times(M: Sequence[Column], column: Column) -> Column:
    """A matrix by its columns, times a column."""
    places = sorted({i for k in column for i in M[k]})
    return {i: total(M[k][i] * x for k, x in column.items() if i in M[k]) for i in places}


def dot(row: Vector, x: Vector) -> Scalar:
    return total(a * b for a, b in zip(row, x, strict=True) if a.__class__ is not float or a != 0.0)
