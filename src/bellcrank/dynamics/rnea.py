"""Recursive Newton-Euler algorithm for inverse dynamics.

J. Y. S. Luh, M. W. Walker and R. P. C. Paul, On-line computational scheme for mechanical manipulators, J. Dyn. Sys.
Meas. Control 102, 1980; equation numbers are those of Wong 1991, section 2.2.1.

Solves: inverse_dynamics, bias, gravity_torque, coriolis_torque. Any tree. Work O(n), span O(depth).

    A_i   w, dw and the origin's acceleration of body i's frame, in the frame    X_i   transform from the parent's frame
    f_i   force and moment that joint i transmits, about its frame                S_i   the joint's axes (columns)

Differences from the paper: frames are attached to the joint and everything is in body coordinates, so that k = 0 in
Wong's equations; the velocity products are shared through K = [dw] + [w][w], with which F = m a + K h (W. Khalil and
J. F. Kleinfinger, Minimum operations and minimum parameters of the dynamic models of tree structure robots, 1987).
Joints may have any number of axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bellcrank.dynamics.tree_sweeps import (
    Vector,
    Wrenches,
    external_forces,
    joint_elements,
    passive_torque,
    right_hand_side,
    subspace_motion,
)
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import ZERO, Acceleration, Force


def joint_forces(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Force]:
    """Return f of every joint: the total force through it, constraint and drive.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    return _forces(tree, q, v, a, frames, wrench)[0]


def child_acceleration(link: Link, q: Vector, v: Vector, a: Vector, parent: Acceleration) -> Acceleration:
    """Return A of a body whose parent has the acceleration `parent`.

    Parameters
    ----------
    link
        Joint and its body.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    parent
        Acceleration of the parent's frame.
    """
    step("A", link.name)
    S = link.subspace(q)
    vJ, aJ = subspace_motion(S, joint_elements(link, v)), subspace_motion(S, joint_elements(link, a)) + link.bias(q, v)
    return link.transform(q).acceleration(parent).through_joint(vJ, aJ)  # 1.5, 1.6, 2.1


def forward_sweep(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Acceleration]:
    """Return A of every body, and last that of the ground, whose upward acceleration represents gravity.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    """
    A = {-1: Acceleration(ZERO, ZERO, -tree.gravity)}
    for i, link in enumerate(tree.links):
        A[i] = child_acceleration(link, q, v, a, A[link.parent])
    return [*(A[i] for i in range(len(tree.links))), A[-1]]


def _forces(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> tuple[list[Force], dict[int, Scalar]]:
    """Return f, and the generalised forces of the modes of flexible bodies, by their elements of v."""
    A = {-1: Acceleration(ZERO, ZERO, -tree.gravity)}
    f = []
    external_loads, inertia = external_forces(tree, q, frames, wrench), tree.link_inertias(q)
    for i, link in enumerate(tree.links):
        A[i] = child_acceleration(link, q, v, a, A[link.parent])
        step("f", link.name)
        f.append(inertia[i].newton_euler(A[i]) - external_loads[i])  # 1.11, 1.12
    modal: dict[int, Scalar] = {}
    for body in tree.flexible:
        force, felt = body.newton_euler(q, v, a, A[body.link])
        modal |= dict(zip(body.v_index, felt, strict=True))
        if body.link >= 0:
            f[body.link] = f[body.link] + force
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            step("f", tree.links[link.parent].name)
            f[link.parent] = f[link.parent] + link.transform(q).force(f[i])  # 2.2
    return f, modal


def rigid_forces(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return M a + bias - J^T wrench: the joint forces before springs and friction.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    f, modal = _forces(tree, q, v, a, frames, wrench)
    tau: list[Scalar] = [modal.get(k, 0.0) for k in range(tree.nv)]
    for i, link in reversed(list(enumerate(tree.links))):
        step("tau", link.name)
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            tau[k] = tau[k] + s.dot(f[i]) + link.armature * a[k]  # 2.3
    return tau


def net_forces(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return M a: drives, springs, friction and wrenches less the bias forces.

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
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    return right_hand_side(tree, q, v, tau, rigid_forces(tree, q, v, [0.0] * tree.nv, frames, wrench))


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the joint forces tau that produce the accelerations a, less the passive forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    tau, passive = rigid_forces(tree, q, v, a, frames, wrench), passive_torque(tree, q, v)
    step("tau - passive")
    return [t - p for t, p in zip(tau, passive, strict=True)]


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return Coriolis, centrifugal and gravity forces: rigid_forces at a = 0.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return rigid_forces(tree, q, v, [0.0] * tree.nv)


def coriolis_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return Coriolis and centrifugal forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return bias(replace(tree, gravity=ZERO), q, v)


def gravity_torque(tree: Tree, q: Vector) -> list[Scalar]:
    """Return the joint forces that balance gravity in `tree` at positions `q`."""
    return rigid_forces(tree, q, [0.0] * tree.nv, [0.0] * tree.nv)
