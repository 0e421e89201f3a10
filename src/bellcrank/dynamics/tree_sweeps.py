"""Shared sweeps: poses, forces on the bodies, and generalised forces on the coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics import springs
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Force, Mat, Motion, Vec, vec

Vector = Sequence[Scalar]
Wrenches = Sequence[Vector] | None  # one [force, moment] for each frame on which an external force acts


def subspace_motion(S: Sequence[Motion], rates: Vector) -> Motion:
    """Return S v, the motion due to `rates` along the columns of `S`."""
    total = NO_MOTION
    for s, rate in zip(S, rates, strict=True):
        total = total + s * rate
    return total


def joint_elements(link: Link, x: Vector) -> list[Scalar]:
    """Return the elements of the velocity-like vector `x` that belong to the joint of `link`."""
    return [x[i] for i in link.v_index]


def external_forces(tree: Tree, q: Vector, frames: Sequence[str], wrench: Wrenches) -> list[Force]:
    """Return the external force on each body about its F.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    forces = [NO_FORCE] * len(tree.links)
    if not frames or wrench is None:
        return forces
    R_WF = [R for R, _ in poses(tree, q)]
    for name, w in zip(frames, wrench, strict=True):
        step("wrench", name)
        body, _, p = tree.frames[name]
        if body >= 0:
            f, n = R_WF[body].T @ vec(w[:3]), R_WF[body].T @ vec(w[3:])
            forces[body] = forces[body] + Force(n + p.cross(f), f)
    return forces


def poses(tree: Tree, q: Vector) -> list[tuple[Mat, Vec]]:
    """Return R_WF and p_WF of every body of `tree` at positions `q`."""
    ground = tree.ground.pose(IDENTITY, ZERO)
    body_poses: list[tuple[Mat, Vec]] = []
    for link in tree.links:
        step("pose", link.name)
        body_poses.append(link.transform(q).pose(*(body_poses[link.parent] if link.parent >= 0 else ground)))
    return body_poses


def rate(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return dq/dt, joint by joint.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return apply_joint_function(tree, "rate", q, v)


def apply_joint_function(tree: Tree, function: str, q: Vector, v: Vector) -> list[Scalar]:
    """Apply a function of the joint types to the coordinates of each joint, except mimic joints.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    function
        Name of a method of the joint types.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    out: list[Scalar] = []
    for link in tree.links:
        if link.joint.mimic is None:
            step(function, link.name)
            out += getattr(link.kind, function)([q[i] for i in link.q_index], [v[i] for i in link.v_index])
    return out


def passive_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return damping, friction and springs, in joints and between points, as generalised forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    out = springs.torque(tree, q, v) if tree.springs else [0.0] * tree.nv
    for body in tree.flexible:
        for i, f in zip(body.v_index, body.passive(q, v), strict=True):
            out[i] = out[i] + f
    for link in tree.links:
        step("passive", link.name)
        for i, f in zip(link.v_index, link.passive(q, v), strict=True):
            out[i] = out[i] + f
    return out


def generalised_forces(tree: Tree, q: Vector, forces: Sequence[Force]) -> list[Scalar]:
    """Return J^T f, the generalised forces due to forces on the bodies.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    forces
        Force on each body, about its own frame.
    """
    f = list(forces)
    out: list[Scalar] = [0.0] * tree.nv
    for i, link in reversed(list(enumerate(tree.links))):
        step("felt", link.name)
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            out[k] = out[k] + s.dot(f[i])
        if link.parent >= 0:
            f[link.parent] = f[link.parent] + link.transform(q).force(f[i])
    return out


def right_hand_side(
    tree: Tree, q: Vector, v: Vector, tau: Vector, C: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return tau + passive + J^T wrench - C.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    C
        Bias forces, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    passive, outer = passive_torque(tree, q, v), [0.0] * tree.nv
    if frames:
        outer = generalised_forces(tree, q, external_forces(tree, q, frames, wrench))
    step("tau - C")
    return [t + p + o - c for t, p, o, c in zip(tau, passive, outer, C, strict=True)]
