"""The helical joint: a screw about z that advances `pitch` metres per radian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.model.kind import FORCES, SLIDE_Z, TURN_Z, Kind, screw_invariant_part, shift_z, turn_z
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Force, Motion


@dataclass(frozen=True)
class Helical(Kind):
    """A turn about z with a proportional slide along z."""

    pitch: Scalar = 0.0

    name, nq, nv = "helical", 1, 1
    coordinates = ("angle",)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(q[0] * self.pitch + self.distance0), turn_z(q[0], self.angle0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        return [TURN_Z + SLIDE_Z * self.pitch]

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """Return the six transmitted forces (W, T) at `q`."""
        mx, my, mz, fx, fy, fz = FORCES
        return [mz], [mx, my, fx, fy, fz - mz * self.pitch]
