"""Joint-coordinate formulation: projection with the velocity transformation B, or recursive elimination.

P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, Systematic generation of multibody equations of motion suitable for
recursive and parallel manipulation, 1989, sections 2.2 and 3. B is assembled from joint blocks after S. S. Kim and
M. J. Vanderploeg, 1986.

Solves: mass_matrix, bias, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    B_ik  block of body i and coordinate k: [-d~ u; u]     theta'   joint velocities (our v)
    v_i   [r', w] of body i, absolute                      M_i      its inertia, in common axes (free_bodies.py)
    Mbar  B^T M B, lower triangle by rows                  f        B^T (g - M B' theta')

Differences from the paper: our v of a ball or a floating joint is in the body's axes; the paper's, in common axes, is
used where only the accelerations are wanted (free_bodies.py). The columns of one joint are summed before B' theta' is
formed; -f is called bias, and the gyroscopic terms of g are part of Newton's and Euler's M v' there; the factorisation
is L^T D L along the tree (ltl_factorisation.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.free_bodies import (
    PlacedBody,
    applied_forces,
    body_jacobians,
    from_common,
    joint_to_centre,
    place_bodies,
    propagate_velocities,
    to_common,
)
from bellcrank.dynamics.historical.orthogonal_complement import Columns, inertia_matrix, project_forces
from bellcrank.dynamics.ltl_factorisation import coordinate_names, full_matrix, solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, joint_elements, right_hand_side, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Motion


def body_velocities(tree: Tree, B: Sequence[Columns], theta: Vector) -> list[Motion]:
    """Return the velocity B theta' of every body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    B
        Rows of B, one for each body.
    theta
        Joint velocities.
    """
    V = []
    for link, Bi in zip(tree.links, B, strict=True):
        step("v", link.name)
        V.append(subspace_motion(list(Bi.values()), [theta[k] for k in Bi]))  # 5
    return V


def bias_from_velocities(
    tree: Tree, bodies: Sequence[PlacedBody], B: Sequence[Columns], V: Sequence[Motion], theta: Vector
) -> list[Scalar]:
    """Return -f, the paper's B^T (M B' theta' - g), which is the bias.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    B
        Rows of B, one for each body.
    V
        Velocity of each body.
    theta
        Joint velocities.
    """
    u, du, p = [], [], []  # for each joint: u theta', its rate, and the velocity of the joint's origin
    for link, body, Vj in zip(tree.links, bodies, V, strict=True):
        step("u'", link.name)
        uj, w = subspace_motion(body.u, joint_elements(link, theta)), Vj.ang
        u.append(uj)
        du.append(NO_MOTION if body.fixed else Motion(w.cross(uj.ang), w.cross(uj.lin)) + body.du)
        p.append(Vj.lin - w.cross(body.d))
    F = []
    for i, link in enumerate(tree.links):
        step("B' theta'", link.name)
        a = NO_MOTION
        for j in reversed(tree.path(i)):
            turned = u[j].ang.cross(V[i].lin - p[j])
            a = a + joint_to_centre(bodies[j], bodies[i]).motion(du[j]) + Motion(ZERO, turned)
        step("f", link.name)
        F.append(bodies[i].M.newton_euler(Acceleration(V[i].ang, a.ang, a.lin - tree.gravity)))
    return project_forces(tree, B, F)  # 10


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    bodies = place_bodies(tree, q)
    return full_matrix(inertia_matrix(tree, body_jacobians(tree, bodies), [body.M for body in bodies]))  # 9


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the bias forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    bodies = place_bodies(tree, q, v)
    B = body_jacobians(tree, bodies)  # 5
    return bias_from_velocities(tree, bodies, B, body_velocities(tree, B, v), v)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the solution theta'' of Mbar theta'' = f.

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
    bodies = place_bodies(tree, q, v, common=True)
    B, theta = body_jacobians(tree, bodies), to_common(tree, bodies, v)
    V = body_velocities(tree, B, theta)
    pushed = to_common(tree, bodies, right_hand_side(tree, q, v, tau, [0.0] * tree.nv, frames, wrench))
    f = [t - h for t, h in zip(pushed, bias_from_velocities(tree, bodies, B, V, theta), strict=True)]
    a = solve(inertia_matrix(tree, B, [body.M for body in bodies]), f, coordinate_names(tree))  # 8
    return from_common(tree, bodies, [Vj.ang for Vj in V], theta, a)


def recursive_forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations by the recursive joint-coordinate formulation: O(n) elimination from the leaves.

    P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, 1989, section 4. With B = G^-1 H the equations of
    `forward_dynamics` are eliminated body by body from the leaves, after R. A. Wehage, Application of matrix
    partitioning and recursive projection to O(n) solution of constraint equations of motion, 1988: a block LU
    factorisation.

    Solves: forward_dynamics. Any tree whose joints do not share coordinates. Work O(n), span O(depth).

        G_j, H_j   v_j = G_j v_i + H_j theta_j'                  M_j   inertia of body j with its projected subtree
        gamma_j    G_j' v_i + H_j' theta_j' (free_bodies.py)     g_j   force on it, likewise

    Differences from the paper: the paper prints only eqs 27-30; a joint with several axes is eliminated one axis after
    the other.

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
    links, bodies = tree.links, place_bodies(tree, q, v, common=True)
    v, pushed = to_common(tree, bodies, v), to_common(tree, bodies, right_hand_side(tree, q, v, tau, [0.0] * tree.nv))
    propagation, M = propagate_velocities(tree, bodies, v), [articulated_inertia(b.M) for b in bodies]
    g = applied_forces(tree, q, bodies, frames, wrench)
    for j, link in enumerate(links):
        step("g", link.name)
        g[j] = g[j] - bodies[j].M.newton_euler(Acceleration(propagation[j].w, ZERO, ZERO))  # 4

    psi, D, f = {}, {}, {}
    for j, link in reversed(list(enumerate(links))):
        for h, k in reversed(list(zip(bodies[j].H, link.v_index, strict=True))):
            step("M", link.name)
            free = M[j].across_joint(h, link.armature)
            psi[k], D[k], M[j] = free.psi, free.inverse, free.rest
            step("f", link.name)
            f[k] = pushed[k] + h.dot(g[j])
            step("g", link.name)
            g[j] = g[j] - psi[k] * f[k]
        if link.parent >= 0:
            step("M", links[link.parent].name)
            M[link.parent] = M[link.parent] + propagation[j].G.articulated(M[j])  # 29, left
            step("g", links[link.parent].name)
            g[link.parent] = g[link.parent] + propagation[j].G.force(g[j] - M[j] @ propagation[j].gamma)  # 29, right

    theta: list[Scalar] = [0.0] * tree.nv
    dv: list[Motion] = []
    for j, link in enumerate(links):
        step("theta''", link.name)
        carried = propagation[j].G.motion(dv[link.parent] if link.parent >= 0 else NO_MOTION)
        dv.append(carried + propagation[j].gamma)  # 28, derived
        for h, k in zip(bodies[j].H, link.v_index, strict=True):
            theta[k] = f[k] * D[k] - dv[j].dot(psi[k])
            dv[j] = dv[j] + h * theta[k]
    return from_common(tree, bodies, [motion.w for motion in propagation], v, theta)
