"""Armature and damping that a MuJoCo model's actuators add to joints and tendons, whether they are driven or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

JOINT, IN_PARENT, TENDON = 0, 1, 3  # of mjtTrn
ADDED_FIELDS = ("actuator_armature", "actuator_damping", "actuator_dampingpoly")


def contributing_actuators(model: Any, transmissions: tuple[int, ...], target: int) -> Iterator[int]:
    """Yield the actuators of a joint or tendon that have an armature or a damping.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    transmissions
        Types of transmission (mjtTrn).
    target
        Index of the joint or tendon.
    """
    values = [x for x in (getattr(model, name, None) for name in ADDED_FIELDS) if x is not None]
    for i in range(len(model.actuator_trntype)):
        on_it = model.actuator_trntype[i] in transmissions and model.actuator_trnid[i][0] == target
        if on_it and any(np.any(x[i]) for x in values):
            yield i


def joint_contributions(model: Any, joint: int) -> tuple[float, float]:
    """Return the armature and damping that all actuators of `model` add to each coordinate of the `joint`."""
    armature = damping = 0.0
    for i in contributing_actuators(model, (JOINT, IN_PARENT), joint):
        square = float(model.actuator_gear[model.actuator_outadr[i]][0]) ** 2
        armature += square * float(model.actuator_armature[i])
        damping += square * float(model.actuator_damping[i])
    return armature, damping
