"""Level soil that a blade cuts: a force on the frame at its edge, so that digging feels like something.

    z = max(ground - height of the edge, 0)                          depth
    R = width z (cohesion + weight z)                                cutting resistance
    f = -R u / sqrt(u.u + u_0^2)                                     against the edge's velocity u
    f_z += B z / (z + z_B)                                           what the ground bears: B deep down

R has the two leading terms of the fundamental earth-moving equation, one that grows with the depth and one with its
square: A. R. Reece. The fundamental equation of earth-moving mechanics. Proceedings of the Institution of Mechanical
Engineers 179 (3F), 16-22, 1964. Orders of magnitude for loam: E. McKyes. Soil Cutting and Tillage. Elsevier, 1985.

Departs: nothing is moved: soil that was cut is there again, and none is carried in the bucket. The resistance goes
against the motion, whatever way the blade looks. Below the speed u_0 it is like a damper, so nothing sticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.parameters.part_numbers import check_range
from bellcrank.scalar import Scalar, maximum, sqrt


@dataclass(frozen=True)
class Soil:
    """Level ground that resists cutting: a force against the motion that grows with depth, and some support."""

    width: Scalar = 1.2  # m, of the edge
    ground: Scalar = 0.0  # m, height of the surface
    cohesion: Scalar = 30e3  # Pa, with the blade's factor in it
    weight: Scalar = 40e3  # N/m3, likewise
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m: at this depth it bears half
    slow: Scalar = 0.05  # m/s, u_0

    def __post_init__(self) -> None:
        check_range(self, "Soil", ("cohesion", "weight", "bearing"))
        check_range(self, "Soil", ("width", "give", "slow"), above_zero=True)

    def __call__(self, t: Scalar, pose: Any, velocity: Any) -> tuple[list[Scalar], list[Scalar]]:
        """(force, moment) on the edge, in world axes."""
        z = maximum(self.ground - pose[2, 3], 0.0)
        u = [velocity[k] for k in range(3)]
        speed = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + self.slow * self.slow)
        R = self.width * z * (self.cohesion + self.weight * z)
        f = [-R / speed * x for x in u]
        f[2] = f[2] + self.bearing * z / (z + self.give)
        return f, [0.0, 0.0, 0.0]
