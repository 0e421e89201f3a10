"""Joints held still: fixed at a value, so that their two bodies become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Joint, Line, Limits, matrix, triple
from bellcrank.read.numbers import turn_about

Lock = Mapping[str, float] | Sequence[str]


def locked(joints: Sequence[Joint], lock: Lock) -> tuple[list[Joint], list[Line]]:
    """The joints with those in `lock` fixed at their value (zero where only names are given), and those that mimic them too."""
    if isinstance(lock, str):
        lock = [lock]
    values = {str(k): v for k, v in lock.items()} if isinstance(lock, Mapping) else {str(k): 0.0 for k in lock}
    by_name = {j.name: j for j in joints}
    for name, value in values.items():
        if name not in by_name:
            raise InputError(f"lock: {unknown('joint', name, by_name)}")
        if not isinstance(value, (int, float)) or not np.isfinite(value):
            raise InputError(f'lock: joint "{name}" is to be held at {value!r}; expected a finite number.')
        if value != 0.0 and KINDS.get(by_name[name].kind, KINDS["fixed"]).nq != 1:
            raise InputError(
                f'lock: joint "{name}" is {by_name[name].kind} and can only be held at its zero configuration; got {value!r}.'
            )
    lines = []
    while True:  # who mimics a locked joint is locked with it; a chain of mimics takes several rounds
        followers = {
            j.name: j.mimic.multiplier * values[j.mimic.joint] + j.mimic.offset
            for j in joints
            if j.mimic is not None and j.mimic.joint in values and j.name not in values
        }
        if not followers:
            break
        lines += [Line(f'joint "{n}"', f'locked at {v:g}: it mimics "{_master(by_name[n])}"', "note") for n, v in followers.items()]
        values |= followers
    lines = [*(Line(f'joint "{n}"', f"locked at {values[n]:g}, as asked", "note") for n in values if not _told(n, lines)), *lines]
    for name, value in values.items():
        limits = by_name[name].limits
        if not limits.lower <= value <= limits.upper:
            lines.append(Line(f'joint "{name}"', f"locked at {value:g}, outside its limits {limits.lower:g} .. {limits.upper:g}", "warning"))
    return [_held(j, float(values[j.name])) if j.name in values else j for j in joints], lines


def _held(j: Joint, value: float) -> Joint:
    R, p = np.asarray(j.rotation), np.asarray(j.point)
    length = float(np.linalg.norm(j.axis))
    if value != 0.0 and length > 0.0:  # a zero axis is reported when the mechanism is assembled
        axis = np.asarray(j.axis) / length
        if j.kind == "prismatic":
            p = p + R @ axis * value
        else:
            p, R = p + R @ axis * value * j.pitch, R @ turn_about(axis.tolist(), value)
    return replace(
        j, kind="fixed", rotation=matrix(R), point=triple(p), mimic=None, limits=Limits(), armature=0.0, damping=0.0, friction=0.0, stiffness=0.0
    )


def _told(name: str, lines: Sequence[Line]) -> bool:
    return any(line.element == f'joint "{name}"' for line in lines)


def _master(j: Joint) -> str:
    return j.mimic.joint if j.mimic is not None else ""
