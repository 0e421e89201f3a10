"""3-vectors, structured 3x3 matrices, motions and forces, over any scalar.

Elements that are the float 0.0 fold away when the scalar is a graph node, so sparsity costs nothing to write down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from bellcrank.scalar import Scalar


@dataclass(slots=True, eq=False)
class Vec:
    """A 3-vector."""

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
        """Return the scalar product with `o`."""
        return self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vec) -> Vec:
        """Return the vector product with `o`."""
        return Vec(
            self.y * o.z - self.z * o.y,
            self.z * o.x - self.x * o.z,
            self.x * o.y - self.y * o.x,
        )


def vec(xyz: Sequence[Scalar]) -> Vec:
    """Return the vector of three numbers `xyz`."""
    x, y, z = xyz
    return Vec(x, y, z)


ZERO = Vec(0.0, 0.0, 0.0)
AXES = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))


@dataclass(slots=True, eq=False)
class SymMat:
    """A symmetric 3x3 matrix: six numbers."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @property
    def rows(self) -> tuple[Vec, Vec, Vec]:
        """The three rows."""
        return Vec(self.xx, self.xy, self.xz), Vec(self.xy, self.yy, self.yz), Vec(self.xz, self.yz, self.zz)

    def __add__(self, o: SymMat) -> SymMat:
        return SymMat(self.xx + o.xx, self.yy + o.yy, self.zz + o.zz, self.xy + o.xy, self.xz + o.xz, self.yz + o.yz)

    def __sub__(self, o: SymMat) -> SymMat:
        return SymMat(self.xx - o.xx, self.yy - o.yy, self.zz - o.zz, self.xy - o.xy, self.xz - o.xz, self.yz - o.yz)

    def __mul__(self, s: Scalar) -> SymMat:
        return SymMat(self.xx * s, self.yy * s, self.zz * s, self.xy * s, self.xz * s, self.yz * s)

    def __matmul__(self, v: Vec) -> Vec:
        a, b, c = self.rows
        return Vec(a.dot(v), b.dot(v), c.dot(v))

    @property
    def inverse(self) -> SymMat:
        """The inverse: vector products of two rows each, over the determinant."""
        a, b, c = self.rows
        x, y, z = b.cross(c), c.cross(a), a.cross(b)
        d = 1.0 / a.dot(x)
        return SymMat(x.x * d, y.y * d, z.z * d, x.y * d, x.z * d, y.z * d)


def diagonal(x: Scalar, y: Scalar, z: Scalar) -> SymMat:
    """Return the diagonal matrix of `x`, `y` and `z`."""
    return SymMat(x, y, z, 0.0, 0.0, 0.0)


SYM_ZERO = diagonal(0.0, 0.0, 0.0)


def sym(rows: Sequence[Sequence[Scalar]]) -> SymMat:
    """Return the symmetric matrix whose upper triangle is in `rows`."""
    return SymMat(rows[0][0], rows[1][1], rows[2][2], rows[0][1], rows[0][2], rows[1][2])


@dataclass(slots=True, eq=False)
class Mat:
    """A general 3x3 matrix, as its rows."""

    a: Vec
    b: Vec
    c: Vec

    @property
    def rows(self) -> tuple[Vec, Vec, Vec]:
        """The three rows."""
        return self.a, self.b, self.c

    @property
    def T(self) -> Mat:
        """The transpose."""
        a, b, c = self.a, self.b, self.c
        return Mat(Vec(a.x, b.x, c.x), Vec(a.y, b.y, c.y), Vec(a.z, b.z, c.z))

    def __add__(self, o: Mat) -> Mat:
        return Mat(self.a + o.a, self.b + o.b, self.c + o.c)

    def __sub__(self, o: Mat) -> Mat:
        return Mat(self.a - o.a, self.b - o.b, self.c - o.c)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(self.a.dot(v), self.b.dot(v), self.c.dot(v))

    def times(self, o: Mat) -> Mat:
        """Return the matrix product with `o`."""
        t = o.T
        return Mat(t @ self.a, t @ self.b, t @ self.c)


IDENTITY = Mat(*AXES)


def cross_matrix(h: Vec) -> Mat:
    """Return [h] with [h] v = h x v for the vector `h`."""
    return Mat(Vec(0.0, -h.z, h.y), Vec(h.z, 0.0, -h.x), Vec(-h.y, h.x, 0.0))


@dataclass(slots=True, eq=False)
class SpatialPair:
    """Angular and linear part: the common base of motions and forces."""

    ang: Vec
    lin: Vec

    def __add__(self, o: Self) -> Self:
        return type(self)(self.ang + o.ang, self.lin + o.lin)

    def __sub__(self, o: Self) -> Self:
        return type(self)(self.ang - o.ang, self.lin - o.lin)

    def __mul__(self, s: Scalar) -> Self:
        return type(self)(self.ang * s, self.lin * s)

    def rotated(self, R: Mat) -> Self:
        """Return the pair in parent axes; `R` rotates child axes to parent axes."""
        return type(self)(R @ self.ang, R @ self.lin)


class Motion(SpatialPair):
    """A velocity, an acceleration, or a column of a joint's motion subspace."""

    __slots__ = ()

    def dot(self, f: Force) -> Scalar:
        """Return the power of force `f` along this motion."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)

    def cross(self, o: Motion) -> Motion:
        """Return the motion cross product with `o`: the rate of change of `o` when it is carried with this velocity."""
        return Motion(self.ang.cross(o.ang), self.ang.cross(o.lin) + self.lin.cross(o.ang))


class Force(SpatialPair):
    """A moment about the frame's origin, and a force."""

    __slots__ = ()


NO_MOTION = Motion(ZERO, ZERO)
NO_FORCE = Force(ZERO, ZERO)


@dataclass(slots=True, eq=False)
class Acceleration:
    """Acceleration of a body-fixed frame for the Newton-Euler equations: w, dw/dt, and a of the origin."""

    w: Vec
    dw: Vec
    a: Vec

    def through_joint(self, vJ: Motion, aJ: Motion) -> Acceleration:
        """Return the acceleration beyond a joint, with all Coriolis terms; everything in the child's axes.

        Parameters
        ----------
        vJ, aJ
            Velocity and acceleration of the child relative to this frame.
        """
        w, u = self.w, vJ.ang
        return Acceleration(
            w + u,
            self.dw + w.cross(u) + aJ.ang,
            self.a + (w + w + u).cross(vJ.lin) + aJ.lin,
        )

    @property
    def K(self) -> Mat:
        """The velocity-product matrix [dw] + [w][w]: the acceleration of the body's point r is a + K r."""
        w, dw = self.w, self.dw
        xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
        xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
        return Mat(
            Vec(-(yy + zz), xy - dw.z, xz + dw.y),
            Vec(xy + dw.z, -(xx + zz), yz - dw.x),
            Vec(xz - dw.y, yz + dw.x, -(xx + yy)),
        )


AT_REST = Acceleration(ZERO, ZERO, ZERO)


def euler_moment(I: SymMat, m: Acceleration) -> Vec:
    """Return I dw + w x (I w) for second moments `I` and acceleration `m`.

    The products w_i w_j are shared with K: 15 multiplications for a full matrix instead of 24.
    """
    w, dw, K = m.w, m.dw, m.K
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    return Vec(
        I.xx * dw.x + (I.zz - I.yy) * (w.y * w.z) - I.xy * K.c.x + I.xz * K.b.x + I.yz * (yy - zz),
        I.yy * dw.y + (I.xx - I.zz) * (w.x * w.z) + I.xy * K.c.y - I.yz * K.a.y + I.xz * (zz - xx),
        I.zz * dw.z + (I.yy - I.xx) * (w.x * w.y) - I.xz * K.b.z + I.yz * K.a.z + I.xy * (xx - yy),
    )


Term = TypeVar("Term", Vec, SymMat, Force, Motion)


def weighted_sum(terms: Iterable[Term], weights: Iterable[Scalar], start: Any = ZERO) -> Term:
    """Return `start` plus the `terms`, each times its weight of `weights`, in their order."""
    total: Term = start
    for term, x in zip(terms, weights, strict=True):
        total = total + term * x
    return total
