"""Body recursions for motion: poses, velocities and accelerations of frames, and functions of the joints.

Sweeps pass on X (R and p of the body in the world), V (its velocity) and A (its acceleration, without gravity).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from bellcrank.dynamics import bodies, rnea
from bellcrank.dynamics.frame_motion import acceleration_seen, at_a_place
from bellcrank.dynamics.kinematics import Pose, four_by_four, motion_seen
from bellcrank.dynamics.neighbours import Asked, Body, Frames, FromChildren, FromParent, Ground, Hands
from bellcrank.dynamics.sweep import Vector, along, own
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import AT_REST, NO_FORCE, NO_MOTION


def moving(
    link: Link, ground: Ground, what: str, q: Vector, v: Vector = (), a: Vector = ()
) -> Generator[Asked, Any, list[Any]]:
    """Compute those of X, V and A of the body that `what` names.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    what
        Letters among "XVA".
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    """
    start: dict[str, Any] = {"X": (ground.R, ground.p), "V": NO_MOTION, "A": AT_REST}
    up = yield FromParent([start[x] for x in what])
    X, found = link.transform(q), list[Any]()
    for x, above in zip(what, up, strict=True):
        step("pose" if x == "X" else x, link.name)
        if x == "X":
            found.append(X.pose(*above))
        elif x == "V":
            found.append(X.motion(above) + along(link.subspace(q), own(link, v)))
        else:
            found.append(rnea.beyond(link, q, v, a, above))
    yield Hands(found)
    return found


def gathered(mine: Sequence[Any], up: Callable[[Any], Any] = lambda x: x) -> Generator[Asked, Any, list[Any]]:
    """Sum a quantity over the body and its subtree.

    Parameters
    ----------
    mine
        The body's own contribution.
    up
        Transforms the total into the parent's frame.
    """
    total = list(mine)
    parts = yield FromChildren()
    for part in parts:
        total = [x + y for x, y in zip(total, part, strict=True)]
    yield Hands([up(x) for x in total])
    return total


def alone() -> Generator[Asked, Any, None]:
    """Exchange nothing with the neighbours."""
    yield FromParent(())
    yield Hands(())


# -- functions of the joint


def passive_torque(
    link: Link, ground: Ground, q: Vector, v: Vector, wrench: Vector = (), pushed: Frames | None = None
) -> Body:
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
        yield from alone()
    else:
        pulled = yield from bodies.felt(link, ground, q, wrench, pushed)
    step("passive", link.name)
    return [f + x for f, x in zip(link.passive(q, v), pulled, strict=True)]


def of_its_joint(function: str) -> Callable[..., Body]:
    """Return the body function that applies the `function` of the joint type to the joint's own coordinates."""

    def body(link: Link, ground: Ground, q: Vector, v: Vector) -> Body:
        yield from alone()
        step(function, link.name)
        found: list[Scalar] = getattr(link.kind, function)(q, v)
        return found

    return body


# -- functions of frames


def poses(link: Link, ground: Ground, q: Vector, seen: Frames) -> Body:
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
    ((R, p),) = yield from moving(link, ground, "X", q)
    found = [four_by_four(R.times(axes), p + R @ r) for r, axes in zip(seen.points, seen.axes, strict=True)]
    return [x for matrix in found for row in matrix for x in row]


def velocity(link: Link, ground: Ground, q: Vector, v: Vector, seen: Frames, reference: str) -> Body:
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
    X, V = yield from moving(link, ground, "XV", q, v)
    step("velocity", link.name)
    found = [motion_seen(V, X, frame, reference) for frame in each(seen)]
    return [x for m in found for x in (*m.lin, *m.ang)]


def acceleration(link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: Frames, reference: str) -> Body:
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
    X, A = yield from moving(link, ground, "XA", q, v, a)
    step("acceleration", link.name)
    found = [acceleration_seen(A, X, frame, reference) for frame in each(seen)]
    return [x for m in found for x in (*m.a, *m.dw)]


def spatial_acceleration(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: Frames, reference: str
) -> Body:
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
    X, V, A = yield from moving(link, ground, "XVA", q, v, a)
    step("acceleration", link.name)
    found = [at_a_place(acceleration_seen(A, X, f, reference), motion_seen(V, X, f, reference).lin) for f in each(seen)]
    return [x for m in found for x in m]


def each(seen: Frames) -> list[Pose]:
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
    seen: Frames,
    pushed: Frames | None = None,
) -> Body:
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
    R = yield from bodies.turned(link, ground, q)
    outer = NO_FORCE if pushed is None else bodies.outside(link, R, wrench, pushed)
    _, f = yield from bodies.freely(link, ground, q, v, tau, outer)
    step("f", link.name)
    (f,) = yield from gathered([f], link.transform(q).force)
    step("reaction", link.name)
    (p,) = seen.points
    return [*(R @ f.lin), *(R @ (f.ang - p.cross(f.lin)))]
