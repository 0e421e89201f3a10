"""One equation of a loop: its value, its row of C, and its other face, the force that holds it."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.dynamics.ends import Row
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import Vec


@dataclass(slots=True, eq=False)
class Equation:
    value: Scalar
    row: Row
    bias: Scalar  # second derivative where all accelerations of joints are zero
    rate: Scalar  # first derivative
    force: tuple[Vec, Vec]  # on end b, for a unit multiplier: force and moment about it
    back: tuple[Vec, Vec]  # the same on end a
