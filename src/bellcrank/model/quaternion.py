"""Unit quaternions (x, y, z, w) and the exact motion under a constant velocity."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.scalar import Scalar, atan2, cos, sin, sqrt, where
from bellcrank.spatial.vector import Mat, Vec


def rotation_matrix(q: Sequence[Scalar]) -> Mat:
    """Return R_PC, child to parent, of the unit quaternion `q`.

    As in Pinocchio, a quaternion of another length is not normalised.
    """
    x, y, z, w = q
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Mat(
        Vec(1.0 - (yy + zz), xy - wz, xz + wy),
        Vec(xy + wz, 1.0 - (xx + zz), yz - wx),
        Vec(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def quaternion_product(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """Return the quaternion product of `a` and `b`."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


def quaternion_rate(q: Sequence[Scalar], w: Vec) -> list[Scalar]:
    """Return dq/dt = `q` (w, 0)/2 with the angular velocity `w` in the child's frame."""
    return quaternion_product(q, [0.5 * w.x, 0.5 * w.y, 0.5 * w.z, 0.0])


def _safe_angle(w: Vec) -> tuple[Scalar, Scalar, Scalar]:
    """Return angle^2, whether it is tiny, and the angle, or 1 where it is tiny.

    So there is never a division by zero, even in derivatives.
    """
    t2 = w.dot(w)
    tiny = t2 < 1e-8
    return t2, tiny, sqrt(where(tiny, 1.0, t2))


def rotate_quaternion(q: Sequence[Scalar], w: Vec) -> list[Scalar]:
    """Return `q` exp(`w`/2), normalised, so that rounding errors do not accumulate over a million steps."""
    t2, tiny, t = _safe_angle(w)
    half = t * 0.5
    k = where(tiny, 0.5 - t2 * (1.0 / 48.0), sin(half) / t)
    c = where(tiny, 1.0 - t2 * 0.125, cos(half))
    x, y, z, s = quaternion_product(q, [w.x * k, w.y * k, w.z * k, c])
    n = 1.0 / sqrt(x * x + y * y + z * z + s * s)
    return [x * n, y * n, z * n, s * n]


def arc_displacement(v: Vec, w: Vec) -> Vec:
    """Return the displacement of the origin under the constant body velocity (`v`, `w`) for one unit of time.

    It is (1 + (1-cos)/t^2 [w] + (t-sin)/t^3 [w]^2) v.
    """
    t2, tiny, t = _safe_angle(w)
    a = where(tiny, 0.5 - t2 * (1.0 / 24.0), (1.0 - cos(t)) / (t * t))
    b = where(tiny, 1.0 / 6.0 - t2 * (1.0 / 120.0), (t - sin(t)) / (t * t * t))
    wv = w.cross(v)
    moved: Vec = v + wv * a + w.cross(wv) * b
    return moved


def quaternion_difference(q0: Sequence[Scalar], q1: Sequence[Scalar]) -> tuple[Vec, Scalar]:
    """Return the turn w from `q0` to `q1`, at most pi, and the coefficient k that inverts `arc_displacement` along w.

    The inverse is 1 - [w]/2 + k [w]^2, with k = (1 - t/2 cot(t/2)) / t^2. Near zero both are series, over a range that
    their derivatives need: the closed forms lose digits there.
    """
    x, y, z, s = quaternion_product([-q0[0], -q0[1], -q0[2], q0[3]], q1)
    sign = where(s < 0.0, -1.0, 1.0)  # q1 and -q1 are the same rotation
    x, y, z, c = x * sign, y * sign, z * sign, s * sign
    s2, c2 = x * x + y * y + z * z, c * c
    small = s2 < c2 * 1e-3
    s = sqrt(where(small, 1.0, s2))
    half = atan2(s, c)
    u = where(small, s2, 0.0) / where(small, c2, 1.0)  # the tangent of half the angle, squared
    scale = where(
        small, (2.0 - u * (2 / 3 - u * (2 / 5 - u * (2 / 7 - u * (2 / 9))))) / where(small, c, 1.0), half / s * 2.0
    )
    w = Vec(x * scale, y * scale, z * scale)
    t2 = w.dot(w)
    near = 1 / 12 + t2 * (1 / 720 + t2 * (1 / 30240 + t2 * (1 / 1209600 + t2 * (1 / 47900160))))
    return w, where(small, near, (1.0 - half * c / s) / where(small, 1.0, t2))


def sinc_pair(t: Scalar) -> tuple[Scalar, Scalar]:
    """Return sin(t)/t and (1 - cos(t))/t at `t`."""
    tiny = t * t < 1e-8
    safe = where(tiny, 1.0, t)
    return where(tiny, 1.0 - t * t * (1.0 / 6.0), sin(safe) / safe), where(tiny, 0.5 * t, (1.0 - cos(safe)) / safe)
