"""Body recursions for motion: poses, velocities and accelerations of frames, and functions of the joints.

Sweeps pass on X (R and p of the body in the world), V (its velocity) and A (its acceleration, without gravity).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from bellcrank.dynamics import aba, rnea
from bellcrank.dynamics.frame_motion import acceleration_at_reference, spatial_acceleration_from_point
from bellcrank.dynamics.kinematics import Pose, homogeneous_matrix, motion_at_reference
from bellcrank.dynamics.tree_sweeps import (
    BodyFrames,
    BodyRecursion,
    Exchange,
    FromParent,
    Ground,
    Send,
    Vector,
    accumulate_subtree,
    external_force,
    joint_elements,
    orientation,
    push_force,
    subspace_motion,
)
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import AT_REST, NO_FORCE, NO_MOTION


def propagate_motion(
    link: Link, ground: Ground, wanted: str, q: Vector, v: Vector = (), a: Vector = ()
) -> Generator[Exchange, Any, list[Any]]:
    """Compute those of X, V and A of the body that `wanted` names.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    wanted
        Letters among "XVA".
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    """
    start: dict[str, Any] = {"X": (ground.R, ground.p), "V": NO_MOTION, "A": AT_REST}
    up = yield FromParent([start[x] for x in wanted])
    X, motion = link.transform(q), list[Any]()
    for x, above in zip(wanted, up, strict=True):
        step("pose" if x == "X" else x, link.name)
        if x == "X":
            motion.append(X.pose(*above))
        elif x == "V":
            motion.append(X.motion(above) + subspace_motion(link.subspace(q), joint_elements(link, v)))
        else:
            motion.append(rnea.child_acceleration(link, q, v, a, above))
    yield Send(motion)
    return motion


def exchange_nothing() -> Generator[Exchange, Any, None]:
    """Exchange nothing with the neighbours."""
    yield FromParent(())
    yield Send(())


# -- functions of the joint


def passive_torque(
    link: Link, ground: Ground, q: Vector, v: Vector, wrench: Vector = (), pushed: BodyFrames | None = None
) -> BodyRecursion:
    """Return the passive forces of one joint, including springs between bodies if there are any.

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
    wrench
        [force, moment] of each pushed frame, one after another, in world axes.
    pushed
        Frames of the body on which wrenches act.
    """
    pulled: Sequence[Scalar] = [0.0] * len(v)
    if pushed is None:
        yield from exchange_nothing()
    else:
        pulled = yield from generalised_forces(link, ground, q, wrench, pushed)
    step("passive", link.name)
    return [f + x for f, x in zip(link.passive(q, v), pulled, strict=True)]


def joint_function(function: str) -> Callable[..., BodyRecursion]:
    """Return the body function that applies the `function` of the joint type to the joint's own coordinates."""

    def body(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
        yield from exchange_nothing()
        step(function, link.name)
        rates: list[Scalar] = getattr(link.kind, function)(q, v)
        return rates

    return body


# -- functions of frames


def poses(link: Link, ground: Ground, q: Vector, seen: BodyFrames) -> BodyRecursion:
    """Return the pose matrices of some frames of one body.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    seen
        Frames of the body at which the result is wanted.
    """
    ((R, p),) = yield from propagate_motion(link, ground, "X", q)
    matrices = [homogeneous_matrix(R.times(axes), p + R @ r) for r, axes in zip(seen.points, seen.axes, strict=True)]
    return [x for matrix in matrices for row in matrix for x in row]


def velocity(link: Link, ground: Ground, q: Vector, v: Vector, seen: BodyFrames, reference: str) -> BodyRecursion:
    """Return the velocities of some frames of one body.

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
    reference
        "aligned", "local" or "world".
    """
    X, V = yield from propagate_motion(link, ground, "XV", q, v)
    step("velocity", link.name)
    motions = [motion_at_reference(V, X, frame, reference) for frame in frame_poses(seen)]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def acceleration(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: BodyFrames, reference: str
) -> BodyRecursion:
    """Return the accelerations of some frames of one body.

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
    seen
        Frames of the body at which the result is wanted.
    reference
        "aligned", "local" or "world".
    """
    X, A = yield from propagate_motion(link, ground, "XA", q, v, a)
    step("acceleration", link.name)
    accelerations = [acceleration_at_reference(A, X, frame, reference) for frame in frame_poses(seen)]
    return [x for m in accelerations for x in (*m.a, *m.dw)]


def spatial_acceleration(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: BodyFrames, reference: str
) -> BodyRecursion:
    """Return the spatial accelerations of some frames of one body.

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
    seen
        Frames of the body at which the result is wanted.
    reference
        "aligned", "local" or "world".
    """
    X, V, A = yield from propagate_motion(link, ground, "XVA", q, v, a)
    step("acceleration", link.name)
    accelerations = [
        spatial_acceleration_from_point(
            acceleration_at_reference(A, X, f, reference), motion_at_reference(V, X, f, reference).lin
        )
        for f in frame_poses(seen)
    ]
    return [x for m in accelerations for x in m]


def frame_poses(seen: BodyFrames) -> list[Pose]:
    """Return axes and origin of each of the frames `seen`."""
    return list(zip(seen.axes, seen.points, strict=True))


def reactions(
    link: Link,
    ground: Ground,
    q: Vector,
    v: Vector,
    tau: Vector,
    wrench: Vector = (),
    *,
    seen: BodyFrames,
    pushed: BodyFrames | None = None,
) -> BodyRecursion:
    """Return force and moment in the joint of one body: reactions.py as a body recursion.

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
    seen
        Frames of the body at which the result is wanted.
    pushed
        Frames of the body on which wrenches act.
    """
    R = yield from orientation(link, ground, q)
    external = NO_FORCE if pushed is None else push_force(link, R, wrench, pushed)
    found = yield from aba.body_acceleration(link, ground, q, v, tau, external)
    f, _ = rnea.body_force(link, q, v, found.own, found.A, external)
    (f,) = yield from accumulate_subtree(link, link.transform(q).force, f=f)
    step("reaction", link.name)
    (p,) = seen.points
    return [*(R @ f.lin), *(R @ (f.ang - p.cross(f.lin)))]


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
    pushes = yield from external_force(link, ground, q, wrench, pushed)
    (total,) = yield from accumulate_subtree(link, link.transform(q).force, felt=pushes)
    step("felt", link.name)
    return [s.dot(total) for s in link.subspace(q)]
