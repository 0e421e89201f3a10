"""Hydraulic cylinders and motors: oil in two chambers behind a proportional valve.

    dp_A/dt = E(p_A) / V_A (Q_A - a_A v - c (p_A - p_B))
    dp_B/dt = E(p_B) / V_B (Q_B + a_B v + c (p_A - p_B))
    F = a_A p_A - a_B p_B - F_c tanh(v / v_t) - b v + (stops)
    1/E(p) = 1/E_oil + x p_0 / (p + p_0)^2              oil with the volume share x of air at the tank's pressure p_0

Air softens the oil at low pressure, which keeps a chamber's pressure from falling far below zero.
States: p_A, p_B (Pa above the tank's) and the spool position (-1 ... 1).

Cylinder on a prismatic joint: A is the bore side, B the rod side; q grows as it extends.

    x = q + offset                      extension, 0 ... stroke
    a_A = n pi/4 bore^2,  a_B = n pi/4 (bore^2 - rod^2)               n equal parallel cylinders
    V_A = hoses + a_A x,  V_B = hoses + a_B (stroke - x)
    stops: max(k z (1 + d dz/dt), 0) at a depth z beyond an end

Motor with its gear on a revolute joint, such as the swing drive of an excavator:

    a_A = a_B = D                       m3 for each radian of the joint, gear included
    V_A = V_B = volume                  of each line with its half of the motor

The relief valves of its ports limit the torque, driving and braking, to about D times their setting.

Sources: H. E. Merritt. Hydraulic Control Systems. Wiley, 1967, chapters 2 (bulk modulus with air) and 6 (valve and
cylinder; here proportional_valve.py). Friction with a smooth sign: see passive.py. The damping of the stops grows with
z, so that the force has no jump: K. H. Hunt, F. R. E. Crossley. Coefficient of restitution interpreted as damping in
vibroimpact. ASME Journal of Applied Mechanics 42(2), 440-445, 1975.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, ForceAndRates, StateVariable, end_stop_force, is_known
from bellcrank.actuators.proportional_valve import ProportionalValve
from bellcrank.errors import InputError, brief
from bellcrank.scalar import Scalar, clip, maximum, tanh

ATMOSPHERIC_PRESSURE = 1.0e5  # Pa, p_0
MIN_ABSOLUTE_PRESSURE = 2.0e4  # Pa, absolute; lower bound for the pressure of the air


@dataclass(frozen=True)
class Hydraulic(Actuator):
    """Base class of hydraulic cylinders and motors.

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
    """

    valve: ProportionalValve
    bulk_modulus: Scalar = 1.2e9  # Pa, oil without air
    air: Scalar = 0.005  # volume share
    leakage: Scalar = 0.0  # m3/s/Pa, c
    friction: Scalar = 0.0  # N or N m, F_c
    friction_speed: Scalar = 0.01  # m/s or rad/s, v_t
    viscous: Scalar = 0.0  # N s/m or N m s/rad, b
    p_A: float = 0.0  # Pa, at the start
    p_B: float = 0.0

    command_unit: ClassVar[str] = "1"

    def _check_valve(self) -> None:
        if not isinstance(self.valve, ProportionalValve):
            raise InputError(
                f'{type(self).__name__} on "{self.joint}": valve is {brief(self.valve)}; expected a ProportionalValve.'
            )

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Pressures of both chambers and the spool position."""
        starts = {"p_A": self.p_A, "p_B": self.p_B}
        pressures = (StateVariable(name, "Pa", start, self.valve.p_pump) for name, start in starts.items())
        return (*pressures, StateVariable("spool", "1", 0.0, 1.0))

    @property
    @abstractmethod
    def areas(self) -> tuple[Scalar, Scalar]:
        """Volume displaced in chambers A and B per unit of motion, m^2 or m^3/rad."""

    @abstractmethod
    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        """Return the oil volumes of both chambers with their lines at the coordinate `q`, m^3."""

    def stops(self, q: Scalar, v: Scalar) -> Scalar:
        """Return the force of end stops at the coordinate `q` and velocity `v`; 0 without stops."""
        return 0.0

    def modulus(self, p: Scalar) -> Scalar:
        """Return the bulk modulus of the oil with its air at pressure `p` (Pa above the tank's), Pa."""
        absolute = maximum(p + ATMOSPHERIC_PRESSURE, MIN_ABSOLUTE_PRESSURE)
        return 1.0 / (1.0 / self.bulk_modulus + self.air * ATMOSPHERIC_PRESSURE / (absolute * absolute))

    def force(self, q: Scalar, v: Scalar, p_A: Scalar, p_B: Scalar) -> Scalar:
        """Return the force on the joint, with friction and end stops.

        Parameters
        ----------
        q : Scalar
            Joint coordinate, m or rad.
        v : Scalar
            Joint velocity, m/s or rad/s.
        p_A, p_B : Scalar
            Chamber pressures, Pa above the tank's.

        Returns
        -------
        Scalar
            Force, N or N m.
        """
        a_A, a_B = self.areas
        friction = self.friction * tanh(v / self.friction_speed) + self.viscous * v
        return a_A * p_A - a_B * p_B - friction + self.stops(q, v)

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        p_A, p_B, s = x
        (a_A, a_B), (V_A, V_B) = self.areas, self.volumes(q)
        Q_A, Q_B = self.valve.flows(s, p_A, p_B)
        leak = self.leakage * (p_A - p_B)
        dp_A = self.modulus(p_A) / V_A * (Q_A - a_A * v - leak)
        dp_B = self.modulus(p_B) / V_B * (Q_B + a_B * v + leak)
        return self.force(q, v, p_A, p_B), [dp_A, dp_B, self.valve.moved(s, command)]


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


@dataclass(frozen=True)
class HydraulicMotor(Hydraulic):
    """Hydraulic motor behind a 4/3 valve, on a revolute joint.

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
    displacement : Scalar
        Displacement per radian of the joint, gear included, m^3/rad.
    volume : Scalar, default 1e-3
        Oil volume of each line with its half of the motor, m^3.
    """

    displacement: Scalar = 0.0  # m3/rad
    volume: Scalar = 1.0e-3  # m3

    def __post_init__(self) -> None:
        self._check_valve()
        self._check("displacement", "volume", "bulk_modulus", "friction_speed", above_zero=True)
        self._check("air", "leakage", "friction", "viscous")

    @property
    def areas(self) -> tuple[Scalar, Scalar]:
        """Displacement of both sides, m^3/rad."""
        return self.displacement, self.displacement

    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        """Return the oil volume of both sides, m^3; it does not depend on `q`."""
        return self.volume, self.volume
