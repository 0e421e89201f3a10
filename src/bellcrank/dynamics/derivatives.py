"""Analytical derivatives of inverse and forward dynamics by one recursion.

S. Singh, R. P. Russell and P. M. Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra, IEEE Robotics and Automation Letters 7, 2022; J. Carpentier and N. Mansard, Analytical derivatives of rigid
body dynamics algorithms, RSS 2018.

Solves: inverse_dynamics_derivatives, forward_dynamics_derivatives. Any tree, with mimic joints too. Work O(n depth),
and O(n^2 depth) for the products with M^-1; span O(depth).

    V_p, A_p   motion of the parent, in joint i's frame               Z        a column of the joint, a motion
    P1, P2     change of the velocities and accelerations beyond the joint, in body axes, for a displacement along Z
    Ic, f      composite inertia of the subtree, and the force that moves it
    B          twice its momentum, and twice the sum of r p^T over its points (MomentumMoments)
    r, b       Ic Z, and Z^T B as a vector (MomentumMoments.row)
    E, n       external forces, which do not rotate with the body (ExternalMoments)

Differences from the paper: everything is in body coordinates. The matrix B of Singh et al. has 36 elements; over the
points of a rigid body B x is the sum of 2 (r x (x_ang x p), x_ang x p), so twelve numbers are enough, and the vector to
its left only rotates on its way to the ground. A joint whose axes are not fixed in its body (universal) is replaced by
two revolute joints in series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bellcrank.dynamics.crba import forward_dynamics as accelerations
from bellcrank.dynamics.crba import mass_matrix, mass_matrix_triangle
from bellcrank.dynamics.ltl_factorisation import MassInverse, coordinate_names
from bellcrank.dynamics.momentum_moments import (
    NO_EXTERNAL_MOMENTS,
    ZERO_MOMENTS,
    ExternalMoments,
    external_moments,
    rigid_momentum_moments,
    rotate_to_parent,
)
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, joint_elements, subspace_motion
from bellcrank.model.kind import Kind, Revolute
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, cos, sin, step, where
from bellcrank.spatial.inertia import NO_INERTIA
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, Transform, Turn
from bellcrank.spatial.vector import AXES, NO_FORCE, NO_MOTION, ZERO, Acceleration, Force, Motion, Vec, vec

Rows = list[list[Scalar]]


@dataclass(slots=True, eq=False)
class DerivativeColumn:
    """One axis of a joint, with the changes P1, P2 and PV that a displacement or velocity along it causes."""

    k: int  # index in v
    Z: Motion
    P1: Motion
    P2: Motion
    PV: Motion  # change of accelerations with the velocity along Z, the part that is a motion


def _derivative_columns(
    link: Link, Z: Sequence[Motion], V: Motion, A: Acceleration, vJ: Motion
) -> list[DerivativeColumn]:
    derivative_columns = []
    for k, z in zip(link.v_index, Z, strict=True):
        w, x = A.w, A.w.cross(z.ang)
        P1 = Motion(w, V.lin).cross(z)
        P2 = Motion(A.dw.cross(z.ang) + w.cross(x), A.K @ z.lin - z.ang.cross(A.a) - (x + x).cross(V.lin))
        turned = vJ.cross(z) if len(Z) > 1 else NO_MOTION
        derivative_columns.append(DerivativeColumn(k, z, P1, P2, P1 + P1 + turned))
    return derivative_columns


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Rows]:
    """Return d tau / dq along the velocities, d tau / dv, and M.

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
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    dq, dv = _rigid_derivatives(tree, q, v, a, external_moments(tree, q, frames, wrench))
    _add_passive(tree, q, v, dq, dv)
    return [dq, dv, mass_matrix(tree, q)]


def forward_dynamics_derivatives(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Rows]:
    """Return d a / dq along the velocities, d a / dv, and M^-1.

    The first two are -M^-1 times the derivatives of inverse dynamics at the accelerations due to tau.

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
    afloat = [link for link in tree.links if _floats_freely(link)]
    still, u = tree, v
    if len(afloat) == sum(link.parent < 0 for link in tree.links):  # no body is held by the ground against gravity
        still, u = replace(tree, gravity=ZERO), _with_zeros(v, [k for link in afloat for k in link.v_index[:3]])
    a = accelerations(still, q, u, tau, frames, wrench)
    M1 = MassInverse(mass_matrix_triangle(tree, q), coordinate_names(tree))
    inverse = inverse_dynamics_derivatives(still, q, u, a, frames, wrench)
    dq, dv = M1.minus_times(*inverse[:2])
    for link in afloat:
        if still is not tree:
            _add_free_fall(link, tree.gravity, q, v, dq, dv)
        if not frames:
            _set_floating_columns(link, tree.gravity, q, v, dq, dv)
    return [dq, dv, M1.inverse_matrix]


def _floats_freely(link: Link) -> bool:
    """Return True if the link floats freely on the ground, with no force in its joint.

    Its motion does not depend on its position, orientation, drift and fall; only its own acceleration is expressed in
    axes that rotate.
    """
    j = link.joint
    held = any((j.armature, j.damping, j.friction, j.stiffness))
    return link.parent < 0 and link.kind.name == "floating" and not held


def _with_zeros(v: Vector, indices: Sequence[int]) -> list[Scalar]:
    return [0.0 if k in indices else x for k, x in enumerate(v)]


def _add_free_fall(link: Link, gravity: Vec, q: Vector, v: Vector, dq: Rows, dv: Rows) -> None:
    """Add the effect of drift and fall on derivatives that were computed without them.

    Along its own axes, the link's acceleration is less by g, and by w x its velocity.
    """
    step("afloat", link.name)
    linear, angular = link.v_index[:3], link.v_index[3:]
    up, moved = _upward_acceleration(link, gravity, q), joint_elements(link, v)
    drift, w = vec(moved[:3]), vec(moved[3:])
    for k, e in enumerate(AXES):
        for i, turned, spun, drifted in zip(linear, e.cross(up), drift.cross(e), e.cross(w), strict=True):
            dq[i][angular[k]] = dq[i][angular[k]] + turned
            dv[i][angular[k]], dv[i][linear[k]] = dv[i][angular[k]] + spun, drifted


def _set_floating_columns(link: Link, gravity: Vec, q: Vector, v: Vector, dq: Rows, dv: Rows) -> None:
    """Set the columns of a freely floating link, which need no solution of equations."""
    step("afloat", link.name)
    linear, angular = link.v_index[:3], link.v_index[3:]
    up, w = _upward_acceleration(link, gravity, q), vec(joint_elements(link, v)[3:])
    for k, e in enumerate(AXES):
        for row_q, row_v in zip(dq, dv, strict=True):
            row_q[linear[k]] = row_q[angular[k]] = row_v[linear[k]] = 0.0
        for i, turned, drifted in zip(linear, e.cross(up), e.cross(w), strict=True):
            dq[i][angular[k]], dv[i][linear[k]] = turned, drifted


def _upward_acceleration(link: Link, gravity: Vec, q: Vector) -> Vec:
    return link.transform(q).acceleration(Acceleration(ZERO, ZERO, -gravity)).a


def covered(tree: Tree) -> bool:
    """Return True if the derivatives cover `tree`.

    They cover trees of rigid bodies without loops and springs between bodies, whose joint axes are fixed in their
    bodies; universal joints are split.
    """
    kinds = {type(link.kind) for link in tree.links if link.kind.name != "universal"}
    turning = any(k.subspace_rate is not Kind.subspace_rate for k in kinds)
    return not (tree.loops or tree.springs or tree.flexible or turning)


def _rigid_derivatives(
    tree: Tree, q: Vector, v: Vector, a: Vector, pushes: Sequence[ExternalMoments]
) -> tuple[Rows, Rows]:
    """Return the derivatives of inverse dynamics without springs and friction of the joints."""
    tree, new_index = split_universal_joints(tree)
    X, columns, V, A = _frame_motions(tree, q, v, a)
    dq: Rows = [[0.0] * tree.nv for _ in range(tree.nv)]
    dv: Rows = [[0.0] * tree.nv for _ in range(tree.nv)]
    pushed = {new_index[i]: push for i, push in enumerate(pushes)}
    Ic, n = [link.inertia for link in tree.links], len(tree.links)
    # Sums over the children, until the link itself is processed.
    f, B, E = [NO_FORCE] * n, [ZERO_MOMENTS] * n, [NO_EXTERNAL_MOMENTS] * n
    for i, link in reversed(list(enumerate(tree.links))):
        step("f", link.name)
        push = pushed.get(i, NO_EXTERNAL_MOMENTS)
        f[i], E[i] = link.inertia.newton_euler(A[i]) - push.force + f[i], push + E[i]
        B[i] = rigid_momentum_moments(link.inertia, V[i]) + B[i]
        for c in columns[i]:
            step("u", link.name)
            Z = c.Z
            turned = Force(Z.ang.cross(f[i].ang) + Z.lin.cross(f[i].lin), Z.ang.cross(f[i].lin))
            u1 = (B[i] @ c.P1) + (Ic[i] @ c.P2) + turned + E[i] @ Z
            u2 = (B[i] @ Z) + (Ic[i] @ c.PV)
            r, b, e = Ic[i] @ Z, B[i].row(Z), E[i].row(Z)
            for o in columns[i]:
                dq[c.k][o.k] = dq[c.k][o.k] + o.P2.dot(r) + o.P1.ang.dot(b) + o.Z.ang.dot(e)
                dv[c.k][o.k] = dv[c.k][o.k] + o.PV.dot(r) + o.Z.ang.dot(b)
            above = i
            while tree.links[above].parent >= 0:
                step("u", link.name)
                u1, u2, r = (X[above].force(g) for g in (u1, u2, r))
                b, e, above = rotate_to_parent(X[above], b), rotate_to_parent(X[above], e), tree.links[above].parent
                for o in columns[above]:
                    dq[o.k][c.k] = dq[o.k][c.k] + o.Z.dot(u1)
                    dv[o.k][c.k] = dv[o.k][c.k] + o.Z.dot(u2)
                    dq[c.k][o.k] = dq[c.k][o.k] + o.P2.dot(r) + o.P1.ang.dot(b) + o.Z.ang.dot(e)
                    dv[c.k][o.k] = dv[c.k][o.k] + o.PV.dot(r) + o.Z.ang.dot(b)
        if (p := link.parent) >= 0:
            step("Ic", tree.links[p].name)
            Ic[p], f[p] = Ic[p] + X[i].inertia(Ic[i]), f[p] + X[i].force(f[i])
            B[p], E[p] = B[p] + B[i].in_parent_frame(X[i]), E[p] + E[i].in_parent_frame(X[i])
    return dq, dv


def _frame_motions(
    tree: Tree, q: Vector, v: Vector, a: Vector
) -> tuple[list[Transform], list[list[DerivativeColumn]], list[Motion], list[Acceleration]]:
    """Return transforms, joint columns, velocities and accelerations of all frames."""
    X: list[Transform] = []
    columns: list[list[DerivativeColumn]] = []
    V: list[Motion] = []
    A: list[Acceleration] = []
    ground_acceleration = Acceleration(ZERO, ZERO, -tree.gravity)
    for link in tree.links:
        step("A", link.name)
        x, Z, p = link.transform(q), link.subspace(q), link.parent
        vJ, aJ = subspace_motion(Z, joint_elements(link, v)), subspace_motion(Z, joint_elements(link, a))
        Vp, Ap = x.motion(V[p] if p >= 0 else NO_MOTION), x.acceleration(A[p] if p >= 0 else ground_acceleration)
        X.append(x)
        columns.append(_derivative_columns(link, Z, Vp, Ap, vJ))
        V.append(Vp + vJ)
        A.append(Ap.through_joint(vJ, aJ))
    return X, columns, V, A


def _add_passive(tree: Tree, q: Vector, v: Vector, dq: Rows, dv: Rows) -> None:
    """Add the derivatives of springs, damping and friction in the joints, which inverse dynamics subtracts."""
    for link in tree.links:
        step("passive", link.name)
        j, k = link.joint, 1.0 if link.joint.mimic is None else link.joint.mimic.multiplier
        for i, u in zip(link.v_index, link.velocities(v), strict=True):
            if j.damping:
                dv[i][i] = dv[i][i] + j.damping * (k * k)
            if j.friction:
                slope = where(
                    u < j.friction_speed, where(-j.friction_speed < u, j.friction / j.friction_speed, 0.0), 0.0
                )
                dv[i][i] = dv[i][i] + slope * (k * k)
            if j.stiffness and link.kind.nq == link.kind.nv:
                dq[i][i] = dq[i][i] + j.stiffness * (k * k)
        if j.stiffness and link.kind.name == "planar":  # springs along the parent's axes rotate relative to the body
            turned = link.coordinates(q)
            along_x, along_y, _ = link.kind.felt(turned, [(x - j.rest) * j.stiffness for x in turned])
            x, y, turn = link.v_index
            dq[x][turn], dq[y][turn] = dq[x][turn] + along_y, dq[y][turn] - along_x
        if j.armature and link.kind.name in ("floating", "planar"):
            _add_turning_axes(link, v, dv)


def _add_turning_axes(link: Link, v: Vector, dv: Rows) -> None:
    """Add the derivative of armature w x v, which is bilinear: f(e + v) - f(e) - f(v) along each unit velocity e."""
    moved = link.velocities(v)
    still = link.kind.turning_axes(moved)
    for k, column in enumerate(link.v_index):
        e = [1.0 if i == k else 0.0 for i in range(len(moved))]
        both = link.kind.turning_axes([x + y for x, y in zip(moved, e, strict=True)])
        for row, new, old in zip(link.v_index, both, still, strict=True):
            dv[row][column] = dv[row][column] + (new - old) * link.joint.armature


class UniversalSecondAxis(Kind):
    """Second axis of a universal joint: a rotation about x."""

    name, nq, nv, has_axis = "about x", 1, 1, False
    coordinates = ("angle",)
    columns = (Motion(AXES[0], ZERO),)

    def transform(self, q: Vector) -> Transform:
        """Return the rotation by the angle `q`."""
        return Transform([Turn(0, cos(q[0]), sin(q[0]))])


def split_universal_joints(tree: Tree) -> tuple[Tree, dict[int, int]]:
    """Split every universal joint of `tree` into two revolute joints with a massless body between them.

    Returned are the tree and the new index of each link.
    """
    links: list[Link] = []
    new_index = {-1: -1}
    for i, link in enumerate(tree.links):
        link = replace(link, parent=new_index[link.parent])
        if link.kind.name == "universal":
            (q0, q1), (v0, v1) = link.q_index, link.v_index
            links.append(replace(link, kind=Revolute(), inertia=NO_INERTIA, q_index=(q0,), v_index=(v0,)))
            link = replace(
                link,
                parent=len(links) - 1,
                kind=UniversalSecondAxis(),
                placement=IDENTITY_TRANSFORM,
                q_index=(q1,),
                v_index=(v1,),
            )
        new_index[i] = len(links)
        links.append(link)
    return replace(tree, links=tuple(links)), new_index
