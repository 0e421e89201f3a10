"""Resistance of level soil to a cutting blade, as a force on the frame at the blade's edge.

    z = max(ground - height of the edge, 0)                          depth
    R = width z (cohesion + weight z)                                cutting resistance
    f = -R u / sqrt(u.u + u_0^2)                                     against the edge's velocity u
    f_z += B z / (z + z_B)                                           bearing force of the ground, B at large depth

R has the two leading terms of the fundamental earth-moving equation, one that grows with the depth and one with its
square: A. R. Reece. The fundamental equation of earth-moving mechanics. Proceedings of the Institution of Mechanical
Engineers 179 (3F), 16-22, 1964. Orders of magnitude for loam: E. McKyes. Soil Cutting and Tillage. Elsevier, 1985.

Differences from the papers: no soil is moved; soil that was cut is there again, and the bucket carries none. The
resistance opposes the motion whatever the orientation of the blade. Below the speed u_0 it acts like a damper, so
nothing sticks.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.forces.point_force import PointForce, Triple, against_motion
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, maximum


@dataclass(frozen=True)
class Soil(PointForce):
    """Level ground that resists cutting: a force against the motion that grows with depth, and a bearing force.

    Parameters
    ----------
    width : Scalar, default 1.2
        Width of the edge, m.
    ground : Scalar, default 0.0
        Height of the surface in the world, m.
    cohesion : Scalar, default 30e3
        Term linear in the depth, Pa; includes the blade's factor.
    weight : Scalar, default 40e3
        Term quadratic in the depth, N/m^3; includes the blade's factor.
    bearing : Scalar, default 20e3
        Largest bearing force, N.
    give : Scalar, default 0.05
        Depth at which half of the bearing force acts, m.
    slow : Scalar, default 0.05
        Speed u_0 below which the resistance acts like a damper, m/s.
    """

    width: Scalar = 1.2  # m, of the edge
    ground: Scalar = 0.0  # m, height of the surface
    cohesion: Scalar = 30e3  # Pa, includes the blade's factor
    weight: Scalar = 40e3  # N/m3, includes the blade's factor
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m, depth at which half of `bearing` acts
    slow: Scalar = 0.05  # m/s, u_0

    def __post_init__(self) -> None:
        check_range(self, "Soil", ("cohesion", "weight", "bearing"))
        check_range(self, "Soil", ("width", "give", "slow"), above_zero=True)

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on the edge at `p` (m) that moves with `u` (m/s), all in world axes."""
        z = maximum(self.ground - p[2], 0.0)
        f = against_motion(u, self.width * z * (self.cohesion + self.weight * z), self.slow)
        return [f[0], f[1], f[2] + self.bearing * z / (z + self.give)]
