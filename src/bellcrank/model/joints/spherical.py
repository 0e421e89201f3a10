"""A ball joint: q is the unit quaternion (x, y, z, w) of child against parent, v the angular velocity in the child."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind, point_mass
from bellcrank.model.quaternion import between, quaternion_rate, rotation_matrix, turned
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Transform
from bellcrank.spatial.vector import AXES, ZERO, Motion, vec


class Spherical(Kind):
    name, nq, nv, has_axis = "spherical", 4, 3, False
    coordinates = ("qx", "qy", "qz", "qw")

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform([FullRotation(rotation_matrix(q))])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return [Motion(e, ZERO) for e in AXES]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return quaternion_rate(q, vec(v))

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        return turned(q, vec(dv))

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        return list(between(q0, q1)[0])

    def neutral(self) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0]

    def unfelt(self, inertia: Inertia) -> Inertia:
        return point_mass(inertia)
