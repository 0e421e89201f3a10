"""The planar joint.

q is (x, y, angle) of the child in the parent's xy plane; v = (vx, vy, w) in the child's axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import TURN_Z, Kind, screw_invariant_part, turn_z
from bellcrank.model.quaternion import sinc_pair
from bellcrank.scalar import Scalar, cos, sin
from bellcrank.spatial.moves import Shift, Transform
from bellcrank.spatial.vector import AXES, ZERO, Motion, Vec


class Planar(Kind):
    """A plate on a plane: two translations and a turn about z."""

    name, nq, nv, has_axis = "planar", 3, 3, False
    coordinates = ("x", "y", "angle")
    columns = (Motion(ZERO, AXES[0]), Motion(ZERO, AXES[1]), TURN_Z)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([Shift(Vec(q[0], q[1], 0.0)), turn_z(q[2], 0.0)])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        c, s = cos(q[2]), sin(q[2])
        return [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return w x v for the velocities `v`."""
        return [-(v[2] * v[1]), v[2] * v[0], 0.0]

    def felt(self, q: Sequence[Scalar], f: Sequence[Scalar]) -> list[Scalar]:
        """Return forces `f` on the coordinates at `q` as forces along v."""
        c, s = cos(q[2]), sin(q[2])
        return [c * f[0] + s * f[1], c * f[1] - s * f[0], f[2]]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        a, b = sinc_pair(dv[2])  # the arc of a constant body velocity
        dx, dy = a * dv[0] - b * dv[1], b * dv[0] + a * dv[1]
        c, s = cos(q[2]), sin(q[2])
        return [q[0] + c * dx - s * dy, q[1] + s * dx + c * dy, q[2] + dv[2]]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`; whole turns of the angle are kept."""
        turn, x, y = q1[2] - q0[2], q1[0] - q0[0], q1[1] - q0[1]
        a, b = sinc_pair(turn)
        c, s = cos(q0[2]), sin(q0[2])
        k = 1.0 / (a * a + b * b)
        x, y = (c * x + s * y) * k, (c * y - s * x) * k
        return [a * x + b * y, a * y - b * x, turn]
