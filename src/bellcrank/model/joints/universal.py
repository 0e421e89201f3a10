"""The universal joint: a turn about z (fixed in the parent), then about x (fixed in the child)."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import FORCES, Kind, rotation_invariant_part, turn_z
from bellcrank.scalar import Scalar, cos, sin
from bellcrank.spatial.moves import Transform, Turn
from bellcrank.spatial.vector import AXES, NO_MOTION, ZERO, Force, Motion, Vec


class Universal(Kind):
    """Two turns about perpendicular axes; q are the two angles, v their rates."""

    name, nq, nv, has_axis = "universal", 2, 2, False
    coordinates = ("angle about the first axis", "angle about the second axis")
    invariant_part = rotation_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([turn_z(q[0], 0.0), Turn(0, cos(q[1]), sin(q[1]))])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        return [Motion(Vec(0.0, sin(q[1]), cos(q[1])), ZERO), Motion(AXES[0], ZERO)]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Return (dS/dt) v at `q` and `v`."""
        k = v[0] * v[1]
        return Motion(Vec(0.0, cos(q[1]) * k, -(sin(q[1]) * k)), ZERO)

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of dS/dt at `q` and `v`."""
        return [Motion(Vec(0.0, cos(q[1]) * v[1], -(sin(q[1]) * v[1])), ZERO), NO_MOTION]

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """Return the six transmitted forces (W, T) at `q`."""
        c, s = cos(q[1]), sin(q[1])
        return [Force(Vec(0.0, s, c), ZERO), FORCES[0]], [Force(Vec(0.0, c, -s), ZERO), *FORCES[3:]]
