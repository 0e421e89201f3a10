"""Body recursions for matrices: columns, or products with a vector.

A matrix with few rows is returned as a column for each of the body's coordinates. A matrix as wide as there are
coordinates is returned as the body's elements of its product with a vector; all columns are then a batch of unit
vectors (build/columnwise_jacobians.py).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from bellcrank.dynamics import aba
from bellcrank.dynamics.centroidal import about_point
from bellcrank.dynamics.frame_motion import axis_rates
from bellcrank.dynamics.kinematics import Pose, motion_at_reference
from bellcrank.dynamics.momentum_moments import rigid_momentum_moments
from bellcrank.dynamics.recursion.recursive_kinematics import frame_poses, propagate_motion
from bellcrank.dynamics.tree_sweeps import (
    BodyFrames,
    BodyRecursion,
    Exchange,
    FromChildren,
    FromParent,
    Ground,
    Send,
    Sum,
    Vector,
    accumulate_subtree,
    subspace_motion,
)
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Force, Motion, vec

# -- matrices of a frame, with columns for every body that carries it


def jacobian(link: Link, ground: Ground, q: Vector, seen: BodyFrames, reference: str) -> BodyRecursion:
    """Return the columns of a frame's Jacobian for one body on its path.

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
    reference
        "aligned", "local" or "world".
    """
    (X,) = yield from propagate_motion(link, ground, "X", q)
    place, _ = yield from _reference_place(X, NO_MOTION, seen, reference)
    step("J", link.name)
    motions = [_motion_at_place(place, X, Z) for Z in link.subspace(q)]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def jacobian_rate(link: Link, ground: Ground, q: Vector, v: Vector, seen: BodyFrames, reference: str) -> BodyRecursion:
    """Return the columns of a frame's Jacobian rate for one body on its path.

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
    place, moves = yield from _reference_place(X, V, seen, reference)
    step("dJ", link.name)
    motions = [
        _motion_at_place(place, X, dZ) - moves.cross(_motion_at_place(place, X, Z))
        for _, Z, dZ in axis_rates(link, q, v, V)
    ]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def _reference_place(
    X: Pose, V: Motion, seen: BodyFrames, reference: str
) -> Generator[Exchange, Any, tuple[Pose, Motion]]:
    """Return the axes and the point from which the frame's motion is seen, and their velocity in those axes.

    The body that has the frame computes them and hands them to its ancestors.
    """
    parts = yield FromChildren()
    if seen.points:
        ((axes, r),) = frame_poses(seen)
        (R, p), m = X, motion_at_reference(V, X, (axes, r), reference)
        reference_place = {
            "aligned": ((IDENTITY, p + R @ r), Motion(ZERO, m.lin)),
            "local": ((R.times(axes), p + R @ r), m),
            "world": ((IDENTITY, ZERO), NO_MOTION),
        }[reference]
    else:
        (reference_place,) = parts
    yield Send(reference_place)
    return reference_place


def _motion_at_place(place: Pose, X: Pose, m: Motion) -> Motion:
    """Express a motion about the body's F in the axes and at the point of `place`."""
    (axes, point), (R, p) = place, X
    return Shift(point - p).motion(m.rotated(R)).rotated(axes.T)


# -- matrices of the whole mechanism: a joint moves the subtree of its body


def com_jacobian(link: Link, ground: Ground, q: Vector) -> BodyRecursion:
    """Return the mass-weighted columns of the centre-of-mass Jacobian for one body.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    """
    ((R, _),) = yield from propagate_motion(link, ground, "X", q)
    (Ic,) = yield from accumulate_subtree(link, link.transform(q).inertia, Ic=link.inertia)
    step("f", link.name)
    return [x for Z in link.subspace(q) for x in R @ (Ic @ Z).lin]


def momentum_matrix(link: Link, ground: Ground, q: Vector, c: Vector) -> BodyRecursion:
    """Return the columns of the momentum matrix for one body.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    c
        Centre of mass of the mechanism, in the world.
    """
    ((R, p),) = yield from propagate_motion(link, ground, "X", q)
    (Ic,) = yield from accumulate_subtree(link, link.transform(q).inertia, Ic=link.inertia)
    step("f", link.name)
    forces = [about_point(vec(c) - p, (Ic @ Z).rotated(R)) for Z in link.subspace(q)]
    return [x for f in forces for x in (*f.lin, *f.ang)]


def momentum_matrix_rate(link: Link, ground: Ground, q: Vector, v: Vector, c: Vector, dc: Vector) -> BodyRecursion:
    """Return the columns of the rate of the momentum matrix for one body.

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
    c
        Centre of mass of the mechanism, in the world.
    dc
        Velocity of the centre of mass, in world axes.
    """
    (R, p), V = yield from propagate_motion(link, ground, "XV", q, v)
    X = link.transform(q)
    (Ic,) = yield from accumulate_subtree(link, X.inertia, Ic=link.inertia)
    (B,) = yield from accumulate_subtree(
        link, lambda B: B.in_parent_frame(X), B=rigid_momentum_moments(link.inertia, V)
    )
    out: list[Scalar] = []
    step("df", link.name)
    for _, Z, dZ in axis_rates(link, q, v, V):
        turning = (B @ Z + Force(B.row(Z), ZERO)) * 0.5  # (dIc/dt) Z
        f, df = (Ic @ Z).rotated(R), (Ic @ dZ + turning).rotated(R)
        rate = about_point(vec(c) - p, df) + Force(f.lin.cross(vec(dc)), ZERO)
        out += [*rate.lin, *rate.ang]
    return out


# -- products with a vector x


def coriolis_product(link: Link, ground: Ground, q: Vector, v: Vector, x: Vector) -> BodyRecursion:
    """Return the body's elements of C x (coriolis.py).

    W is the body's velocity for x, and dW the rate of W in space while the body moves with v.

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
    x
        Vector that the matrix multiplies.
    """
    X, S = link.transform(q), link.subspace(q)
    V, W, dW = yield FromParent((NO_MOTION, NO_MOTION, NO_MOTION))
    step("V", link.name)
    V, W = X.motion(V) + subspace_motion(S, v), X.motion(W) + subspace_motion(S, x)
    step("dZ", link.name)
    dW = X.motion(dW) + subspace_motion([dZ for _, _, dZ in axis_rates(link, q, v, V)], x)
    yield Send((V, W, dW))
    step("C", link.name)
    own = link.inertia @ dW + (rigid_momentum_moments(link.inertia, V) @ W) * 0.5
    (f,) = yield from accumulate_subtree(link, X.force, C=own)
    return [s.dot(f) for s in S]


def factor_product(link: Link, ground: Ground, q: Vector, x: Vector) -> BodyRecursion:
    """Return U x and D of each coordinate, with M = U D U^T.

    A unit force in a joint, carried down with everything beyond it free to move, acts on the joints before it: z is the
    sum of these forces weighted by x.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    x
        Vector that the matrix multiplies.
    """
    X, S = aba.transform_and_axes(link, q)
    IA, z = yield Sum(link.name, {"IA": articulated_inertia(link.inertia), "U": NO_FORCE})
    products: list[Scalar] = []
    for s, k in reversed(list(zip(S, link.v_index, strict=True))):
        step("U", link.name)
        y = x[k] + s.dot(z)
        psi, inverse, _, IA, _ = aba.eliminate_axis(link, s, 0.0, IA, NO_FORCE)
        z, products = z + psi * x[k], [y, 1.0 / inverse, *products]
    yield Send((X.articulated(IA), X.force(z)))
    return products
