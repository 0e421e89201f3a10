"""Body recursions for divide and conquer (dca.py), over rows of bodies and the nodes between the rows.

A long branch is cut into segments of the same classes, which are processed in parallel. The nodes of the tree are

    body     as in aba.py, but the backward sweep includes the response at the segment's outer end
    end      beyond the last body of a segment, where only a force acts
    join     two segments, near and far, that become one
    port     a child of a join: it selects the values for near, or those for far

For the ports, the values of forward sweeps are pairs; every other node takes the first element. A body is `closed` if
its segment ends at a tip, where no force acts.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from bellcrank.dynamics import aba
from bellcrank.dynamics.dca import NO_PULL, Turned, turned, turned_by
from bellcrank.dynamics.neighbours import Body, FromChildren, FromParent, Hands
from bellcrank.dynamics.segments import CLOSED, OPEN, Segment, begun, joined, parted, through
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.tree import Link
from bellcrank.scalar import step
from bellcrank.spatial.inertia import NO_INERTIA, articulated
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Mat, Motion, Vec

Asked = Generator[FromParent | FromChildren | Hands, Any, Any]
NO_TURN = Turned(Mat(ZERO, ZERO, ZERO), ZERO)
NOTHING = Segment(articulated(NO_INERTIA), NO_FORCE, OPEN)
NO_END = (NO_MOTION, NO_PULL)


def _speed() -> Asked:
    found = yield FromParent((ZERO, ZERO))
    return found


def _ends(gravity: Vec) -> Asked:
    """Receive the acceleration of the inner end and the force at the outer one; twice."""
    found = yield FromParent(((Motion(ZERO, -gravity), NO_PULL), NO_END))
    return found


def body(link: Link, gravity: Vec, closed: bool, q: Vector, v: Vector, tau: Vector) -> Body:
    """Return the accelerations of one joint; its first child is the next body of its segment, or the end.

    Parameters
    ----------
    link
        Joint and its body.
    gravity
        Gravity in the ground's axes.
    closed
        The segment ends at a tip.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    tau
        Forces and moments on the joint's coordinates.
    """
    X, S = aba.placed(link, q)
    parts = yield FromChildren()
    step("w", link.name)
    mine = NO_TURN if closed else turned(X, S, v)
    yield Hands(turned_by(mine, parts[0]) if not closed else mine)
    w, _ = yield from _speed()
    m = aba.moved(link, X, S, q, v, w)
    yield Hands((m.w, ZERO))
    c = Motion(m.dw, m.a)
    IA, pA = articulated(link.inertia), aba.held(link, link.inertia, m.w, NO_FORCE)
    parts = yield FromChildren()
    for x in parts:
        IA, pA = IA + x.IA, pA + x.pA
    step("passive", link.name)
    driven = [t + p for t, p in zip(tau, link.passive(q, v), strict=True)]
    reach = CLOSED if closed else parts[0].reach
    segment, freed = begun(link, X, S, c, driven, Segment(IA, pA, reach))
    yield Hands(segment)
    (a, g), _ = yield from _ends(gravity)
    step("a", link.name)
    found, A = through(X, S, c, freed, a, g)
    yield Hands(((A, g), NO_END))
    return found


def end(gravity: Vec, *none: Vector) -> Body:
    """Terminate a segment whose outer end can move.

    Parameters
    ----------
    gravity
        Gravity in the ground's axes.
    none
        Unused inputs.
    """
    yield FromChildren()
    yield Hands(Turned(IDENTITY, ZERO))
    yield from _speed()
    yield Hands((ZERO, ZERO))
    yield FromChildren()
    yield Hands(NOTHING)
    yield from _ends(gravity)
    yield Hands((NO_END, NO_END))
    return []


def port(far: int, gravity: Vec, *none: Vector) -> Body:
    """Select one of the two values of a join for the segment attached to it.

    Parameters
    ----------
    far
        1 for the outer segment, 0 for the inner.
    gravity
        Gravity in the ground's axes.
    none
        Unused inputs.
    """
    (turn,) = yield FromChildren()
    yield Hands(turn)
    speeds = yield from _speed()
    yield Hands((speeds[far], ZERO))
    (segment,) = yield FromChildren()
    yield Hands(segment)
    both = yield from _ends(gravity)
    yield Hands((both[far], NO_END))
    return []


def join(gravity: Vec, *none: Vector) -> Body:
    """Join two segments, and distribute the solution to them.

    Parameters
    ----------
    gravity
        Gravity in the ground's axes.
    none
        Unused inputs.
    """
    near, far = yield FromChildren()
    step("w")
    yield Hands(turned_by(near, far))
    w, _ = yield from _speed()
    yield Hands((w, near.beyond(w)))
    one, other = yield FromChildren()
    segment, both = joined(one, other)
    yield Hands(segment)
    (a, g), _ = yield from _ends(gravity)
    pull, between = parted(one, other, both, a, g)
    yield Hands(((a, tuple(pull)), (between, g)))
    return []
