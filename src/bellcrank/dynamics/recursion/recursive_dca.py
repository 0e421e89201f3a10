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
from bellcrank.dynamics.dca import ZERO_FORCE_SIX, SegmentRotation, body_rotation, combine_rotations
from bellcrank.dynamics.segments import (
    FREE_END,
    TIP_END,
    Segment,
    add_body,
    join_segments,
    joint_accelerations,
    split_solution,
)
from bellcrank.dynamics.tree_sweeps import BodyRecursion, FromChildren, FromParent, Send, Vector
from bellcrank.model.tree import Link
from bellcrank.scalar import step
from bellcrank.spatial.inertia import NO_INERTIA, articulated_inertia
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Mat, Motion, Vec

SegmentExchange = Generator[FromParent | FromChildren | Send, Any, Any]
NO_TURN = SegmentRotation(Mat(ZERO, ZERO, ZERO), ZERO)
EMPTY_SEGMENT = Segment(articulated_inertia(NO_INERTIA), NO_FORCE, FREE_END)
NO_END = (NO_MOTION, ZERO_FORCE_SIX)


def _receive_velocity() -> SegmentExchange:
    velocity = yield FromParent((ZERO, ZERO))
    return velocity


def _receive_ends(gravity: Vec) -> SegmentExchange:
    """Receive the acceleration of the inner end and the force at the outer one; twice."""
    ends = yield FromParent(((Motion(ZERO, -gravity), ZERO_FORCE_SIX), NO_END))
    return ends


def body(link: Link, gravity: Vec, closed: bool, q: Vector, v: Vector, tau: Vector) -> BodyRecursion:
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
    X, S = aba.transform_and_axes(link, q)
    parts = yield FromChildren()
    step("w", link.name)
    rotation = NO_TURN if closed else body_rotation(X, S, v)
    yield Send(combine_rotations(rotation, parts[0]) if not closed else rotation)
    w, _ = yield from _receive_velocity()
    m = aba.velocity_acceleration(link, X, S, q, v, w)
    yield Send((m.w, ZERO))
    c = Motion(m.dw, m.a)
    IA, pA = articulated_inertia(link.inertia), aba.bias_force(link, link.inertia, m.w, NO_FORCE)
    parts = yield FromChildren()
    for x in parts:
        IA, pA = IA + x.IA, pA + x.pA
    step("passive", link.name)
    driven = [t + p for t, p in zip(tau, link.passive(q, v), strict=True)]
    reach = TIP_END if closed else parts[0].response
    segment, freed = add_body(link, X, S, c, driven, Segment(IA, pA, reach))
    yield Send(segment)
    (a, g), _ = yield from _receive_ends(gravity)
    step("a", link.name)
    accelerations, A = joint_accelerations(X, S, c, freed, a, g)
    yield Send(((A, g), NO_END))
    return accelerations


def end(gravity: Vec, *none: Vector) -> BodyRecursion:
    """Terminate a segment whose outer end can move.

    Parameters
    ----------
    gravity
        Gravity in the ground's axes.
    none
        Unused inputs.
    """
    yield FromChildren()
    yield Send(SegmentRotation(IDENTITY, ZERO))
    yield from _receive_velocity()
    yield Send((ZERO, ZERO))
    yield FromChildren()
    yield Send(EMPTY_SEGMENT)
    yield from _receive_ends(gravity)
    yield Send((NO_END, NO_END))
    return []


def port(far: int, gravity: Vec, *none: Vector) -> BodyRecursion:
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
    yield Send(turn)
    speeds = yield from _receive_velocity()
    yield Send((speeds[far], ZERO))
    (segment,) = yield FromChildren()
    yield Send(segment)
    both = yield from _receive_ends(gravity)
    yield Send((both[far], NO_END))
    return []


def join(gravity: Vec, *none: Vector) -> BodyRecursion:
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
    yield Send(combine_rotations(near, far))
    w, _ = yield from _receive_velocity()
    yield Send((w, near.velocity_beyond(w)))
    one, other = yield FromChildren()
    segment, both = join_segments(one, other)
    yield Send(segment)
    (a, g), _ = yield from _receive_ends(gravity)
    pull, between = split_solution(one, other, both, a, g)
    yield Send(((a, tuple(pull)), (between, g)))
    return []
