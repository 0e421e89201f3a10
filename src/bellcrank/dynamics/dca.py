"""Divide-and-conquer articulated-body algorithm.

R. Featherstone, A divide-and-conquer articulated-body algorithm for parallel O(log(n)) calculation of rigid-body
dynamics, Part 1 and Part 2, Int. J. Robotics Research 18 (9), 1999.

Solves: forward_dynamics. Trees whose joints do not share coordinates and whose bodies all have mass and extent. Work
O(n), some seven times that of aba; span O(log n) along a chain, and O(log n) for each branch attached to a branch.

    R, w'    rotation across a segment, and the angular velocity that it adds  (segments.py has the rest)
    IA, pA   inertia and bias force of a segment at its inner end    K, W, b   response at its outer end
    a, g     acceleration of a segment's inner end, force at its outer end

The mechanism is cut into branches, the longest first, each of which is attached to a body of another. A branch is
halved again and again: bodies are reduced to their two ends and neighbours are joined, until the branch is one segment;
then the accelerations and forces where segments meet are computed from the whole branch down to the bodies. The
velocities use the same binary tree: R. H. Lathrop, Parallelism in manipulator dynamics, Int. J. Robotics Research 4
(2), 1985. The places of this tree are

    body     as in aba.py, but the backward sweep includes the response at the segment's outer end
    end      beyond the last body of a segment, where only a force acts
    join     two segments, near and far, that become one
    port     a child of a join: it selects the values for near, or those for far

Straight-line code halves down to single bodies. Rolled loops run through segments of several bodies of the same classes
(build/segmented_recursion.py).

Differences from the paper: the inputs of a segment are the acceleration of its inner end and the force at its outer
end, where Featherstone takes both forces. So a body is reduced as in aba.py, nothing is inverted that may be singular,
and the additions to IA cannot be negative; his Phi_21 is K^T here. Inertias must not be regrouped (model/tree.py),
because a regrouped inertia need not be positive definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics import aba
from bellcrank.dynamics.segments import (
    FREE_END,
    TIP_END,
    Segment,
    add_body,
    join_segments,
    joint_accelerations,
    split_solution,
)
from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    FromChildren,
    FromParent,
    Send,
    Vector,
    Wrenches,
    external_forces,
    ground_of,
    local_links,
    passive_torque,
    run_bodies,
    subspace_motion,
)
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import NO_INERTIA, articulated_inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import AXES, IDENTITY, NO_FORCE, NO_MOTION, ZERO, Mat, Motion, Vec

ZERO_FORCE_SIX = (0.0,) * 6


@dataclass(slots=True, eq=False)
class SegmentRotation:
    """Rotation across a segment: w beyond it is R w + w'."""

    R: Mat
    w: Vec

    def velocity_beyond(self, w: Vec) -> Vec:
        """Return the angular velocity beyond the segment for `w` before it."""
        return self.R @ w + self.w


def body_rotation(X: Transform, S: Sequence[Motion], v: Vector) -> SegmentRotation:
    """Return rotation and angular velocity of one body relative to the one before it.

    Parameters
    ----------
    X
        Transform from the parent frame.
    S
        Motion subspace, one column for each axis.
    v
        Velocities of its joint.
    """
    return SegmentRotation(Mat(*(X.down(axis) for axis in AXES)).T, subspace_motion(S, v).ang)


def combine_rotations(near: SegmentRotation, far: SegmentRotation) -> SegmentRotation:
    """Combine the rotations of the segments `near` and `far`."""
    return SegmentRotation(far.R.times(near.R), far.velocity_beyond(near.w))


def branches(tree: Tree) -> list[list[int]]:
    """Split the links of `tree` into rows of successive children.

    A row begins on the ground or on a link of an earlier row. At a fork the larger subtree continues the row, so that a
    path to the ground passes through few rows.
    """
    n = len(tree.links)
    size = [1] * n
    heir = [-1] * n  # the child that continues the row
    for i in reversed(range(n)):
        up = tree.links[i].parent
        if up >= 0:
            size[up] += size[i]
            if heir[up] < 0 or size[i] >= size[heir[up]]:
                heir[up] = i
    rows = []
    for i, link in enumerate(tree.links):
        if link.parent < 0 or heir[link.parent] != i:
            row = [i]
            while heir[row[-1]] >= 0:
                row.append(heir[row[-1]])
            rows.append(row)
    return rows


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations.

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
    external_loads = external_forces(tree, q, frames, wrench)
    driven = [t + p for t, p in zip(tau, passive_torque(tree, q, v), strict=True)]
    places, ground, place_of_link = _Places(), ground_of(tree), {-1: -1}
    links, _ = local_links(tree)
    for row in branches(tree):
        works = []
        for i in row:
            x = links[i]
            own: Any = {"q": x.elements("q", q), "v": x.elements("v", v), "tau": x.elements("tau", driven)}
            works.append(Body(link=x.link, ground=ground, external=external_loads[i], passive=False, **own))
        place_of_link |= zip(row, places.add_segments(works, place_of_link[links[row[0]].parent], True), strict=True)
    results = run_bodies(places.parents, places.works)
    a = {
        k: x for i, link in enumerate(tree.links) for k, x in zip(link.v_index, results[place_of_link[i]], strict=True)
    }
    return [a[k] for k in range(tree.nv)]


class _Places:
    """Work and parent of every place of the binary trees over the branches."""

    def __init__(self) -> None:
        self.works: list[BodyRecursion] = []
        self.parents: list[int] = []

    def add(self, work: BodyRecursion, parent: int) -> int:
        self.works.append(work)
        self.parents.append(parent)
        return len(self.works) - 1

    def add_segments(self, bodies: Sequence[Body], parent: int, closed: bool) -> list[int]:
        """Add successive bodies, halved down to single ones, and return their places; `closed` if they end at a tip."""
        gravity = bodies[0].ground.gravity
        if len(bodies) == 1:
            place = self.add(body_segment(bodies[0], closed), parent)
            if not closed:
                self.add(end(gravity), place)
            return [place]
        half, place = len(bodies) // 2, self.add(join(gravity), parent)
        near = self.add_segments(bodies[:half], self.add(port(0, gravity), place), False)
        return [*near, *self.add_segments(bodies[half:], self.add(port(1, gravity), place), closed)]


# -- the work of one place


NO_TURN = SegmentRotation(Mat(ZERO, ZERO, ZERO), ZERO)
EMPTY_SEGMENT = Segment(articulated_inertia(NO_INERTIA), NO_FORCE, FREE_END)
NO_END = (NO_MOTION, ZERO_FORCE_SIX)


VELOCITY = FromParent((ZERO, ZERO))  # request for the angular velocity; twice


def _ends(gravity: Vec) -> FromParent:
    """Request the acceleration of the inner end and the force at the outer one; twice."""
    return FromParent(((Motion(ZERO, -gravity), ZERO_FORCE_SIX), NO_END))


def body_segment(body: Body, closed: bool) -> BodyRecursion:
    """Return the accelerations of one joint.

    Parameters
    ----------
    body
        The body; its first child is the next body of its segment, or the end.
    closed
        The segment ends at a tip, where no force acts.
    """
    link, q, v = body.link, body.q, body.v
    X, S = aba.transform_and_axes(link, q)
    parts = yield FromChildren()
    step("w", link.name)
    rotation = NO_TURN if closed else body_rotation(X, S, v)
    yield Send(combine_rotations(rotation, parts[0]) if not closed else rotation)
    w, _ = yield VELOCITY
    m = aba.velocity_acceleration(link, X, S, q, v, w)
    yield Send((m.w, ZERO))
    c = Motion(m.dw, m.a)
    IA, pA = articulated_inertia(link.inertia), aba.bias_force(link, link.inertia, m.w, body.external)
    parts = yield FromChildren()
    for x in parts:
        IA, pA = IA + x.IA, pA + x.pA
    driven = body.tau
    if body.passive:
        step("passive", link.name)
        driven = [t + p for t, p in zip(body.tau, link.passive(q, v), strict=True)]
    reach = TIP_END if closed else parts[0].response
    segment, freed = add_body(link, X, S, c, driven, Segment(IA, pA, reach))
    yield Send(segment)
    (a, g), _ = yield _ends(body.ground.gravity)
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
    yield VELOCITY
    yield Send((ZERO, ZERO))
    yield FromChildren()
    yield Send(EMPTY_SEGMENT)
    yield _ends(gravity)
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
    speeds = yield VELOCITY
    yield Send((speeds[far], ZERO))
    (segment,) = yield FromChildren()
    yield Send(segment)
    both = yield _ends(gravity)
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
    w, _ = yield VELOCITY
    yield Send((w, near.velocity_beyond(w)))
    one, other = yield FromChildren()
    segment, both = join_segments(one, other)
    yield Send(segment)
    (a, g), _ = yield _ends(gravity)
    pull, between = split_solution(one, other, both, a, g)
    yield Send(((a, tuple(pull)), (between, g)))
    return []
