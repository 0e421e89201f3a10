"""3-vectors and 3x3 matrices that carry their structure, over any scalar.

Elements that are the float 0.0 fold away when the scalar is a graph node, so sparsity costs nothing to write down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bellcrank.scalar import Scalar


@dataclass(slots=True, eq=False)
class Vec:
    x: Scalar
    y: Scalar
    z: Scalar

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def __add__(self, o: Vec) -> Vec:
        return Vec(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vec) -> Vec:
        return Vec(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vec:
        return Vec(self.x * s, self.y * s, self.z * s)

    def dot(self, o: Vec) -> Scalar:
        return self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vec) -> Vec:
        return Vec(
            self.y * o.z - self.z * o.y,
            self.z * o.x - self.x * o.z,
            self.x * o.y - self.y * o.x,
        )


def vec(xyz: Sequence[Scalar]) -> Vec:
    x, y, z = xyz
    return Vec(x, y, z)


ZERO = Vec(0.0, 0.0, 0.0)
AXES = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))


@dataclass(slots=True, eq=False)
class Sym:
    """A symmetric matrix: six numbers."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @property
    def rows(self) -> tuple[Vec, Vec, Vec]:
        return Vec(self.xx, self.xy, self.xz), Vec(self.xy, self.yy, self.yz), Vec(self.xz, self.yz, self.zz)

    def __add__(self, o: Sym) -> Sym:
        return Sym(self.xx + o.xx, self.yy + o.yy, self.zz + o.zz, self.xy + o.xy, self.xz + o.xz, self.yz + o.yz)

    def __sub__(self, o: Sym) -> Sym:
        return Sym(self.xx - o.xx, self.yy - o.yy, self.zz - o.zz, self.xy - o.xy, self.xz - o.xz, self.yz - o.yz)

    def __matmul__(self, v: Vec) -> Vec:
        a, b, c = self.rows
        return Vec(a.dot(v), b.dot(v), c.dot(v))

    @property
    def inverse(self) -> Sym:
        """Rows that are across two of the three, over the determinant."""
        a, b, c = self.rows
        x, y, z = b.cross(c), c.cross(a), a.cross(b)
        d = 1.0 / a.dot(x)
        return Sym(x.x * d, y.y * d, z.z * d, x.y * d, x.z * d, y.z * d)


def diagonal(x: Scalar, y: Scalar, z: Scalar) -> Sym:
    return Sym(x, y, z, 0.0, 0.0, 0.0)


SYM_ZERO = diagonal(0.0, 0.0, 0.0)


def sym(rows: Sequence[Sequence[Scalar]]) -> Sym:
    """From the upper triangle of three rows."""
    return Sym(rows[0][0], rows[1][1], rows[2][2], rows[0][1], rows[0][2], rows[1][2])


@dataclass(slots=True, eq=False)
class Mat:
    """Any 3x3 matrix, as its rows."""

    a: Vec
    b: Vec
    c: Vec

    @property
    def rows(self) -> tuple[Vec, Vec, Vec]:
        return self.a, self.b, self.c

    @property
    def T(self) -> Mat:
        a, b, c = self.a, self.b, self.c
        return Mat(Vec(a.x, b.x, c.x), Vec(a.y, b.y, c.y), Vec(a.z, b.z, c.z))

    def __add__(self, o: Mat) -> Mat:
        return Mat(self.a + o.a, self.b + o.b, self.c + o.c)

    def __sub__(self, o: Mat) -> Mat:
        return Mat(self.a - o.a, self.b - o.b, self.c - o.c)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(self.a.dot(v), self.b.dot(v), self.c.dot(v))

    def times(self, o: Mat) -> Mat:
        t = o.T
        return Mat(t @ self.a, t @ self.b, t @ self.c)


IDENTITY = Mat(*AXES)


def cross_matrix(h: Vec) -> Mat:
    """[h] with [h] v = h x v."""
    return Mat(Vec(0.0, -h.z, h.y), Vec(h.z, 0.0, -h.x), Vec(-h.y, h.x, 0.0))
