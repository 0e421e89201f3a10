"""Soil resistance at the edge of a blade, from parameters that the ground model keeps up to date.

    z = max(height + slope . (x, y) - height of the edge, 0)          depth below the surface ahead
    R = square z^2 + linear z + constant z / (z + give)               ground/wedge.py, for the current soil and blade
    f = -R u / sqrt(u.u + u_0^2)                                      against the edge's velocity u
    f_z *= loose where u_z > 0                                        nothing is cut on the way up
    f_z += B z / (z + give)                                           bearing force of the ground, B at large depth

The numbers are scalars of any kind. As parameters of a system they are inputs of its step, and ground/contact.py sets
them at its own rate, from the surface ahead of the edge and from the soil that was swept up.

Differences from the papers (see ground/wedge.py): the earthmoving equation gives a force at the friction angle to the
blade; here a force of the same magnitude opposes the motion, so that soil never drives a machine. Below the speed u_0
it acts like a damper, so nothing sticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.forces.point_force import PointForce, Triple, against_motion
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, maximum, where


@dataclass(frozen=True)
class Cutting(PointForce):
    """Resistance of sloping ground to the edge of a blade, with coefficients of the earthmoving equation.

    Parameters
    ----------
    height : Scalar
        Height at x = y = 0 of the plane through the surface ahead of the edge, m.
    slope_x, slope_y : Scalar
        Slope of that plane along the world's x and y, m/m.
    square : Scalar
        Coefficient of the squared depth, N/m^2.
    linear : Scalar
        Coefficient of the depth, N/m.
    constant : Scalar
        Resistance from the surcharge, N.
    bearing : Scalar, default 20e3
        Largest bearing force, N.
    give : Scalar, default 0.05
        Depth at which half of the bearing force acts, m.
    slow : Scalar, default 0.05
        Speed u_0 below which the resistance acts like a damper, m/s.
    loose : Scalar, default 0.25
        Share of the vertical resistance that remains while the edge moves up.
    """

    height: Scalar  # m, surface plane at x = y = 0
    slope_x: Scalar  # rise over run
    slope_y: Scalar
    square: Scalar  # N/m2
    linear: Scalar  # N/m
    constant: Scalar  # N
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m, depth at which half of `bearing` acts
    slow: Scalar = 0.05  # m/s, u_0
    loose: Scalar = 0.25  # share of the resistance on the way up

    def __post_init__(self) -> None:
        check_range(self, "Cutting", ("square", "linear", "constant", "bearing", "loose"))
        check_range(self, "Cutting", ("give", "slow"), above_zero=True)

    def depth(self, p: Any) -> Scalar:
        """Return the depth of the point `p` = (x, y, z) below the surface, m; 0 above it."""
        return maximum(self.height + self.slope_x * p[0] + self.slope_y * p[1] - p[2], 0.0)

    def resistance(self, z: Scalar) -> Scalar:
        """Return the cutting resistance at depth `z` (m), N."""
        return self.square * z * z + self.linear * z + self.constant * (z / (z + self.give))

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on the edge at `p` (m) that moves with `u` (m/s), all in world axes."""
        z = self.depth(p)
        f = against_motion(u, self.resistance(z), self.slow)
        return [f[0], f[1], where(u[2] > 0.0, self.loose, 1.0) * f[2] + self.bearing * z / (z + self.give)]
