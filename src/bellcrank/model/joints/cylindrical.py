"""The cylindrical joint: a turn about z and an independent slide along z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import SLIDE_Z, TURN_Z, Kind, screw_invariant_part, shift_z, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import Transform


class Cylindrical(Kind):
    """A turn about z, then a slide along z; q is (angle, distance), v their rates."""

    name, nq, nv = "cylindrical", 2, 2
    coordinates = ("angle", "distance")
    columns = (TURN_Z, SLIDE_Z)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(q[1] + self.distance0), turn_z(q[0], self.angle0)])
