"""A slide along z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import SLIDE_Z, Kind, shift_z, slid_alike, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Motion


class Prismatic(Kind):
    name, nq, nv = "prismatic", 1, 1
    coordinates = ("distance",)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform([turn_z(0.0, self.angle0), *shift_z(q[0] + self.distance0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return [SLIDE_Z]

    def unfelt(self, inertia: Inertia) -> Inertia:
        return slid_alike(inertia)
