"""What ground does to the edge of a blade: a force on the frame there, from numbers that the ground keeps up to date.

    z = max(height + slope . (x, y) - height of the edge, 0)          depth below the surface ahead
    R = square z^2 + linear z + constant z / (z + give)               ground/wedge.py, for the soil and the blade now
    f = -R u / sqrt(u.u + u_0^2)                                      against the edge's velocity u
    f_z *= loose where u_z > 0                                        nothing is cut on the way up
    f_z += B z / (z + give)                                           what the ground bears: B deep down

The numbers are scalars of any kind. As parameters of a system they are inputs of its step, and ground/contact.py sets
them at its own rate, from the surface ahead of the edge and from what was swept up.

Departs: the earthmoving equation gives a force at the angle of friction to the blade; here its size goes against the
motion, so that soil never drives a machine. Below the speed u_0 it is like a damper, so nothing sticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.parameters.part_numbers import check_range
from bellcrank.scalar import Scalar, maximum, sqrt, where


@dataclass(frozen=True)
class Cutting:
    height: Scalar  # m, of the surface ahead, where x and y are zero
    slope_x: Scalar  # how it rises
    slope_y: Scalar
    square: Scalar  # N/m2
    linear: Scalar  # N/m
    constant: Scalar  # N
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m: at this depth it bears half
    slow: Scalar = 0.05  # m/s, u_0
    loose: Scalar = 0.25  # of the resistance, on the way up

    def __post_init__(self) -> None:
        check_range(self, "Cutting", ("square", "linear", "constant", "bearing", "loose"))
        check_range(self, "Cutting", ("give", "slow"), above_zero=True)

    def depth(self, p: Any) -> Scalar:
        """Of a place (x, y, z)."""
        return maximum(self.height + self.slope_x * p[0] + self.slope_y * p[1] - p[2], 0.0)

    def resistance(self, z: Scalar) -> Scalar:
        return self.square * z * z + self.linear * z + self.constant * (z / (z + self.give))

    def __call__(self, t: Scalar, pose: Any, velocity: Any) -> tuple[list[Scalar], list[Scalar]]:
        """(force, moment) on the edge, in world axes."""
        z = self.depth([pose[k, 3] for k in range(3)])
        u = [velocity[k] for k in range(3)]
        speed = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + self.slow * self.slow)
        R = self.resistance(z)
        f = [-R / speed * x for x in u]
        f[2] = where(u[2] > 0.0, self.loose, 1.0) * f[2] + self.bearing * z / (z + self.give)
        return f, [0.0, 0.0, 0.0]
