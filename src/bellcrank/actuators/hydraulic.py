"""Common model of hydraulic cylinders and motors: oil in two chambers behind a proportional valve.

    dp_A/dt = E(p_A) / V_A (Q_A - a_A v - c (p_A - p_B))
    dp_B/dt = E(p_B) / V_B (Q_B + a_B v + c (p_A - p_B))
    F = a_A p_A - a_B p_B - F_c tanh(v / v_t) - b v + (stops)
    1/E(p) = 1/E_oil + x p_0 / (p + p_0)^2              oil with the volume share x of air at the tank's pressure p_0

Air softens the oil at low pressure, which keeps a chamber's pressure from falling far below zero.
States: p_A, p_B (Pa above the tank's) and the spool position (-1 ... 1).

Source: H. E. Merritt. Hydraulic Control Systems. Wiley, 1967, chapters 2 (bulk modulus with air) and 6 (valve and
cylinder). Friction with a smooth sign: see stribeck_friction.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, StateVariable
from bellcrank.actuators.proportional_valve import ProportionalValve
from bellcrank.errors import InputError, brief
from bellcrank.scalar import Scalar, maximum, tanh

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
        nominal_pressure = self.valve.p_pump
        pressures = (
            StateVariable("p_A", "Pa", self.p_A, nominal_pressure),
            StateVariable("p_B", "Pa", self.p_B, nominal_pressure),
        )
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

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        p_A, p_B, s = x
        (a_A, a_B), (V_A, V_B) = self.areas, self.volumes(q)
        Q_A, Q_B = self.valve.flows(s, p_A, p_B)
        leak = self.leakage * (p_A - p_B)
        dp_A = self.modulus(p_A) / V_A * (Q_A - a_A * v - leak)
        dp_B = self.modulus(p_B) / V_B * (Q_B + a_B * v + leak)
        return self.force(q, v, p_A, p_B), [dp_A, dp_B, self.valve.moved(s, command)]
