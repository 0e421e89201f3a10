"""Locked joints: joints fixed at a value, so that their two bodies become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bellcrank.errors import InputError, brief, check_known
from bellcrank.model.joints import KINDS
from bellcrank.model.part_checks import MAX_NUMBER
from bellcrank.model.parts import Array, Joint, Number, ReportLine, matrix, triple
from bellcrank.model.pose import rotation_about
from bellcrank.parameters import nominal
from bellcrank.scalar import is_real

Lock = Mapping[str, float] | Sequence[str]


def lock_joints(joints: Sequence[Joint], lock: Lock) -> tuple[list[Joint], list[ReportLine]]:
    """Return the joints with those in `lock`, and the joints that mimic them, fixed; and lines for the report.

    Parameters
    ----------
    joints
        All joints.
    lock
        Names of joints (fixed at zero), or {name: value}.
    """
    by_name = {j.name: j for j in joints}
    values = _checked_values(lock, by_name)
    lines: list[ReportLine] = []

    def report(name: str, text: str, level: str = "note") -> None:
        lines.append(ReportLine(f'joint "{name}"', f"locked at {values[name]:g}{text}", level))

    for name in values:
        report(name, ", as asked")
    changed = True
    while changed:  # a chain of mimic joints takes several rounds
        changed = False
        for j in joints:
            if j.mimic is not None and j.mimic.joint in values and j.name not in values:
                values[j.name] = j.mimic.multiplier * values[j.mimic.joint] + j.mimic.offset
                report(j.name, f': it mimics "{j.mimic.joint}"')
                changed = True
    for name, value in values.items():
        limits = nominal(by_name[name].limits)
        if not limits.lower <= nominal(value) <= limits.upper:
            report(name, f", outside its limits {limits.lower:g} .. {limits.upper:g}", "warning")
    return [_fixed_joint(j, values[j.name]) if j.name in values else j for j in joints], lines


def _checked_values(lock: Lock, by_name: Mapping[str, Joint]) -> dict[str, float]:
    if isinstance(lock, str):
        lock = [lock]
    if not isinstance(lock, Mapping | tuple | list | set) or not all(isinstance(name, str) for name in lock):
        raise InputError(f"lock is {brief(lock)}; expected names of joints, or values by their names.")
    values = dict(lock) if isinstance(lock, Mapping) else dict.fromkeys(lock, 0.0)
    for name, value in values.items():
        check_known("joint", name, by_name, "lock")
        if not is_real(value) or not -MAX_NUMBER < value < MAX_NUMBER:
            raise InputError(f'lock: joint "{name}" is to be held at {value!r}; expected a finite number.')
        j = by_name[name]
        if value != 0.0 and (KINDS[j.kind].nq != 1 or not np.linalg.norm(nominal(j.axis)) > 0.0):
            raise InputError(
                f'lock: joint "{name}" ({j.kind}) can only be held at its zero configuration; got {value!r}.'
            )
    return {name: float(value) for name, value in values.items()}


def _fixed_joint(j: Joint, value: Number) -> Joint:
    R: Array = np.asarray(j.rotation)
    p: Array = np.asarray(j.point)
    if value != 0.0:
        axis = np.asarray(j.axis) / np.linalg.norm(j.axis)
        p = p + R @ axis * (value if j.kind == "prismatic" else value * j.pitch)
        R = R if j.kind == "prismatic" else R @ rotation_about(axis.tolist(), value)
    return Joint(j.name, "fixed", j.parent, j.child, rotation=matrix(R), point=triple(p))
