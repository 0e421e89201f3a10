"""The cylindrical joint: a turn about z and an independent slide along z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import SLIDE_Z, TURN_Z, Kind, screw_invariant_part, shift_z, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Motion


class Cylindrical(Kind):
    """A turn about z, then a slide along z; q is (angle, distance), v their rates."""

    name, nq, nv = "cylindrical", 2, 2
    coordinates = ("angle", "distance")

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(q[1] + self.distance0), turn_z(q[0], self.angle0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        return [TURN_Z, SLIDE_Z]

    def unfelt(self, inertia: Inertia) -> Inertia:
        """Return the part of a child's `inertia` that the joint's motion cannot change."""
        return screw_invariant_part(inertia)
