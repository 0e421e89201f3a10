"""Hydraulic cylinder on a prismatic joint: A is the bore side, B the rod side; q grows as it extends.

    x = q + offset                      extension, 0 ... stroke
    a_A = n pi/4 bore^2,  a_B = n pi/4 (bore^2 - rod^2)               n equal parallel cylinders
    V_A = hoses + a_A x,  V_B = hoses + a_B (stroke - x)
    stops: max(k z (1 + d dz/dt), 0) at a depth z beyond an end

Valve, pump, oil and friction: proportional_valve.py and hydraulic.py. The stop's damping grows with z, so that the
force has no jump: K. H. Hunt, F. R. E. Crossley. Coefficient of restitution interpreted as damping in vibroimpact. ASME
Journal of Applied Mechanics 42(2), 440-445, 1975.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from bellcrank.actuators.actuator import end_stop_force, is_known
from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, clip


@dataclass(frozen=True)
class HydraulicCylinder(Hydraulic):
    """Differential cylinder behind a 4/3 valve, on a prismatic joint.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    valve : ProportionalValve
        Valve, pump and port valves.
    bulk_modulus : Scalar, default 1.2e9
        Bulk modulus of the oil without air, Pa.
    air : Scalar, default 0.005
        Volume share of air in the oil at tank pressure.
    leakage : Scalar, default 0.0
        Leakage between the chambers, m^3/s/Pa.
    friction : Scalar, default 0.0
        Coulomb friction, N or N m.
    friction_speed : Scalar, default 0.01
        Speed within which the sign of the velocity is smoothed, m/s or rad/s.
    viscous : Scalar, default 0.0
        Viscous friction, N s/m or N m s/rad.
    p_A, p_B : float, default 0.0
        Chamber pressures at the start, Pa above the tank's.
    bore : Scalar
        Bore diameter, m.
    rod : Scalar, default 0.0
        Rod diameter, m, less than the bore.
    stroke : Scalar
        Stroke, m.
    offset : Scalar, default 0.0
        Extension at q = 0, m.
    count : Scalar, default 1
        Number of equal parallel cylinders.
    hoses : Scalar, default 2e-3
        Oil volume of the lines on each side, for all cylinders together, m^3.
    stop_stiffness : Scalar, default 5e7
        Stiffness of the end stops, N/m.
    stop_damping : Scalar, default 5.0
        Hunt-Crossley damping of the end stops, s/m.
    """

    bore: Scalar = 0.0  # m
    rod: Scalar = 0.0  # m
    stroke: Scalar = 0.0  # m
    offset: Scalar = 0.0  # m, extension at q = 0
    count: Scalar = 1
    hoses: Scalar = 2.0e-3  # m3 on each side, all cylinders together
    stop_stiffness: Scalar = 5.0e7  # N/m
    stop_damping: Scalar = 5.0  # s/m

    def __post_init__(self) -> None:
        self._check_valve()
        self._check("bore", "stroke", "count", "hoses", "bulk_modulus", "friction_speed", above_zero=True)
        self._check("rod", "air", "leakage", "friction", "viscous", "stop_stiffness", "stop_damping")
        if is_known(self.rod) and is_known(self.bore) and not self.rod < self.bore:
            raise InputError(
                f'HydraulicCylinder on "{self.joint}": the rod is {self.rod!r} m and the bore {self.bore!r} m; '
                "expected a rod that is thinner than the bore."
            )

    @property
    def areas(self) -> tuple[Scalar, Scalar]:
        """Piston areas of sides A and B, m^2."""
        bore_area = self.count * (pi / 4) * self.bore * self.bore
        return bore_area, bore_area - self.count * (pi / 4) * self.rod * self.rod

    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        """Return the oil volumes of both chambers with their lines at the coordinate `q`, m^3."""
        a_A, a_B = self.areas
        x = clip(q + self.offset, 0.0, self.stroke)
        return self.hoses + a_A * x, self.hoses + a_B * (self.stroke - x)

    def stops(self, q: Scalar, v: Scalar) -> Scalar:
        """Return the force of the end stops at the coordinate `q` and velocity `v`, N."""
        return end_stop_force(q + self.offset, v, 0.0, self.stroke, self.stop_stiffness, self.stop_damping)
