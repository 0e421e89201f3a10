"""Conversion of a mechanism to absolute coordinates: every body floats, and every joint becomes a loop joint.

This corresponds to nikravesh1989, equations 1 to 4. If all joints rotate about or slide across the world's z, bodies
have three coordinates each, otherwise seven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.dynamics.loops.constraint_equations import CLOSURES
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism
from bellcrank.model.construction import mechanism_of
from bellcrank.model.parts import IDENTITY, Frame, Joint, Loop, Matrix, matrix

Array = np.ndarray[Any, Any]


def absolute(mechanism: Mechanism) -> Mechanism:
    """Return `mechanism` in absolute coordinates.

    Bodies and frames keep their names; a joint becomes a loop of the same name, and the joint of a body has the body's
    name.
    """
    m = mechanism
    kind = "planar" if _flat(m) else "floating"
    frames, loops, joints = dict(m.frames), [], []
    for j, body in zip(m.joints, m.bodies, strict=True):
        _check(m, j)
        joints.append(Joint(body.name, kind, m.ground, body.name))
        if j.kind in ("floating", kind):
            continue
        axes = _axes(j)
        first, second = f"{j.name}.a", f"{j.name}.b"
        frames[first] = Frame(first, j.parent, matrix(np.asarray(j.rotation) @ np.asarray(axes)), j.point)
        frames[second] = Frame(second, j.child, axes)
        loops.append(Loop(j.name, j.kind, first, second))
    for loop in m.loops:
        if loop.joints:
            raise ModelError(
                f'loop "{loop.name}" couples joint coordinates, which do not exist in absolute coordinates.'
            )
        loops.append(loop)
    body_names = {m.ground, *(b.name for b in m.bodies)}
    places = [f for name, f in frames.items() if name not in body_names]
    return mechanism_of(
        f"{m.name}_absolute", list(m.bodies), joints, places, ground=m.ground, gravity=m.gravity, loops=loops,
        springs=list(m.springs),
    )  # fmt: skip


def state(mechanism: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """Convert a configuration and velocity to absolute coordinates.

    Parameters
    ----------
    mechanism
        The original mechanism.
    q
        Its positions.
    v
        Its velocities.
    """
    flat = _flat(mechanism)
    places: list[Array] = []
    speeds: list[Array] = []
    for b in mechanism.bodies:
        X, V = mechanism.pose(q, b.name), mechanism.velocity(q, v, b.name)
        R, p = X[:3, :3], X[:3, 3]
        lin, ang = R.T @ V[:3], R.T @ V[3:]
        if flat:
            places.append(np.array([p[0], p[1], np.arctan2(R[1, 0], R[0, 0])]))
            speeds.append(np.array([lin[0], lin[1], ang[2]]))
        else:
            places.append(np.concatenate([p, _quaternion(R)]))
            speeds.append(np.concatenate([lin, ang]))
    return np.concatenate(places), np.concatenate(speeds)


def _quaternion(R: Array) -> Array:
    """Return the quaternion (x, y, z, w) of a rotation, computed from the column with the largest diagonal element."""
    xx, yy, zz = np.diag(R)
    K = np.array(
        [
            [1 + xx - yy - zz, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]],
            [R[0, 1] + R[1, 0], 1 - xx + yy - zz, R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]],
            [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - xx - yy + zz, R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1 + xx + yy + zz],
        ]
    )
    column = K[:, int(np.argmax(np.diag(K)))]
    return np.asarray(column / np.linalg.norm(column))


def _flat(m: Mechanism) -> bool:
    """Return True if every joint keeps its body in the world's xy plane, with the body's z axis along the world's."""

    def in_plane(j: Joint) -> bool:
        up = np.allclose(np.abs(np.asarray(j.rotation, float)[2]), [0, 0, 1], atol=1e-12)
        z = abs(float(j.axis[2]))
        return up and (z > 1 - 1e-12 if j.kind == "revolute" else j.kind == "prismatic" and z < 1e-12)

    return not m.parameters and all(in_plane(j) for j in m.joints)


def _check(m: Mechanism, j: Joint) -> None:
    if j.mimic is not None or j.armature or j.damping or j.friction or j.stiffness:
        raise ModelError(
            f'joint "{j.name}" of "{m.name}" has a coupling, a rotor, friction or a spring of its own: absolute '
            "coordinates have no joint coordinate for that. Describe springs between points instead."
        )
    if j.kind not in CLOSURES and j.kind != "floating":
        raise ModelError(
            f'joint "{j.name}" of "{m.name}" is {j.kind}, which is not a loop joint; these are: {", ".join(CLOSURES)}.'
        )


def _axes(j: Joint) -> Matrix:
    """Return the axes of a frame on the joint with z along its axis, and x along its second axis if it has one."""
    z = np.asarray(j.axis, float)
    guess = np.asarray(j.second_axis, float) if j.second_axis is not None else np.eye(3)[int(np.argmin(np.abs(z)))]
    x = guess - (guess @ z) * z
    x /= np.linalg.norm(x)
    return matrix(np.column_stack([x, np.cross(z, x), z])) if not np.allclose(z, [0, 0, 1]) else IDENTITY
