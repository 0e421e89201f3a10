"""Validation of the actuated joints of a mechanism with loops.

There must be as many actuated coordinates as degrees of freedom, and with them locked nothing else may move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.dynamics.loops.constraint_values import Array, evaluate_constraints
from bellcrank.dynamics.loops.equation_analysis import Analysis
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS


def actuated_indices(mechanism: Mechanism, loop_analysis: Analysis, names: Sequence[str]) -> tuple[int, ...]:
    """Return the elements of v that the named joints drive.

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    loop_analysis
        Analysis of its loop equations.
    names
        Names of the actuated joints.

    Raises
    ------
    InputError
        If the names are not valid joints, or these joints do not determine the motion.
    """
    indices: dict[str, list[int]] = {}
    first_index = 0
    for j in mechanism.own_joints:
        indices[j.name] = list(range(first_index, first_index + KINDS[j.kind].nv))
        first_index += KINDS[j.kind].nv
    where = f'inverse_dynamics of "{mechanism.name}"'
    joint_list = f"Its joints are: {', '.join(indices)}."
    if not names:
        raise InputError(
            f"{where}: the mechanism has loops, so its joints cannot all be actuated. Name the actuated joints: "
            f"actuated=[...] with {_format_freedoms(loop_analysis.mobility)} in total. {joint_list}"
        )
    followers = {j.name: j.mimic.joint for j in mechanism.joints if j.mimic is not None}
    for k, name in enumerate(names):
        if name in followers:
            raise InputError(f'{where}: actuated joint "{name}" mimics "{followers[name]}"; name that one instead.')
        if any(loop.name == name for loop in mechanism.loops):
            raise InputError(
                f'{where}: actuated: "{name}" closes a loop and has no coordinate. Actuate another joint, or build the '
                f"mechanism so that another joint closes the loop. {joint_list}"
            )
        if name not in indices:
            raise InputError(f"{where}: actuated: {unknown('joint', name, indices)}")
        if name in names[:k]:
            raise InputError(f'{where}: actuated has "{name}" twice.')
    active = tuple(i for name in names for i in indices[name])
    if len(active) != loop_analysis.mobility:
        kind = (
            "over-actuated: their forces are not determined"
            if len(active) > loop_analysis.mobility
            else "under-actuated"
        )
        raise InputError(
            f"{where}: {', '.join(names)} drive {len(active)} coordinates, but the mechanism has "
            f"{_format_freedoms(loop_analysis.mobility)}: it would be {kind}. {joint_list}"
        )
    plain = mechanism.at() if mechanism.parameters else mechanism
    left = _remaining_motion(
        loop_analysis.scales.scaled(evaluate_constraints(plain.tree, loop_analysis.samples).C),
        active,
        loop_analysis.cut,
    )
    if left is not None:
        moving = dict.fromkeys(c.partition(".")[0] for c, x in zip(mechanism.columns[1], left, strict=True) if x > 1e-6)
        raise InputError(
            f"{where}: {', '.join(names)} cannot drive it: with these locked {', '.join(moving)} can still move. "
            f"Actuate one of those instead. {joint_list}"
        )
    return active


def _remaining_motion(C: Array, active: Sequence[int], least: float) -> Array | None:
    """Return a motion that remains in every configuration with the driven coordinates locked; None if there is none."""
    locked = np.array(C)
    locked[..., list(active)] = 0.0
    hold = np.zeros((len(active), C.shape[-1]))
    hold[range(len(active)), list(active)] = 1.0
    whole = np.concatenate([locked, np.broadcast_to(hold, (len(C), *hold.shape))], axis=1)
    _, s, V = np.linalg.svd(whole)
    last = s[:, -1] / np.maximum(s[:, 0], 1e-300) if s.shape[1] else np.ones(len(C))
    best = int(np.argmax(last))
    return None if last[best] > least else np.abs(V[best, -1])


def _format_freedoms(n: int) -> str:
    return f"{n} freedom{'' if n == 1 else 's'}"
