"""A screw about z: it advances `pitch` metres per radian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.model.kind import FORCES, SLIDE_Z, TURN_Z, Kind, moved_along_alike, shift_z, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Force, Motion


@dataclass(frozen=True)
class Helical(Kind):
    pitch: Scalar = 0.0

    name, nq, nv = "helical", 1, 1
    coordinates = ("angle",)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform([*shift_z(q[0] * self.pitch + self.distance0), turn_z(q[0], self.angle0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return [TURN_Z + SLIDE_Z * self.pitch]

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        mx, my, mz, fx, fy, fz = FORCES
        return [mz], [mx, my, fx, fy, fz - mz * self.pitch]

    def unfelt(self, inertia: Inertia) -> Inertia:
        return moved_along_alike(inertia)
