"""Body recursions for forward and inverse dynamics."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from bellcrank.dynamics import aba, rnea
from bellcrank.dynamics.recursion import shared_aba_rnea
from bellcrank.dynamics.recursion.body_recursion import (
    BodyFrames,
    BodyRecursion,
    Exchange,
    FromChildren,
    FromParent,
    Ground,
    Send,
)
from bellcrank.dynamics.shared_coordinates import SharingLink
from bellcrank.dynamics.tree_sweeps import Vector, joint_elements, subspace_motion
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, ZERO, Acceleration, Force, Mat, Motion, vec


def forward_dynamics(
    link: Link, ground: Ground, q: Vector, v: Vector, tau: Vector, wrench: Vector = (), pushed: BodyFrames | None = None
) -> BodyRecursion:
    """Return the accelerations of one joint: aba.py as a body recursion.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    tau
        Forces and moments on the joint's coordinates.
    wrench
        [force, moment] of each pushed frame, one after another, in world axes.
    pushed
        Frames of the body on which wrenches act.
    """
    external = NO_FORCE
    if pushed is not None:  # orientations are needed only for external forces
        external = external_force(link, (yield from orientation(link, ground, q)), wrench, pushed)
    a, _ = yield from body_acceleration(link, ground, q, v, tau, external)
    return a


def body_acceleration(
    link: Link, ground: Ground, q: Vector, v: Vector, tau: Vector, external: Force
) -> Generator[Exchange, Any, tuple[list[Scalar], Force]]:
    """Return the accelerations of the joint, and the force about F that moves the body with them.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    tau
        Forces and moments on the joint's coordinates.
    external
        External force on the body about the origin of its frame.
    """
    if isinstance(link, SharingLink):
        return (yield from shared_aba_rnea.shared_body_acceleration(link, ground, q, v, tau, external))
    X, S = aba.transform_and_axes(link, q)
    w = yield FromParent(ZERO)
    m = aba.velocity_acceleration(link, X, S, q, v, w)
    yield Send(m.w)
    c, pA, IA = Motion(m.dw, m.a), aba.bias_force(link, link.inertia, m.w, external), articulated_inertia(link.inertia)
    parts = yield FromChildren()
    for inertia, force in parts:
        IA, pA = IA + inertia, pA + force
    step("passive", link.name)
    driven = [t + p for t, p in zip(tau, link.passive(q, v), strict=True)]
    psi, D, u = {}, {}, {}
    for s, k in reversed(list(zip(S, link.v_index, strict=True))):
        psi[k], D[k], u[k], IA, pA = aba.eliminate_axis(link, s, driven[k], IA, pA)
    yield Send((X.articulated(IA), X.force(pA + IA @ c)))
    up = yield FromParent(Motion(ZERO, -ground.gravity))
    step("a", link.name)
    A, a = X.motion(up) + c, []
    for s, k in zip(S, link.v_index, strict=True):
        a.append(u[k] * D[k] - A.dot(psi[k]))
        A = A + s * a[-1]
    yield Send(A)
    return a, link.inertia.newton_euler(Acceleration(m.w, A.ang, A.lin)) - external


def response(link: Link, ground: Ground, q: Vector, tau: Vector) -> BodyRecursion:
    """Return M^-1 tau, the accelerations due to joint forces alone: aba.py without velocities.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    tau
        Forces and moments on the joint's coordinates.
    """
    X, S = aba.transform_and_axes(link, q)
    pA, IA = NO_FORCE, articulated_inertia(link.inertia)
    parts = yield FromChildren()
    for inertia, force in parts:
        IA, pA = IA + inertia, pA + force
    psi, D, u = {}, {}, {}
    for s, k in reversed(list(zip(S, link.v_index, strict=True))):
        psi[k], D[k], u[k], IA, pA = aba.eliminate_axis(link, s, tau[k], IA, pA)
    yield Send((X.articulated(IA), X.force(pA)))
    up = yield FromParent(Motion(ZERO, ZERO))
    step("a", link.name)
    A, a = X.motion(up), []
    for s, k in zip(S, link.v_index, strict=True):
        a.append(u[k] * D[k] - A.dot(psi[k]))
        A = A + s * a[-1]
    yield Send(A)
    return a


def inverse_dynamics(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, wrench: Vector = (), pushed: BodyFrames | None = None
) -> BodyRecursion:
    """Return the joint forces of one body: rnea.py as a body recursion, less the passive forces.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    wrench
        [force, moment] of each pushed frame, one after another, in world axes.
    pushed
        Frames of the body on which wrenches act.
    """
    external = NO_FORCE
    if pushed is not None:
        external = external_force(link, (yield from orientation(link, ground, q)), wrench, pushed)
    return (yield from _required_forces(link, ground, q, v, a, external, passive=True))


def bias(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
    """Return the bias forces of one joint.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    """
    return _required_forces(link, ground, q, v, [0.0] * len(v))


def coriolis_torque(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
    """Return the Coriolis and centrifugal forces of one joint.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    """
    return bias(link, replace(ground, gravity=ZERO), q, v)


def gravity_torque(link: Link, ground: Ground, q: Vector) -> BodyRecursion:
    """Return the gravity forces of one joint.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    """
    modes = link.bending.v_index if isinstance(link, SharingLink) and link.bending else ()
    still = [0.0] * (len(link.v_index) + len(modes))
    return _required_forces(link, ground, q, still, still)


def _required_forces(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, external: Force = NO_FORCE, passive: bool = False
) -> BodyRecursion:
    """Return the generalised forces of the body's coordinates, if `passive` less springs and friction."""
    if isinstance(link, SharingLink):
        return (yield from shared_aba_rnea.required_forces(link, ground, q, v, a, external, passive))
    up = yield FromParent(Acceleration(ZERO, ZERO, -ground.gravity))
    A = rnea.child_acceleration(link, q, v, a, up)
    yield Send(A)
    step("f", link.name)
    f = link.inertia.newton_euler(A) - external
    parts = yield FromChildren()
    for force in parts:
        f = f + force
    yield Send(link.transform(q).force(f))
    step("tau", link.name)
    tau = [s.dot(f) + link.armature * a[k] for s, k in zip(link.subspace(q), link.v_index, strict=True)]
    if not passive:
        return tau
    lost = link.passive(q, v)
    step("tau - passive", link.name)
    return [t - p for t, p in zip(tau, lost, strict=True)]


def orientation(link: Link, ground: Ground, q: Vector) -> Generator[Exchange, Any, Mat]:
    """Return the orientation of the body in the world.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    """
    up = yield FromParent(ground.R)
    step("pose", link.name)
    R: Mat = link.transform(q).pose(up, ZERO)[0]
    yield Send(R)
    return R


def external_force(link: Link, R: Mat, wrench: Vector, pushed: BodyFrames) -> Force:
    """Return the external force on the body about the origin of its frame.

    Parameters
    ----------
    link
        Joint and its body.
    R
        Orientation of the body in the world.
    wrench
        [force, moment] of each pushed frame, one after another, in world axes.
    pushed
        Frames of the body on which wrenches act.
    """
    total = NO_FORCE
    for i, p in enumerate(pushed.points):
        step("wrench", link.name)
        f, n = R.T @ vec(wrench[6 * i : 6 * i + 3]), R.T @ vec(wrench[6 * i + 3 : 6 * i + 6])
        total = total + Force(n + p.cross(f), f)
    return total


def observed_frames(link: Link, ground: Ground, q: Vector, v: Vector, seen: BodyFrames) -> BodyRecursion:
    """Return position and velocity of some frames of one body, in world axes.

    Frames with axes also get their angular velocity and orientation.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    seen
        Frames of the body at which the result is wanted.
    """
    X = link.transform(q)
    R, p, V = yield FromParent((ground.R, ground.p, NO_MOTION))
    step("pose", link.name)
    R, p = X.pose(R, p)
    step("V", link.name)
    V = X.motion(V) + subspace_motion(link.subspace(q), joint_elements(link, v))
    yield Send((R, p, V))
    out: list[Scalar] = []
    for i, r in enumerate(seen.points):
        out += [*(p + R @ r), *(R @ (V.lin + V.ang.cross(r)))]
        if seen.axes:
            out += [*(R @ V.ang), *(x for row in R.times(seen.axes[i]).rows for x in row)]
    return out


def generalised_forces(link: Link, ground: Ground, q: Vector, wrench: Vector, pushed: BodyFrames) -> BodyRecursion:
    """Return J^T wrench: the generalised forces due to forces on frames, and nothing else.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    wrench
        [force, moment] of each pushed frame, one after another, in world axes.
    pushed
        Frames of the body on which wrenches act.
    """
    total = external_force(link, (yield from orientation(link, ground, q)), wrench, pushed)
    parts = yield FromChildren()
    for part in parts:
        total = total + part
    yield Send(link.transform(q).force(total))
    step("felt", link.name)
    return [s.dot(total) for s in link.subspace(q)]
