"""No constraint: q = [x y z qx qy qz qw], v = [linear, angular] in the child's frame, as Pinocchio and ROS have it."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind
from bellcrank.model.quaternion import arc, between, quaternion_rate, rotation_matrix, turned
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import FullRotation, Shift, Transform
from bellcrank.spatial.vector import AXES, ZERO, Motion, vec


class Floating(Kind):
    name, nq, nv, has_axis = "floating", 7, 6, False
    coordinates = ("x", "y", "z", "qx", "qy", "qz", "qw")

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform([Shift(vec(q[:3])), FullRotation(rotation_matrix(q[3:]))])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return [*(Motion(ZERO, e) for e in AXES), *(Motion(e, ZERO) for e in AXES)]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return [*(rotation_matrix(q[3:]) @ vec(v[:3])), *quaternion_rate(q[3:], vec(v[3:]))]

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        return [*vec(v[3:]).cross(vec(v[:3])), 0.0, 0.0, 0.0]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        moved = vec(q[:3]) + rotation_matrix(q[3:]) @ arc(vec(dv[:3]), vec(dv[3:]))
        return [*moved, *turned(q[3:], vec(dv[3:]))]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        w, k = between(q0[3:], q1[3:])
        p = rotation_matrix(q0[3:]).T @ (vec(q1[:3]) - vec(q0[:3]))
        turned = w.cross(p)
        return [*(p - turned * 0.5 + w.cross(turned) * k), *w]  # `arc` undone

    def neutral(self) -> list[float]:
        return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
