"""Motions, forces and what lies between them as six numbers and matrices of 6 x 6, angular parts first.

The rest of the house keeps vectors of three, which know more zeros; here are matrices that are full anyhow.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Articulated
from bellcrank.spatial.vector import Force, Mat, Motion, Sym, Vec

Six = Sequence[Scalar]
Matrix = Sequence[Six]  # rows


def six(x: Force | Motion) -> list[Scalar]:
    return [*x.ang, *x.lin]


def dense(IA: Articulated) -> list[list[Scalar]]:
    """Its lower triangle is all that is looked at."""
    I, M, H = ([list(row) for row in part.rows] for part in (IA.I, IA.M, IA.H))
    return [*([*I[i], *H[i]] for i in range(3)), *([H[0][i], H[1][i], H[2][i], *M[i]] for i in range(3))]


def dot(x: Six, y: Six) -> Scalar:
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def times(A: Matrix, B: Matrix) -> list[list[Scalar]]:
    return [[dot(row, [B[m][j] for m in range(6)]) for j in range(6)] for row in A]


def column_dot(A: Matrix, i: int, B: Matrix, j: int) -> Scalar:
    return dot([row[i] for row in A], [row[j] for row in B])


def force(x: Six) -> Force:
    return Force(Vec(*x[:3]), Vec(*x[3:]))


def motion(x: Six) -> Motion:
    return Motion(Vec(*x[:3]), Vec(*x[3:]))


def articulated(rows: Sequence[Six]) -> Articulated:
    I = Sym(rows[0][0], rows[1][1], rows[2][2], rows[1][0], rows[2][0], rows[2][1])
    M = Sym(rows[3][3], rows[4][4], rows[5][5], rows[4][3], rows[5][3], rows[5][4])
    H = Mat(*(Vec(*(rows[3 + j][i] for j in range(3))) for i in range(3)))
    return Articulated(I, H, M)


def whole(rows: Sequence[Six]) -> list[list[Scalar]]:
    """A symmetric matrix from its lower triangle."""
    return [[rows[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]
