"""Motions, forces and inertias as lists of six numbers and full 6 x 6 matrices, angular parts first.

The rest of the package uses 3-vectors, which keep more zeros; these matrices are full anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.scalar import Scalar, dot
from bellcrank.spatial.inertia import ArticulatedInertia
from bellcrank.spatial.vector import Force, Mat, Motion, SymMat, Vec

SixVector = Sequence[Scalar]
SixMatrix = Sequence[SixVector]  # rows


def six_numbers(x: Force | Motion) -> list[Scalar]:
    """Return a force or motion `x` as six numbers."""
    return [*x.ang, *x.lin]


def dense_matrix(IA: ArticulatedInertia) -> list[list[Scalar]]:
    """Return the articulated-body inertia `IA` as rows of a 6 x 6 matrix; only its lower triangle is used."""
    I, M, H = ([list(row) for row in part.rows] for part in (IA.I, IA.M, IA.H))
    return [*([*I[i], *H[i]] for i in range(3)), *([H[0][i], H[1][i], H[2][i], *M[i]] for i in range(3))]


def matrix_product(A: SixMatrix, B: SixMatrix) -> list[list[Scalar]]:
    """Return the matrix product of `A` and `B`."""
    return [[dot(row, [B[m][j] for m in range(6)]) for j in range(6)] for row in A]


def column_dot(A: SixMatrix, i: int, B: SixMatrix, j: int) -> Scalar:
    """Return the scalar product of columns.

    Parameters
    ----------
    A, i
        A matrix and its column.
    B, j
        Another matrix and its column.
    """
    return dot([row[i] for row in A], [row[j] for row in B])


def to_force(x: SixVector) -> Force:
    """Return the six numbers `x` as a Force."""
    return Force(Vec(*x[:3]), Vec(*x[3:]))


def to_motion(x: SixVector) -> Motion:
    """Return the six numbers `x` as a Motion."""
    return Motion(Vec(*x[:3]), Vec(*x[3:]))


def to_articulated(rows: Sequence[SixVector]) -> ArticulatedInertia:
    """Return the articulated-body inertia whose lower triangle is in `rows`."""
    I = SymMat(rows[0][0], rows[1][1], rows[2][2], rows[1][0], rows[2][0], rows[2][1])
    M = SymMat(rows[3][3], rows[4][4], rows[5][5], rows[4][3], rows[5][3], rows[5][4])
    H = Mat(*(Vec(*(rows[3 + j][i] for j in range(3))) for i in range(3)))
    return ArticulatedInertia(I, H, M)


def symmetric_matrix(rows: Sequence[SixVector]) -> list[list[Scalar]]:
    """Return the symmetric matrix whose lower triangle is in `rows`."""
    return [[rows[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]
