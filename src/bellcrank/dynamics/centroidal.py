"""Centroidal dynamics: motion of the centre of mass, and momentum about it.

D. E. Orin, A. Goswami and S.-H. Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.

Solves: com, com_velocity, com_acceleration, com_jacobian, momentum, momentum_rate, momentum_matrix,
momentum_matrix_rate. Any tree, with mimic joints too. Work O(n), span O(depth). World axes; six-vectors are [linear,
angular about the centre of mass].

    Ic_i   inertia of body i and its subtree, about F     Z, dZ   a joint's axis, and its rate of change in space
    B_i    twice their momentum, and twice the sum of r p^T over their points (derivatives.py)
    c      centre of mass                                 f       momentum for a unit of velocity

Differences from the paper: composite inertias are summed joint by joint in body coordinates, and each column is then
transformed to the world by itself; the paper multiplies system matrices. Rotors (armature) have no momentum here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bellcrank.dynamics.frame_motion import axis_rates
from bellcrank.dynamics.kinematics import (
    about_point,
    moments_in_world,
    momentum_in_body,
    propagate_motion,
    total_mass,
    velocities,
)
from bellcrank.dynamics.momentum_moments import MomentumMoments, rigid_momentum_moments
from bellcrank.dynamics.rnea import body_force, joint_forces
from bellcrank.dynamics.tree_sweeps import Body, BodyRecursion, Vector, accumulate_subtree, poses
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, dot, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.vector import SYM_ZERO, ZERO, Force, Mat, Motion, Vec, vec

Rows = list[list[Scalar]]


def com(tree: Tree, q: Vector) -> list[Scalar]:
    """Return c, the centre of mass of `tree` at positions `q`."""
    return list(_centre(tree, poses(tree, q), composites(tree, q)))


def com_velocity(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the velocity of the centre of mass.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return _matrix_vector(com_jacobian(tree, q), v)


def com_acceleration(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Return the acceleration of the centre of mass: the sum of all forces over the mass.

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
    """
    k = 1.0 / total_mass(tree)
    step("com")
    return [x * k for x in momentum_rate(tree, q, v, a)[:3]]


def com_jacobian(tree: Tree, q: Vector) -> Rows:
    """Return the 3 x nv Jacobian of `tree` at positions `q`, with com_velocity = com_jacobian v."""
    A, k = momentum_matrix(tree, q)[:3], 1.0 / total_mass(tree)
    step("com")
    return [[x * k for x in row] for row in A]


def _matrix_vector(A: Rows, v: Vector) -> list[Scalar]:
    step("A v")
    return [dot(row, v) for row in A]


def _centre(tree: Tree, X: Sequence[tuple[Mat, Vec]], Ic: Sequence[Inertia]) -> Vec:
    """Return c, from the composite bodies on the ground."""
    k, h = 1.0 / total_mass(tree), ZERO
    for link, (R, p), I in zip(tree.links, X, Ic, strict=True):
        if link.parent < 0:
            step("com", link.name)
            h = h + (p * I.m + R @ I.h)
    centre: Vec = h * k
    return centre


def momentum(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the momentum [linear, angular about the centre of mass].

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return _matrix_vector(momentum_matrix(tree, q), v)


def momentum_matrix(tree: Tree, q: Vector) -> Rows:
    """Return the 6 x nv matrix of `tree` at positions `q`, with momentum = momentum_matrix v."""
    X, Ic = poses(tree, q), composites(tree, q)
    c, A = _centre(tree, X, Ic), [[0.0] * tree.nv for _ in range(6)]
    for link, (R, p), I in zip(tree.links, X, Ic, strict=True):
        step("f", link.name)
        for k, Z in zip(link.v_index, link.subspace(q), strict=True):
            _add_to_column(A, k, about_point(c - p, (I @ Z).rotated(R)))
    for body in moving_flexible_bodies(tree):
        R, p = X[body.link]
        for k, f in zip(body.v_index, body.modal_momentum(q), strict=True):
            _add_to_column(A, k, about_point(c - p, f.rotated(R)))
    return A


def momentum_matrix_rate(tree: Tree, q: Vector, v: Vector) -> Rows:
    """Return the time derivative of momentum_matrix, 6 x nv: axes, inertias and centre of mass change.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    X, Ic, B, V = poses(tree, q), composites(tree, q), subtree_moments(tree, q, v), velocities(tree, q, v)
    D = bending_rates(tree, q, v)
    c, dc, A = _centre(tree, X, Ic), vec(com_velocity(tree, q, v)), [[0.0] * tree.nv for _ in range(6)]
    for i, link in enumerate(tree.links):
        step("df", link.name)
        R, p = X[i]
        for k, Z, dZ in axis_rates(link, q, v, V[i]):
            turning = (B[i] @ Z + Force(B[i].row(Z), ZERO)) * 0.5  # (dIc/dt) Z
            f, df = (Ic[i] @ Z).rotated(R), (Ic[i] @ dZ + turning + D[i] @ Z).rotated(R)
            _add_to_column(A, k, about_point(c - p, df) + Force(f.lin.cross(dc), ZERO))
    for body in moving_flexible_bodies(tree):
        R, p = X[body.link]
        for m, (k, mode_momentum) in enumerate(zip(body.v_index, body.modal_momentum(q), strict=True)):
            f = mode_momentum.rotated(R)
            df = (transport_rate(V[body.link], mode_momentum) + body.modal_momentum_rate(m, v)).rotated(R)
            _add_to_column(A, k, about_point(c - p, df) + Force(f.lin.cross(dc), ZERO))
    return A


def momentum_rate(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Return d momentum / dt: the sum of all forces on the bodies, with gravity, and their moment about the centre.

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
    """
    X = poses(tree, q)
    c = _centre(tree, X, composites(tree, q))
    f = joint_forces(replace(tree, gravity=ZERO), q, v, a)
    total = Force(ZERO, ZERO)
    for link, (R, p), passed in zip(tree.links, X, f, strict=True):
        if link.parent < 0:
            step("momentum", link.name)
            total = total + about_point(c - p, passed.rotated(R))
    return [*total.lin, *total.ang]


def composites(tree: Tree, q: Vector) -> list[Inertia]:
    """Return Ic of every body of `tree` at positions `q`, flexible bodies in their present shape."""
    return _sum_subtrees(tree, q, tree.link_inertias(q))


def bending_rates(tree: Tree, q: Vector, v: Vector) -> list[Inertia]:
    """Return the rate of Ic of every body due to deformation, in the body's axes.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    rates = [Inertia(0.0, ZERO, SYM_ZERO) for _ in tree.links]
    for body in moving_flexible_bodies(tree):
        rates[body.link] = rates[body.link] + body.inertia_rate(q, v)
    return _sum_subtrees(tree, q, rates) if tree.flexible else rates


def moving_flexible_bodies(tree: Tree) -> list[FlexibleBody]:
    """Return the flexible bodies of `tree`, except those fixed to the ground, which takes their forces."""
    return [body for body in tree.flexible if body.link >= 0]


def transport_rate(V: Motion, f: Force) -> Force:
    """Return the rate in space of a force, or momentum, `f` that is carried along with velocity `V`."""
    return Force(V.ang.cross(f.ang) + V.lin.cross(f.lin), V.ang.cross(f.lin))


def _sum_subtrees(tree: Tree, q: Vector, Ic: list[Inertia]) -> list[Inertia]:
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            step("Ic", tree.links[link.parent].name)
            Ic[link.parent] = Ic[link.parent] + link.transform(q).inertia(Ic[i])
    return Ic


def subtree_moments(tree: Tree, q: Vector, v: Vector) -> list[MomentumMoments]:
    """Return B of every body with its subtree.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    B = []
    for link, inertia, V in zip(tree.links, tree.link_inertias(q), velocities(tree, q, v), strict=True):
        step("B", link.name)
        B.append(rigid_momentum_moments(inertia, V))
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            step("B", tree.links[link.parent].name)
            B[link.parent] = B[link.parent] + B[i].in_parent_frame(link.transform(q))
    return B


def _add_to_column(rows: Rows, k: int, f: Force) -> None:
    """Add a force to column k of six rows, [linear, angular]."""
    for row, x in zip(rows, (*f.lin, *f.ang), strict=True):
        row[k] = row[k] + x


# -- the work of one body


def body_com_velocity(body: Body) -> BodyRecursion:
    """Return the linear momentum of the `body`."""
    (R, _), V = yield from propagate_motion(body, "XV")
    step("momentum", body.link.name)
    return [*(R @ momentum_in_body(body, V).lin)]


def body_com_acceleration(body: Body) -> BodyRecursion:
    """Return the rate of the linear momentum of the `body`."""
    (R, _), A = yield from propagate_motion(body, "XA")
    step("momentum", body.link.name)
    return [*(R @ body_force(body, body.a, A)[0].lin)]


def body_momentum_rate(body: Body) -> BodyRecursion:
    """Return the momentum rate about the world's origin, and the first moment of the `body`."""
    X, A = yield from propagate_motion(body, "XA")
    return moments_in_world(body, X, body_force(body, body.a, A)[0])


def body_com_jacobian(body: Body) -> BodyRecursion:
    """Return the mass-weighted columns of the centre-of-mass Jacobian for one `body`."""
    ((R, _),) = yield from propagate_motion(body, "X")
    (Ic,) = yield from accumulate_subtree(body, body.X.inertia, Ic=body.inertia)
    step("f", body.link.name)
    return [x for Z in body.S for x in R @ (Ic @ Z).lin]


def body_momentum_matrix(body: Body) -> BodyRecursion:
    """Return the columns of the momentum matrix for one `body`."""
    ((R, p),) = yield from propagate_motion(body, "X")
    (Ic,) = yield from accumulate_subtree(body, body.X.inertia, Ic=body.inertia)
    step("f", body.link.name)
    forces = [about_point(vec(body.c) - p, (Ic @ Z).rotated(R)) for Z in body.S]
    return [x for f in forces for x in (*f.lin, *f.ang)]


def body_momentum_matrix_rate(body: Body) -> BodyRecursion:
    """Return the columns of the rate of the momentum matrix for one `body`."""
    (R, p), V = yield from propagate_motion(body, "XV")
    X, moments = body.X, rigid_momentum_moments(body.inertia, V)
    (Ic,) = yield from accumulate_subtree(body, X.inertia, Ic=body.inertia)
    (B,) = yield from accumulate_subtree(body, lambda B: B.in_parent_frame(X), B=moments)
    out: list[Scalar] = []
    step("df", body.link.name)
    for _, Z, dZ in axis_rates(body.link, body.q, body.v, V):
        turning = (B @ Z + Force(B.row(Z), ZERO)) * 0.5  # (dIc/dt) Z
        f, df = (Ic @ Z).rotated(R), (Ic @ dZ + turning).rotated(R)
        rate = about_point(vec(body.c) - p, df) + Force(f.lin.cross(vec(body.dc)), ZERO)
        out += [*rate.lin, *rate.ang]
    return out
