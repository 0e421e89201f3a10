"""Inertias about a frame's origin: of a rigid body (ten numbers) and of an articulated one (twenty-one).

Motions, forces and articulated inertias may also be lists of six numbers and full 6 x 6 matrices, angular parts first.
The rest of the package uses 3-vectors, which keep more zeros; these matrices are full anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.parameters import nominal
from bellcrank.scalar import Scalar, dot, is_zero
from bellcrank.spatial.vector import (
    SYM_ZERO,
    ZERO,
    Acceleration,
    Force,
    Mat,
    Motion,
    SymMat,
    Vec,
    cross_matrix,
    diagonal,
    euler_moment,
)

# Moments about the centre of mass below this fraction of the moments about the origin are rounding errors.
RELATIVE_NOISE = 1e-14
SixVector = Sequence[Scalar]
SixMatrix = Sequence[SixVector]  # rows


@dataclass(slots=True, eq=False)
class Inertia:
    """Mass m, first moment h = m c, and second moments I, all about the frame's origin."""

    m: Scalar
    h: Vec
    I: SymMat

    def __add__(self, o: Inertia) -> Inertia:
        return Inertia(self.m + o.m, self.h + o.h, self.I + o.I)

    def __sub__(self, o: Inertia) -> Inertia:
        return Inertia(self.m - o.m, self.h - o.h, self.I - o.I)

    def __matmul__(self, v: Motion) -> Force:
        return Force(self.I @ v.ang + self.h.cross(v.lin), v.lin * self.m + v.ang.cross(self.h))

    def newton_euler(self, m: Acceleration) -> Force:
        """Return the force that gives the acceleration `m`: f = m a + K h, n = I dw + w x I w + h x a."""
        return Force(euler_moment(self.I, m) + self.h.cross(m.a), m.a * self.m + m.K @ self.h)

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        """All ten numbers in one tuple."""
        h, I = self.h, self.I
        return self.m, h.x, h.y, h.z, I.xx, I.yy, I.zz, I.xy, I.xz, I.yz

    @property
    def centre(self) -> Vec:
        """Centre of mass h / m; the origin where there is no mass."""
        return ZERO if is_zero(self.m) else self.h * (1.0 / self.m)

    @property
    def I_centre(self) -> SymMat:
        """Second moments about the centre of mass, the inverse of `about_centre`, with rounding errors set to zero."""
        I, J = self.I, self.I - about_centre(self.m, self.centre, SYM_ZERO).I
        large = I.xx + I.yy + I.zz

        def clean(x: Scalar) -> Scalar:
            return 0.0 if isinstance(x, float) and isinstance(large, float) and abs(x) < RELATIVE_NOISE * large else x

        return SymMat(clean(J.xx), clean(J.yy), clean(J.zz), clean(J.xy), clean(J.xz), clean(J.yz))

    @property
    def central(self) -> Inertia:
        """The inertia of the same body about its centre of mass."""
        return Inertia(self.m, ZERO, self.I_centre)

    @property
    def invertible(self) -> bool:
        """True if a force determines the acceleration: there is mass, and no central moment is (nearly) zero.

        Free parameters take their nominal values.
        """
        m, J = nominal((self.m, self.I_centre))
        a, b, c = J.rows
        return bool(m > 0.0 and a.dot(b.cross(c)) > 1e-7 * (J.xx + J.yy + J.zz) ** 3)

    def kinetic_energy(self, v: Motion) -> Scalar:
        """Return the kinetic energy at velocity `v`."""
        return 0.5 * v.dot(self @ v)


NO_INERTIA = Inertia(0.0, ZERO, SYM_ZERO)


def about_centre(m: Scalar, com: Vec, I_com: SymMat) -> Inertia:
    """Return the inertia about the origin, by the parallel axis theorem.

    Parameters
    ----------
    m
        Mass.
    com
        Centre of mass.
    I_com
        Second moments about the centre of mass.
    """
    h = com * m
    moments = com.y * h.y + com.z * h.z, com.x * h.x + com.z * h.z, com.x * h.x + com.y * h.y
    products = -(com.x * h.y), -(com.x * h.z), -(com.y * h.z)
    return Inertia(m, h, I_com + SymMat(*moments, *products))


@dataclass(slots=True, eq=False)
class ArticulatedInertia:
    """Articulated-body inertia: n = I dw + H a, f = H^T dw + M a for an acceleration of the frame."""

    I: SymMat
    H: Mat
    M: SymMat

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.I + o.I, self.H + o.H, self.M + o.M)

    def __matmul__(self, a: Motion) -> Force:
        return Force(self.I @ a.ang + self.H @ a.lin, self.H.T @ a.ang + self.M @ a.lin)

    def across_joint(self, s: Motion, armature: Scalar = 0.0) -> FreedInertia:
        """Return the inertia that remains when the motion `s` is free: IA - U U^T / D with U = IA s.

        Where the armature is zero, the rest is exactly zero along s and s.psi is exactly one. Where s is moreover a
        coordinate axis, that row and that element are set instead of being computed as x - x x/x and x/x, which
        constant folding would not simplify.

        Parameters
        ----------
        s
            The free motion.
        armature
            Rotor inertia that resists it.
        """
        U = self @ s
        D = s.dot(U) + armature
        inverse = 1.0 / D
        axes = [i for i, x in enumerate((*s.ang, *s.lin)) if not is_zero(x)]
        alone = is_zero(armature) and len(axes) == 1
        row = axes[0] if alone and (*s.ang, *s.lin)[axes[0]] == 1.0 else -1
        u = [*U.ang, *U.lin]
        psi = [1.0 if i == row else x * inverse for i, x in enumerate(u)]

        def left(i: int, j: int, x: Scalar) -> Scalar:
            return 0.0 if row in (i, j) else x - u[i] * psi[j]

        def symmetric(S: SymMat, o: int) -> SymMat:
            return SymMat(
                left(o, o, S.xx),
                left(o + 1, o + 1, S.yy),
                left(o + 2, o + 2, S.zz),
                left(o, o + 1, S.xy),
                left(o, o + 2, S.xz),
                left(o + 1, o + 2, S.yz),
            )

        H = [Vec(left(i, 3, r.x), left(i, 4, r.y), left(i, 5, r.z)) for i, r in enumerate(self.H.rows)]
        remaining = ArticulatedInertia(symmetric(self.I, 0), Mat(*H), symmetric(self.M, 3))
        return FreedInertia(D, inverse, Force(Vec(*psi[:3]), Vec(*psi[3:])), remaining)


@dataclass(slots=True, eq=False)
class FreedInertia:
    """Articulated-body inertia across a joint axis."""

    D: Scalar  # s.IA s + armature
    inverse: Scalar  # of D
    psi: Force  # IA s / D
    rest: ArticulatedInertia


def articulated_inertia(i: Inertia) -> ArticulatedInertia:
    """Return the articulated-body inertia of the rigid body `i`."""
    return ArticulatedInertia(i.I, cross_matrix(i.h), diagonal(i.m, i.m, i.m))


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
