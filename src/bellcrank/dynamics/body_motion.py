"""What bodies tell each other of their motion (neighbours.py), and what each says of its own frames and of its joint.

X   R and p of the body in the world        V   its velocity        A   its acceleration, without gravity
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
    """X, V and A of the body, as far as they are asked for."""
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
    """What the body has and all that it carries, added up. up: how the parent sees that."""
    total = list(mine)
    parts = yield FromChildren()
    for part in parts:
        total = [x + y for x, y in zip(total, part, strict=True)]
    yield Hands([up(x) for x in total])
    return total


def alone() -> Generator[Asked, Any, None]:
    """It asks nobody."""
    yield FromParent(())
    yield Hands(())


# -- of its joint


def passive_torque(
    link: Link, ground: Ground, q: Vector, v: Vector, wrench: Vector = (), pushed: Frames | None = None
) -> Body:
    """With what springs between bodies pull, where there are such."""
    pulled: Sequence[Scalar] = [0.0] * len(v)
    if pushed is None:
        yield from alone()
    else:
        pulled = yield from bodies.felt(link, ground, q, wrench, pushed)
    step("passive", link.name)
    return [f + x for f, x in zip(link.passive(q, v), pulled, strict=True)]


def of_its_joint(function: str) -> Callable[..., Body]:
    """What the kind of the joint says of its own coordinates."""

    def body(link: Link, ground: Ground, q: Vector, v: Vector) -> Body:
        yield from alone()
        step(function, link.name)
        found: list[Scalar] = getattr(link.kind, function)(q, v)
        return found

    return body


# -- of frames


def poses(link: Link, ground: Ground, q: Vector, seen: Frames) -> Body:
    ((R, p),) = yield from moving(link, ground, "X", q)
    found = [four_by_four(R.times(axes), p + R @ r) for r, axes in zip(seen.points, seen.axes, strict=True)]
    return [x for matrix in found for row in matrix for x in row]


def velocity(link: Link, ground: Ground, q: Vector, v: Vector, seen: Frames, reference: str) -> Body:
    X, V = yield from moving(link, ground, "XV", q, v)
    step("velocity", link.name)
    found = [motion_seen(V, X, frame, reference) for frame in each(seen)]
    return [x for m in found for x in (*m.lin, *m.ang)]


def acceleration(link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: Frames, reference: str) -> Body:
    X, A = yield from moving(link, ground, "XA", q, v, a)
    step("acceleration", link.name)
    found = [acceleration_seen(A, X, frame, reference) for frame in each(seen)]
    return [x for m in found for x in (*m.a, *m.dw)]


def spatial_acceleration(
    link: Link, ground: Ground, q: Vector, v: Vector, a: Vector, seen: Frames, reference: str
) -> Body:
    X, V, A = yield from moving(link, ground, "XVA", q, v, a)
    step("acceleration", link.name)
    found = [at_a_place(acceleration_seen(A, X, f, reference), motion_seen(V, X, f, reference).lin) for f in each(seen)]
    return [x for m in found for x in m]


def each(seen: Frames) -> list[Pose]:
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
    """reactions.py, for one body."""
    R = yield from bodies.turned(link, ground, q)
    outer = NO_FORCE if pushed is None else bodies.outside(link, R, wrench, pushed)
    _, f = yield from bodies.freely(link, ground, q, v, tau, outer)
    step("f", link.name)
    (f,) = yield from gathered([f], link.transform(q).force)
    step("reaction", link.name)
    (p,) = seen.points
    return [*(R @ f.lin), *(R @ (f.ang - p.cross(f.lin)))]
