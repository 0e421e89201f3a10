"""More of how frames move: all bodies' poses at once, accelerations, and how a Jacobian changes.

Solves: poses, acceleration, spatial_acceleration, jacobian_rate. Any tree. Work O(n), span O(depth). References as in
kinematics.py: "aligned" at the frame's origin in world axes, "local" there in its own axes, "world" at the world's
origin.

    A_i   w, dw and the origin's acceleration of body i's frame, in the frame, without gravity
    Z     a column of a joint, a motion; dZ, how it changes in space: V x Z + dS/dt

A frame's origin is a point of its body, and its acceleration that of the point: what `acceleration` gives, in any
reference (that of "world" is the body's point which is at the world's origin now). A spatial acceleration is less by
w x v, the velocity of the point itself: it is how the velocity changes at a place, while points pass by.
"""

from __future__ import annotations

from bellcrank.dynamics.kinematics import Pose, four_by_four, seen_from, velocities, velocity
from bellcrank.dynamics.sweep import Vector, along, own
from bellcrank.dynamics.sweep import poses as internal
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import AT_REST, ZERO, Acceleration, Mat, Motion, Vec, vec


def poses(tree: Tree, q: Vector) -> list[list[list[Scalar]]]:
    """`pose` of every body, in their order."""
    found = []
    for link, (R_WF, p_WF) in zip(tree.links, internal(tree, q), strict=True):
        step("pose", link.name)
        _, R, p = tree.frames[link.name]
        found.append(four_by_four(R_WF.times(R), p_WF + R_WF @ p))
    return found


def accelerations(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Acceleration]:
    """A of every body."""
    found: list[Acceleration] = []
    for link in tree.links:
        step("A", link.name)
        S = link.subspace(q)
        vJ, aJ = along(S, own(link, v)), along(S, own(link, a)) + link.bias(q, v)
        above = found[link.parent] if link.parent >= 0 else AT_REST
        found.append(link.transform(q).acceleration(above).through_joint(vJ, aJ))
    return found


def acceleration(tree: Tree, q: Vector, v: Vector, a: Vector, frame: str, reference: str = "aligned") -> list[Scalar]:
    """[linear, angular], of the point of the body that is at the reference's place."""
    if tree.frames[frame][0] < 0:
        return [0.0] * 6
    A = _seen(tree, q, v, a, frame, reference)
    return [*A.a, *A.dw]


def spatial_acceleration(
    tree: Tree, q: Vector, v: Vector, a: Vector, frame: str, reference: str = "aligned"
) -> list[Scalar]:
    """[linear, angular], of whatever point of the body is at the reference's place."""
    if tree.frames[frame][0] < 0:
        return [0.0] * 6
    A, V = _seen(tree, q, v, a, frame, reference), velocity(tree, q, v, frame, reference)
    step("acceleration", frame)
    return at_a_place(A, vec(V[:3]))


def at_a_place(A: Acceleration, lin: Vec) -> list[Scalar]:
    """Of a point with this velocity, [linear, angular] as spatial vectors have it."""
    return [*(A.a - A.w.cross(lin)), *A.dw]


def _seen(tree: Tree, q: Vector, v: Vector, a: Vector, frame: str, reference: str) -> Acceleration:
    """A of the frame's body, at the reference's place and in its axes."""
    body, R, p = tree.frames[frame]
    A, at = accelerations(tree, q, v, a)[body], internal(tree, q)[body]
    step("acceleration", frame)
    return acceleration_seen(A, at, (R, p), reference)


def acceleration_seen(A: Acceleration, body: Pose, frame: Pose, reference: str) -> Acceleration:
    """A of a body that is there, at the place and in the axes that the reference to its frame means."""
    (R_WF, p_WF), (R, p) = body, frame
    if reference == "world":
        return Shift(-p_WF).acceleration(_turned(A, R_WF))
    return _turned(Shift(p).acceleration(A), R.T if reference == "local" else R_WF)


def _turned(A: Acceleration, R: Mat) -> Acceleration:
    return Acceleration(R @ A.w, R @ A.dw, R @ A.a)


def axes_in_space(link: Link, q: Vector, v: Vector, V: Motion) -> list[tuple[int, Motion, Motion]]:
    """(its element of v, Z, dZ) of each axis of a joint whose body moves with V."""
    columns = zip(link.v_index, link.subspace(q), link.subspace_rate(q, v), strict=True)
    return [(k, Z, V.cross(Z) + dS) for k, Z, dS in columns]


def jacobian_rate(tree: Tree, q: Vector, v: Vector, frame: str, reference: str = "aligned") -> list[list[Scalar]]:
    """6 x nv: how `jacobian` changes. Its columns change in space; and the place moves from which they are seen."""
    V, seen = velocities(tree, q, v), seen_from(tree, q, frame, reference)
    here = velocity(tree, q, v, frame, reference)
    lin, ang = vec(here[:3]), vec(here[3:])
    moving = {"aligned": Motion(ZERO, lin), "local": Motion(ang, lin), "world": Motion(ZERO, ZERO)}[reference]
    rows: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(6)]
    for i in tree.path(tree.frames[frame][0]):
        step("dJ", tree.links[i].name)
        for k, Z, dZ in axes_in_space(tree.links[i], q, v, V[i]):
            column = seen(i, dZ) - moving.cross(seen(i, Z))
            for row, x in enumerate((*column.lin, *column.ang)):
                rows[row][k] = rows[row][k] + x
    return rows
