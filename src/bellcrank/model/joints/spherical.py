"""The spherical joint.

q is the unit quaternion (x, y, z, w) of child against parent; v is the angular velocity in the child's axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind, rotation_invariant_part
from bellcrank.model.quaternion import quaternion_difference, quaternion_rate, rotate_quaternion, rotation_matrix
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import FullRotation, Transform
from bellcrank.spatial.vector import AXES, ZERO, Motion, vec


class Spherical(Kind):
    """Any rotation about a common point."""

    name, nq, nv, has_axis = "spherical", 4, 3, False
    coordinates = ("qx", "qy", "qz", "qw")
    columns = tuple(Motion(e, ZERO) for e in AXES)
    invariant_part = rotation_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([FullRotation(rotation_matrix(q))])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        return quaternion_rate(q, vec(v))

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        return rotate_quaternion(q, vec(dv))

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`, the inverse of `integrate`."""
        return list(quaternion_difference(q0, q1)[0])

    def neutral(self) -> list[float]:
        """Return the coordinates at which F coincides with G."""
        return [0.0, 0.0, 0.0, 1.0]
