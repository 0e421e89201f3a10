"""A hinge: one turn about z."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import TURN_Z, Kind, shift_z, turn_z, turned_alike
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Motion


class Revolute(Kind):
    name, nq, nv = "revolute", 1, 1
    coordinates = ("angle",)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform([*shift_z(self.distance0), turn_z(q[0], self.angle0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return [TURN_Z]

    def unfelt(self, inertia: Inertia) -> Inertia:
        return turned_alike(inertia)
