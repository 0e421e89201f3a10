"""Frame motion: poses of all bodies, accelerations of frames, and rates of Jacobians.

Solves: poses, acceleration, spatial_acceleration, jacobian_rate. Any tree. Work O(n), span O(depth). References as in
kinematics.py: "aligned" at the frame's origin in world axes, "local" there in its own axes, "world" at the world's
origin.

    A_i   w, dw and the origin's acceleration of body i's frame, in the frame, without gravity
    Z     a column of a joint, a motion; dZ, its rate of change in space: V x Z + dS/dt

A frame's origin is a point of its body, and `acceleration` is the acceleration of this point, for any reference (for
"world", it is the body's point which is at the world's origin now). A spatial acceleration is less by w x v, with the
velocity v of the point: it is the rate of the velocity at a fixed place, through which points pass.
"""

from __future__ import annotations

from bellcrank.dynamics.kinematics import (
    Pose,
    homogeneous_matrix,
    matrix_from_columns,
    motion_at_reference,
    propagate_motion,
    view_from_frame,
)
from bellcrank.dynamics.tree_sweeps import Body, BodyRecursion, Vector, sweep_path
from bellcrank.dynamics.tree_sweeps import poses as internal
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import Acceleration, Mat, Motion, Vec


def poses(tree: Tree, q: Vector) -> list[list[list[Scalar]]]:
    """Return `pose` of every body of `tree` at positions `q`, in their order."""
    body_poses = []
    for link, (R_WF, p_WF) in zip(tree.links, internal(tree, q), strict=True):
        step("pose", link.name)
        _, R, p = tree.frames[link.name]
        body_poses.append(homogeneous_matrix(R_WF.times(R), p_WF + R_WF @ p))
    return body_poses


def acceleration(tree: Tree, q: Vector, v: Vector, a: Vector, frame: str, reference: str = "aligned") -> list[Scalar]:
    """Return the acceleration [linear, angular] of the body's point at the reference's place.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    swept = sweep_path(tree, body_acceleration, {"q": q, "v": v, "a": a}, frame, reference)
    return swept[-1][1] if swept else [0.0] * 6


def spatial_acceleration(
    tree: Tree, q: Vector, v: Vector, a: Vector, frame: str, reference: str = "aligned"
) -> list[Scalar]:
    """Return the spatial acceleration [linear, angular] at the reference's place.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    a
        Accelerations, nv elements.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    swept = sweep_path(tree, body_spatial_acceleration, {"q": q, "v": v, "a": a}, frame, reference)
    return swept[-1][1] if swept else [0.0] * 6


def spatial_acceleration_from_point(A: Acceleration, lin: Vec) -> list[Scalar]:
    """Return the spatial acceleration [linear, angular] for the acceleration `A` of a point with velocity `lin`."""
    return [*(A.a - A.w.cross(lin)), *A.dw]


def acceleration_at_reference(A: Acceleration, body: Pose, frame: Pose, reference: str) -> Acceleration:
    """Express the acceleration of a body at the point and in the axes that the reference selects.

    Parameters
    ----------
    A
        Acceleration of the body, in its frame.
    body
        Pose of the body in the world.
    frame
        Pose of the frame in the body.
    reference
        "aligned", "local" or "world".
    """
    (R_WF, p_WF), (R, p) = body, frame
    if reference == "world":
        return Shift(-p_WF).acceleration(_turned(A, R_WF))
    return _turned(Shift(p).acceleration(A), R.T if reference == "local" else R_WF)


def _turned(A: Acceleration, R: Mat) -> Acceleration:
    return Acceleration(R @ A.w, R @ A.dw, R @ A.a)


def axis_rates(link: Link, q: Vector, v: Vector, V: Motion) -> list[tuple[int, Motion, Motion]]:
    """Return (index in v, Z, dZ) of each axis of the joint.

    Parameters
    ----------
    link
        Joint and its body.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    V
        Velocity of the link's body.
    """
    columns = zip(link.v_index, link.subspace(q), link.subspace_rate(q, v), strict=True)
    return [(k, Z, V.cross(Z) + dS) for k, Z, dS in columns]


def jacobian_rate(tree: Tree, q: Vector, v: Vector, frame: str, reference: str = "aligned") -> list[list[Scalar]]:
    """Return the 6 x nv time derivative of `jacobian`.

    Its columns change in space, and the point from which they are seen moves.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    return matrix_from_columns(tree, sweep_path(tree, body_jacobian_rate, {"q": q, "v": v}, frame, reference))


# -- the work of one body


def body_acceleration(body: Body) -> BodyRecursion:
    """Return the accelerations of some frames of the `body`."""
    X, A = yield from propagate_motion(body, "XA")
    step("acceleration", body.link.name)
    accelerations = [acceleration_at_reference(A, X, frame, body.reference) for frame in body.seen_poses]
    return [x for m in accelerations for x in (*m.a, *m.dw)]


def body_spatial_acceleration(body: Body) -> BodyRecursion:
    """Return the spatial accelerations of some frames of the `body`."""
    X, V, A = yield from propagate_motion(body, "XVA")
    step("acceleration", body.link.name)
    out: list[Scalar] = []
    for frame in body.seen_poses:
        at_frame = acceleration_at_reference(A, X, frame, body.reference)
        out += spatial_acceleration_from_point(at_frame, motion_at_reference(V, X, frame, body.reference).lin)
    return out


def body_jacobian_rate(body: Body) -> BodyRecursion:
    """Return the columns of a frame's Jacobian rate for a `body` on its path."""
    V, view, velocity = yield from view_from_frame(body, moving=True)
    step("dJ", body.link.name)
    motions = [view(dZ) - velocity.cross(view(Z)) for _, Z, dZ in axis_rates(body.link, body.q, body.v, V)]
    return [x for m in motions for x in (*m.lin, *m.ang)]
