"""Oil in two chambers behind a proportional valve: what cylinders and motors have in common.

    dp_A/dt = E(p_A) / V_A (Q_A - a_A v - c (p_A - p_B))
    dp_B/dt = E(p_B) / V_B (Q_B + a_B v + c (p_A - p_B))
    F = a_A p_A - a_B p_B - F_c tanh(v / v_t) - b v + (stops)
    1/E(p) = 1/E_oil + x p_0 / (p + p_0)^2              oil with the share x of air in it at the tank's pressure p_0

Air makes the oil soft where the pressure is low, which is what keeps a chamber from falling below zero by much.
States: p_A, p_B (Pa above the tank's) and the spool (-1 ... 1).

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

ATMOSPHERE = 1.0e5  # Pa, p_0
LEAST_PRESSURE = 2.0e4  # Pa, absolute; below it the air is taken to be no thinner


@dataclass(frozen=True)
class Hydraulic(Actuator):
    valve: ProportionalValve
    bulk_modulus: Scalar = 1.2e9  # Pa, of the oil without air
    air: Scalar = 0.005  # share of the volume
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
        usual = self.valve.p_pump
        pressures = StateVariable("p_A", "Pa", self.p_A, usual), StateVariable("p_B", "Pa", self.p_B, usual)
        return (*pressures, StateVariable("spool", "1", 0.0, 1.0))

    @property
    @abstractmethod
    def areas(self) -> tuple[Scalar, Scalar]:
        """m2 or m3/rad: what each chamber takes up, for a unit of motion."""

    @abstractmethod
    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        """m3, of both chambers and what is connected to them."""

    def stops(self, q: Scalar, v: Scalar) -> Scalar:
        """The force of what ends the motion."""
        return 0.0

    def modulus(self, p: Scalar) -> Scalar:
        """The bulk modulus of the oil with its air, at a pressure."""
        absolute = maximum(p + ATMOSPHERE, LEAST_PRESSURE)
        return 1.0 / (1.0 / self.bulk_modulus + self.air * ATMOSPHERE / (absolute * absolute))

    def force(self, q: Scalar, v: Scalar, p_A: Scalar, p_B: Scalar) -> Scalar:
        """The force of the two pressures at this place and speed, with friction and end stops."""
        a_A, a_B = self.areas
        rubbing = self.friction * tanh(v / self.friction_speed) + self.viscous * v
        return a_A * p_A - a_B * p_B - rubbing + self.stops(q, v)

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        p_A, p_B, s = x
        (a_A, a_B), (V_A, V_B) = self.areas, self.volumes(q)
        Q_A, Q_B = self.valve.flows(s, p_A, p_B)
        leak = self.leakage * (p_A - p_B)
        dp_A = self.modulus(p_A) / V_A * (Q_A - a_A * v - leak)
        dp_B = self.modulus(p_B) / V_B * (Q_B + a_B * v + leak)
        return self.force(q, v, p_A, p_B), [dp_A, dp_B, self.valve.moved(s, command)]
