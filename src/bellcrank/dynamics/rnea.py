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

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    Exchange,
    FromParent,
    Send,
    SendInwards,
    Sum,
    SweepResults,
    Vector,
    Wrenches,
    external_force,
    external_forces,
    joint_elements,
    passive_torque,
    right_hand_side,
    subspace_motion,
    sweep,
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
    return [f for f, _ in _sweep_forces(tree, q, v, a, frames, wrench).by_link]


def _sweep_forces(tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str], wrench: Wrenches) -> SweepResults:
    external_loads = external_forces(tree, q, frames, wrench)
    return sweep(tree, transmitted_force, {"q": q, "v": v, "a": a}, external_loads, passive=False)


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
    return _sweep_forces(tree, q, v, a, frames, wrench).by_coordinate(lambda found: found[1]())


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


# -- the work of one body


def transmitted_force(body: Body) -> Generator[Exchange, Any, tuple[Force, Callable[[], list[Scalar]]]]:
    """Return the force through the joint of the `body`, and a function for the forces on coordinates that end there.

    The latter are less springs and friction where these belong to the body.
    """
    link, q, v, a, share, modes = body.link, body.q, body.v, body.a, body.share, body.modes
    up = yield FromParent(Acceleration(ZERO, ZERO, -body.ground.gravity))
    A = child_acceleration(link, q, v, a, up)
    yield Send(A)
    f, modal = body_force(body, a, A)  # 1.11, 1.12
    shared: list[Scalar] = [0.0] * share.slots
    resisted = modes.passive(q, v) if modes and body.passive else [0.0] * len(modal)
    for k, x, p in zip(share.modes, modal, resisted, strict=True):
        shared[k] = x - p
    f, shared = yield Sum(link.name, {"f": f, "tau": shared})
    S = link.subspace(q)

    def torques(axes: Sequence[int]) -> list[Scalar]:
        step("tau", link.name)
        tau = [S[i].dot(f) + link.armature * a[i] for i in axes]  # 2.3
        if not (body.passive and axes):
            return tau
        step("passive", link.name)
        lost = link.passive(q, v)
        step("tau - passive", link.name)
        return [t - lost[i] for t, i in zip(tau, axes, strict=True)]

    at_once = [i for i, k in enumerate(share.axes) if k < 0]
    later = [i for i, k in enumerate(share.axes) if k >= 0]
    for i, x in zip(later, torques(later), strict=True):
        shared[share.axes[i]] = shared[share.axes[i]] + x

    def carried() -> tuple[Force, list[Scalar]]:
        step("f", link.joint.parent)
        return link.transform(q).force(f), [x if k in share.open else 0.0 for k, x in enumerate(shared)]  # 2.2

    yield SendInwards(carried)

    def ending() -> list[Scalar]:
        own = dict(zip(at_once, torques(at_once), strict=True))
        axes = enumerate(zip(share.axes, share.closes, strict=True))
        joint = [own[i] if k < 0 else shared[k] for i, (k, closes) in axes if closes]
        return [*joint, *(shared[k] for k in share.ends)]

    return f, ending


def body_force(body: Body, a: Vector, A: Acceleration) -> tuple[Force, Sequence[Scalar]]:
    """Return the force about F that moves the body as given, and the generalised forces of its modes.

    Parameters
    ----------
    body
        The body.
    a
        Accelerations of its joint and modes.
    A
        Acceleration of its frame.
    """
    step("f", body.link.name)
    f, modes = body.inertia.newton_euler(A) - body.external, body.modes
    if modes is None:
        return f, []
    force, felt = modes.newton_euler(body.q, body.v, a, A)
    return f + force, felt


def body_inverse_dynamics(body: Body) -> BodyRecursion:
    """Return the generalised forces of the coordinates that end at the `body`, less its passive forces."""
    return (yield from transmitted_force(replace(body, external=(yield from external_force(body)))))[1]()


def body_bias(body: Body) -> BodyRecursion:
    """Return the bias forces of the coordinates that end at the `body`."""
    return (yield from transmitted_force(replace(body, a=[0.0] * len(body.v), passive=False)))[1]()


def body_coriolis_torque(body: Body) -> BodyRecursion:
    """Return the Coriolis and centrifugal forces of the coordinates that end at the `body`."""
    return body_bias(replace(body, ground=replace(body.ground, gravity=ZERO)))


def body_gravity_torque(body: Body) -> BodyRecursion:
    """Return the gravity forces of the coordinates that end at the `body`."""
    return body_bias(replace(body, v=[0.0] * (len(body.link.v_index) + len(body.share.modes))))
