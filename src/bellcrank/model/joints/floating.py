"""The floating joint, without constraint.

q = [x y z qx qy qz qw]; v = [linear, angular] in the child's frame, as in Pinocchio and ROS.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind
from bellcrank.model.quaternion import (
    arc_displacement,
    quaternion_difference,
    quaternion_rate,
    rotate_quaternion,
    rotation_matrix,
)
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import FullRotation, Shift, Transform
from bellcrank.spatial.vector import AXES, ZERO, Motion, vec


class Floating(Kind):
    """Free motion of the child: position and unit quaternion."""

    name, nq, nv, has_axis = "floating", 7, 6, False
    coordinates = ("x", "y", "z", "qx", "qy", "qz", "qw")
    columns = (*(Motion(ZERO, e) for e in AXES), *(Motion(e, ZERO) for e in AXES))

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([Shift(vec(q[:3])), FullRotation(rotation_matrix(q[3:]))])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        return [*(rotation_matrix(q[3:]) @ vec(v[:3])), *quaternion_rate(q[3:], vec(v[3:]))]

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return w x v for the velocities `v`."""
        return [*vec(v[3:]).cross(vec(v[:3])), 0.0, 0.0, 0.0]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        moved = vec(q[:3]) + rotation_matrix(q[3:]) @ arc_displacement(vec(dv[:3]), vec(dv[3:]))
        return [*moved, *rotate_quaternion(q[3:], vec(dv[3:]))]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`, the inverse of `integrate`."""
        w, k = quaternion_difference(q0[3:], q1[3:])
        p = rotation_matrix(q0[3:]).T @ (vec(q1[:3]) - vec(q0[:3]))
        turned = w.cross(p)
        return [*(p - turned * 0.5 + w.cross(turned) * k), *w]  # inverse of `arc_displacement`

    def neutral(self) -> list[float]:
        """Return the coordinates at which F coincides with G."""
        return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
