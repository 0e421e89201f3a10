"""A hydraulic cylinder on a prismatic joint: A is the bore's side, B the rod's; q grows as it extends.

    x = q + offset                      how far it is out, 0 ... stroke
    a_A = n pi/4 bore^2,  a_B = n pi/4 (bore^2 - rod^2)               n equal cylinders side by side
    V_A = hoses + a_A x,  V_B = hoses + a_B (stroke - x)
    stops: k z (1 + d dz/dt), and never less than 0, where it is z beyond an end

Valve, pump, oil and friction: proportional_valve.py and hydraulic.py. The stop's damping grows with z, so that the
force has no jump: K. H. Hunt, F. R. E. Crossley. Coefficient of restitution interpreted as damping in vibroimpact. ASME
Journal of Applied Mechanics 42(2), 440-445, 1975.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from bellcrank.actuators.actuator import end_stops, known
from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, clip


@dataclass(frozen=True)
class HydraulicCylinder(Hydraulic):
    """A differential cylinder behind a 4/3 valve, on a slide: areas, stroke, oil with air, leakage, friction, stops."""

    bore: Scalar = 0.0  # m
    rod: Scalar = 0.0  # m
    stroke: Scalar = 0.0  # m
    offset: Scalar = 0.0  # m, how far it is out at q = 0
    count: Scalar = 1
    hoses: Scalar = 2.0e-3  # m3 on each side of all of them
    stop_stiffness: Scalar = 5.0e7  # N/m
    stop_damping: Scalar = 5.0  # s/m

    def __post_init__(self) -> None:
        self._check_valve()
        self._check("bore", "stroke", "count", "hoses", "bulk_modulus", "friction_speed", above_zero=True)
        self._check("rod", "air", "leakage", "friction", "viscous", "stop_stiffness", "stop_damping")
        if known(self.rod) and known(self.bore) and not self.rod < self.bore:
            raise InputError(
                f'HydraulicCylinder on "{self.joint}": the rod is {self.rod!r} m and the bore {self.bore!r} m; '
                "expected a rod that is thinner than the bore."
            )

    @property
    def areas(self) -> tuple[Scalar, Scalar]:
        whole = self.count * (pi / 4) * self.bore * self.bore
        return whole, whole - self.count * (pi / 4) * self.rod * self.rod

    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        a_A, a_B = self.areas
        x = clip(q + self.offset, 0.0, self.stroke)
        return self.hoses + a_A * x, self.hoses + a_B * (self.stroke - x)

    def stops(self, q: Scalar, v: Scalar) -> Scalar:
        return end_stops(q + self.offset, v, 0.0, self.stroke, self.stop_stiffness, self.stop_damping)
