"""The prismatic joint: a slide along z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import SLIDE_Z, Kind, shift_z, slide_invariant_part, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import Transform


class Prismatic(Kind):
    """A slide along z; q is the distance, v its rate."""

    name, nq, nv = "prismatic", 1, 1
    coordinates = ("distance",)
    columns = (SLIDE_Z,)
    invariant_part = slide_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([turn_z(0.0, self.angle0), *shift_z(q[0] + self.distance0)])
