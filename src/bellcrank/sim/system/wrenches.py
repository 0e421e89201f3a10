"""External forces on frames, such as soil, wind or a hand, as generalised forces.

    tau = J^T [f, n]        J: frame Jacobian

A force is a function of (t, pose, velocity) that returns (force, moment), all at the frame's origin and in world axes:
pose is 4x4, velocity [linear, angular], force and moment have three components each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.parameters.validation import check_numbers
from bellcrank.scalar import Scalar
from bellcrank.sim.system import rolled_frame_motion
from bellcrank.sim.system.user_code import call_user_function, named_scalars

Wrench = Callable[..., Any]
AXES = ("x", "y", "z")


def checked_forces(mechanism: Mechanism, forces: Any) -> dict[str, Wrench]:
    """Return `forces` as a dict after checking that frames of the `mechanism` and functions are given."""
    if not isinstance(forces, Mapping):
        raise InputError(f"forces is {forces!r}; expected functions of (t, pose, velocity) by the name of a frame.")
    for frame, f in forces.items():
        if frame not in mechanism.frames:
            raise InputError(f'forces on "{mechanism.name}": {unknown("frame", frame, mechanism.frames)}')
        if not callable(f):
            raise InputError(f'force on "{frame}" is {f!r}; expected a function of (t, pose, velocity).')
        check_numbers(f, f'force on "{frame}"')
    return dict(forces)


def frame_wrenches(
    mechanism: Mechanism, wrenches: Mapping[str, Wrench], t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
) -> dict[str, list[Scalar]]:
    """Return [force, moment] on each frame, in world axes.

    Parameters
    ----------
    mechanism
        Mechanism.
    wrenches
        Functions by frame.
    t, q, v
        Time, positions and velocities.
    """
    tree, wrench_of = mechanism.tree, {}
    frame_states = (
        rolled_frame_motion.frame_motions(mechanism, list(wrenches), q, v)
        if wrenches and rolled_frame_motion.uses_recursions(mechanism, q)
        else {}
    )
    for frame, f in wrenches.items():
        what = f'force on "{frame}"'
        if frame in frame_states:
            frame_state = frame_states[frame]
            arguments = (
                _object_array(kinematics.homogeneous_matrix(frame_state.R, frame_state.p)),
                _object_array([*frame_state.u, *frame_state.w]),
            )
        else:
            arguments = (
                _object_array(kinematics.pose(tree, q, frame)),
                _object_array(kinematics.velocity(tree, q, v, frame)),
            )
        returned = call_user_function(what, f, t, *arguments, expected="(t, pose, velocity)")
        if not isinstance(returned, Sequence | np.ndarray) or len(returned) != 2:
            raise InputError(f"{what} returned {returned!r}; expected the pair (force, moment).")
        force, moment = returned
        wrench_of[frame] = named_scalars(what, force, AXES) + named_scalars(f'moment on "{frame}"', moment, AXES)
    return wrench_of


def wrench_forces(mechanism: Mechanism, acts: Mapping[str, Sequence[Scalar]], q: Sequence[Scalar]) -> list[Scalar]:
    """Return the generalised forces of wrenches on frames.

    Parameters
    ----------
    mechanism
        Mechanism.
    acts
        [force, moment] by frame, in world axes.
    q
        Positions.
    """
    if acts and rolled_frame_motion.uses_recursions(mechanism, q):
        return rolled_frame_motion.generalised_forces(mechanism, list(acts.items()), q)
    tau: list[Scalar] = [0.0] * mechanism.nv
    for frame, wrench in acts.items():
        for row, w in zip(kinematics.jacobian(mechanism.tree, q, frame), wrench, strict=True):
            tau = [x + j * w for x, j in zip(tau, row, strict=True)]
    return tau


def _object_array(rows: list[Any]) -> Any:
    """Return an object array, so that pose[2, 3] and pose[:3, 3] work as with numbers."""
    return np.array(rows, object)
