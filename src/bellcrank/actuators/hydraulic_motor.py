"""Hydraulic motor with its gear on a revolute joint, such as the swing drive of an excavator.

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
