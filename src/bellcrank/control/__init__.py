"""What commands the actuators: desired motions, inverse dynamics, the excavator's modes.

A control is called as control(t, q, v, x, u) and returns its commands. One with memory has `states` (StateVariable),
finds them in x by name, and returns (commands, rates).
"""

from __future__ import annotations

from bellcrank.control.digging_cycle import DiggingCycle
from bellcrank.control.excavator import EitherMode, JointMode, ResolvedMode
from bellcrank.control.excavator_arm import ExcavatorArm
from bellcrank.control.inverse_dynamics import InverseDynamics
from bellcrank.control.linkage import Linkage
from bellcrank.control.linkage_modes import LinkageControl
from bellcrank.control.trajectory import Cycloid, Ramp, Trajectory, saha, wong

__all__ = [
    "Cycloid",
    "DiggingCycle",
    "EitherMode",
    "ExcavatorArm",
    "InverseDynamics",
    "JointMode",
    "Linkage",
    "LinkageControl",
    "Ramp",
    "ResolvedMode",
    "Trajectory",
    "saha",
    "wong",
]
