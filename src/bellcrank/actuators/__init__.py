"""Actuators that drive joints: one module for each, with its equations and their source."""

from __future__ import annotations

from bellcrank.actuators.actuator import Actuator, StateVariable
from bellcrank.actuators.dc_motor import DCMotor
from bellcrank.actuators.hydraulic_cylinder import HydraulicCylinder
from bellcrank.actuators.hydraulic_motor import HydraulicMotor
from bellcrank.actuators.ideal_torque import IdealTorque
from bellcrank.actuators.pd import PD
from bellcrank.actuators.pid import PID
from bellcrank.actuators.proportional_valve import ProportionalValve
from bellcrank.actuators.rotary_hydraulics import RotaryHydraulics
from bellcrank.actuators.spring_damper import SpringDamper
from bellcrank.actuators.stribeck_friction import StribeckFriction

# The interfaces and the valve, then the actuators in the order a newcomer should meet them.
__all__ = [  # noqa: RUF022
    "ACTUATORS", "Actuator", "ProportionalValve", "StateVariable",
    "IdealTorque", "PD", "PID", "DCMotor", "SpringDamper", "StribeckFriction", "RotaryHydraulics", "HydraulicCylinder",
    "HydraulicMotor",
]  # fmt: skip
ACTUATORS: dict[str, type[Actuator]] = {name: globals()[name] for name in __all__[4:]}
