"""Motion and force vectors as pairs of 3-vectors, and the velocity-product matrix K of a turning body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import ZERO, Mat, Sym, Vec


@dataclass(slots=True, eq=False)
class Pair:
    """Angular and linear part, and what motions and forces do alike."""

    ang: Vec
    lin: Vec

    def __add__(self, o: Self) -> Self:
        return type(self)(self.ang + o.ang, self.lin + o.lin)

    def __sub__(self, o: Self) -> Self:
        return type(self)(self.ang - o.ang, self.lin - o.lin)

    def __mul__(self, s: Scalar) -> Self:
        return type(self)(self.ang * s, self.lin * s)

    def turned(self, R: Mat) -> Self:
        """In the axes of the parent, where R takes the child's axes to."""
        return type(self)(R @ self.ang, R @ self.lin)


class Motion(Pair):
    """A velocity, an acceleration, or a column of a joint's motion subspace."""

    __slots__ = ()

    def dot(self, f: Force) -> Scalar:
        """Power of a force along this motion."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)

    def cross(self, o: Motion) -> Motion:
        """How o changes in space while it is carried along with this velocity."""
        return Motion(self.ang.cross(o.ang), self.ang.cross(o.lin) + self.lin.cross(o.ang))


class Force(Pair):
    """Moment about the frame's origin, and force."""

    __slots__ = ()


NO_MOTION = Motion(ZERO, ZERO)
NO_FORCE = Force(ZERO, ZERO)


@dataclass(slots=True, eq=False)
class Acceleration:
    """How a body-fixed frame moves, as Newton and Euler need it: w, its rate, and the acceleration of the origin."""

    w: Vec
    dw: Vec
    a: Vec

    def through_joint(self, vJ: Motion, aJ: Motion) -> Acceleration:
        """Beyond a joint that moves with vJ and aJ against this frame (all in the child's axes): Coriolis terms and
        all.
        """
        w, u = self.w, vJ.ang
        return Acceleration(
            w + u,
            self.dw + w.cross(u) + aJ.ang,
            self.a + (w + w + u).cross(vJ.lin) + aJ.lin,
        )

    @property
    def K(self) -> Mat:
        """[dw] + [w][w]: the acceleration of the body's point r is a + K r."""
        w, dw = self.w, self.dw
        xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
        xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
        return Mat(
            Vec(-(yy + zz), xy - dw.z, xz + dw.y),
            Vec(xy + dw.z, -(xx + zz), yz - dw.x),
            Vec(xz - dw.y, yz + dw.x, -(xx + yy)),
        )


AT_REST = Acceleration(ZERO, ZERO, ZERO)


def euler_moment(I: Sym, m: Acceleration) -> Vec:
    """I dw + w x (I w), with the products w_i w_j shared with K: 15 multiplications for a full matrix instead of 24."""
    w, dw, K = m.w, m.dw, m.K
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    return Vec(
        I.xx * dw.x + (I.zz - I.yy) * (w.y * w.z) - I.xy * K.c.x + I.xz * K.b.x + I.yz * (yy - zz),
        I.yy * dw.y + (I.xx - I.zz) * (w.x * w.z) + I.xy * K.c.y - I.yz * K.a.y + I.xz * (zz - xx),
        I.zz * dw.z + (I.yy - I.xx) * (w.x * w.y) - I.xz * K.b.z + I.yz * K.a.z + I.xy * (xx - yy),
    )
