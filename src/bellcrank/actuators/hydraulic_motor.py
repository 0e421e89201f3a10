"""A hydraulic motor with its gear on a revolute joint, such as the swing drive of an excavator.

    a_A = a_B = D                       m3 for each radian of the joint, gear included
    V_A = V_B = volume                  of each line with its half of the motor

Valve, pump, oil and friction: proportional_valve.py and hydraulic.py. The relief valves of its ports limit the torque,
driving and braking, to about D times their setting.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class HydraulicMotor(Hydraulic):
    """A hydraulic motor behind a 4/3 valve, on a turning joint: displacement (m^3/rad), volumes, oil, leakage."""

    displacement: Scalar = 0.0  # m3/rad
    volume: Scalar = 1.0e-3  # m3

    def __post_init__(self) -> None:
        self._check_valve()
        self._check("displacement", "volume", "bulk_modulus", "friction_speed", above_zero=True)
        self._check("air", "leakage", "friction", "viscous")

    @property
    def areas(self) -> tuple[Scalar, Scalar]:
        return self.displacement, self.displacement

    def volumes(self, q: Scalar) -> tuple[Scalar, Scalar]:
        return self.volume, self.volume
