"""Actuators that drive joints, with their equations and sources."""

from __future__ import annotations

from bellcrank.actuators.actuator import Actuator, StateVariable
from bellcrank.actuators.hydraulic import HydraulicCylinder, HydraulicMotor
from bellcrank.actuators.motors import PD, PID, DCMotor, IdealTorque
from bellcrank.actuators.passive import SpringDamper, StribeckFriction
from bellcrank.actuators.proportional_valve import ProportionalValve
from bellcrank.actuators.rotary_hydraulics import RotaryHydraulics

# The interfaces and the valve, then the actuators in the order a newcomer should meet them.
__all__ = [  # noqa: RUF022
    "ACTUATORS", "Actuator", "ProportionalValve", "StateVariable",
    "IdealTorque", "PD", "PID", "DCMotor", "SpringDamper", "StribeckFriction", "RotaryHydraulics", "HydraulicCylinder",
    "HydraulicMotor",
]  # fmt: skip
ACTUATORS: dict[str, type[Actuator]] = {name: globals()[name] for name in __all__[4:]}
