"""Divide and conquer (dca.py) as what one part does (neighbours.py): bodies in rows, and what stands between the rows.

A long branch is cut into segments of alike bodies, which are gone through side by side. Places of the tree are

    body     as in aba.py, inwards with what the outer end of its segment feels; what it carries comes first
    end      beyond the last body of a segment: nothing is there but a force
    join     two segments, near and far, that become one
    port     what hangs on a join: it picks what was meant for near, or for far

What goes outwards is a pair for that reason: who is no port takes the first of it. A body is `closed` if its segment
ends at a tip, where nothing pulls.
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
    """Acceleration of the inner end, force at the outer one; twice."""
    found = yield FromParent(((Motion(ZERO, -gravity), NO_PULL), NO_END))
    return found


def body(link: Link, gravity: Vec, closed: bool, q: Vector, v: Vector, tau: Vector) -> Body:
    """The first that hangs on it is of its own segment, or the end."""
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
