"""The revolute joint: a turn about z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import TURN_Z, Kind, shift_z, turn_invariant_part, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import Transform


class Revolute(Kind):
    """A turn about z; q is the angle, v its rate."""

    name, nq, nv = "revolute", 1, 1
    coordinates = ("angle",)
    columns = (TURN_Z,)
    invariant_part = turn_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(self.distance0), turn_z(q[0], self.angle0)])
