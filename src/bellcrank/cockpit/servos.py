"""Servos for a mechanism that nobody has described: which joints get one, and how stiff and damped it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bellcrank.model import Mechanism

SWING = 2.0 * math.pi * 1.5  # rad/s, how fast a servo is
FIRM = 20.0  # a servo sags under the weight by a radian over this, at most
QUICK = 600.0  # 1/s: nothing faster, for an explicit method at 1 kHz is stable up to some 2700
POSES = 8  # tried, to see what weight and inertia a joint meets


def movable(m: Mechanism, q: Any) -> list[str]:
    """Joints with a single coordinate. Where loops tie them, only as many as are free: the others follow.

    Slides first, for they are mostly somebody's cylinders, then joints on the ground; each is taken if what is left
    can still close the loops at q.
    """
    names = [name for name in m.columns[1] if name in m.columns[0]]
    if not m.loops:
        return names
    joints = {j.name: j for j in m.own_joints}
    J = np.asarray(m.closure_jacobian(q))
    rank, left, found = np.linalg.matrix_rank(J), list(range(m.nv)), list[str]()
    for name in sorted(names, key=lambda n: (joints[n].kind != "prismatic", joints[n].parent != m.ground)):
        rest = [k for k in left if k != m.columns[1].index(name)]
        if len(found) < m.loop_analysis.mobility and np.linalg.matrix_rank(J[:, rest]) == rank:
            left = rest
            found.append(name)
    return [name for name in names if name in found]


def met(m: Mechanism, moved: list[str]) -> tuple[Any, Any, Any]:
    """What each joint meets in a few poses: the largest inertia with all others held, the smallest with all others
    free (a floating base gives way), and the largest weight. In loops what one joint of the tree carries hangs on all
    that are moved: each is made for the most that any of its kind meets.
    """
    q = np.stack([m.neutral(), *(m.random(seed)[0] for seed in range(POSES))])
    M = np.asarray(m.mass_matrix(q))
    held = np.diagonal(M, axis1=-2, axis2=-1).max(axis=0)
    free = 1.0 / np.diagonal(np.linalg.inv(M), axis1=-2, axis2=-1).max(axis=0)
    weight = np.abs(m.gravity_torque(q)).max(axis=0)
    if m.loops:
        kinds = {j.name: j.kind for j in m.own_joints}
        for kind in set(kinds.values()):
            same = [m.columns[1].index(name) for name in moved if kinds[name] == kind]
            if same:
                held[same], weight[same], free[same] = (
                    held[same].max(),
                    weight[same].max(),
                    free[same].max() / len(same),
                )
    return held, free, weight


def gains(held: float, free: float, weight: float, size: float) -> tuple[float, float]:
    """kp and kd; size: of a radian, or what is large for a slide, m."""
    kp = min(max(held * SWING**2, weight * FIRM / size), free * QUICK**2)
    return kp, min(2.0 * math.sqrt(kp * held), free * QUICK)
