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
(2), 1985.

Differences from the paper: the inputs of a segment are the acceleration of its inner end and the force at its outer
end, where Featherstone takes both forces. So a body is reduced as in aba.py, nothing is inverted that may be singular,
and the additions to IA cannot be negative; his Phi_21 is K^T here. Inertias must not be regrouped (model/tree.py),
because a regrouped inertia need not be positive definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics import aba
from bellcrank.dynamics.segments import (
    FREE_END,
    EliminatedAxis,
    Segment,
    SegmentJoint,
    add_body,
    join_segments,
    joint_accelerations,
    split_solution,
)
from bellcrank.dynamics.tree_sweeps import (
    Vector,
    Wrenches,
    external_forces,
    joint_elements,
    passive_torque,
    subspace_motion,
)
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.dense_matrices import SixVector
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import AXES, ZERO, Mat, Motion, Vec

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
    passive = passive_torque(tree, q, v)
    links, rows = tree.links, branches(tree)
    placed = [aba.transform_and_axes(link, q) for link in links]
    inertia = tree.link_inertias(q)
    w: dict[int, Vec] = {-1: ZERO}  # angular velocity of every body
    attached_segments: dict[int, list[Segment]] = {}  # other rows attached to a body
    c: dict[int, Motion] = {}
    assemblies: dict[int, _BranchAssembly] = {}
    for row in rows:
        _AngularVelocities(links, placed, v, row).store(w, w[links[row[0]].parent])
    for row in reversed(rows):
        parts, eliminated_axes = [], []
        for i in row:
            m = aba.velocity_acceleration(links[i], *placed[i], q, v, w[links[i].parent])
            c[i] = Motion(m.dw, m.a)
            own_load = Segment(
                articulated_inertia(inertia[i]), aba.bias_force(links[i], inertia[i], m.w, external_loads[i]), None
            )
            step("IA", links[i].name)
            for load in attached_segments.get(i, ()):
                own_load = Segment(own_load.IA + load.IA, own_load.pA + load.pA, None)
            own_load.response = None if i == row[-1] else FREE_END
            driven = [tau[k] + passive[k] for k in links[i].v_index]
            part, freed = add_body(links[i], *placed[i], c[i], driven, own_load)
            parts.append(part)
            eliminated_axes.append(freed)
        assemblies[row[0]] = _BranchAssembly(parts, eliminated_axes)
        attached_segments.setdefault(links[row[0]].parent, []).append(assemblies[row[0]].segment)
    a: list[Scalar] = [0.0] * tree.nv
    A: dict[int, Motion] = {-1: Motion(ZERO, -tree.gravity)}  # acceleration of the bodies to which rows are attached
    for row in rows:
        for (up, g), i, freed in zip(
            assemblies[row[0]].ends(A[links[row[0]].parent], ZERO_FORCE_SIX),
            row,
            assemblies[row[0]].eliminated_axes,
            strict=True,
        ):
            step("a", links[i].name)
            accelerations, A[i] = joint_accelerations(*placed[i], c[i], freed, up, g)
            for k, x in zip(links[i].v_index, accelerations, strict=True):
                a[k] = x
    return a


class _AngularVelocities:
    """Angular velocities along a branch, by recursive halving."""

    def __init__(
        self, links: Sequence[Link], placed: Sequence[tuple[Transform, list[Motion]]], v: Vector, row: Sequence[int]
    ) -> None:
        self.row = row
        if len(row) == 1:
            step("w", links[row[0]].name)
            self.rotation = body_rotation(*placed[row[0]], joint_elements(links[row[0]], v))
            return
        half = len(row) // 2
        self.inner, self.outer = (_AngularVelocities(links, placed, v, part) for part in (row[:half], row[half:]))
        step("w", links[row[0]].name)
        self.rotation = combine_rotations(self.inner.rotation, self.outer.rotation)

    def store(self, w: dict[int, Vec], start: Vec) -> None:
        if len(self.row) == 1:
            w[self.row[0]] = self.rotation.velocity_beyond(start)
            return
        self.inner.store(w, start)
        self.outer.store(w, self.inner.rotation.velocity_beyond(start))


class _BranchAssembly:
    """Segments along a branch, joined by recursive halving."""

    def __init__(self, parts: Sequence[Segment], axes: Sequence[list[EliminatedAxis]]) -> None:
        self.eliminated_axes = axes
        self.joint: SegmentJoint | None = None
        if len(parts) == 1:
            self.segment = parts[0]
            return
        half = len(parts) // 2
        self.inner, self.outer = _BranchAssembly(parts[:half], axes[:half]), _BranchAssembly(parts[half:], axes[half:])
        self.segment, self.joint = join_segments(self.inner.segment, self.outer.segment)

    def ends(self, a: Motion, g: SixVector) -> list[tuple[Motion, SixVector]]:
        """Return the acceleration of the parent and the force from beyond, for every body in the row."""
        if self.joint is None:
            return [(a, g)]
        pull, between = split_solution(self.inner.segment, self.outer.segment, self.joint, a, g)
        return [*self.inner.ends(a, pull), *self.outer.ends(between, g)]
