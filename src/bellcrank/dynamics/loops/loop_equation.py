"""Loop equation: its value, its row of the constraint Jacobian C, and the constraint force of a unit multiplier."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.dynamics.frame_pairs import JacobianRow
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import Vec


@dataclass(slots=True, eq=False)
class Equation:
    """One scalar equation of a loop."""

    value: Scalar
    row: JacobianRow
    bias: Scalar  # second derivative at zero joint acceleration
    rate: Scalar  # first derivative
    force: tuple[Vec, Vec]  # on end b, for a unit multiplier: force and moment about it
    back: tuple[Vec, Vec]  # the same on end a
