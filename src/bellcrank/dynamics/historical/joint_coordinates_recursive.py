"""Recursive joint-coordinate formulation: O(n) elimination from the leaves.

P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, Systematic generation of multibody equations of motion suitable for
recursive and parallel manipulation, 1989, section 4. With B = G^-1 H the equations of joint_coordinates.py are
eliminated body by body from the leaves, after R. A. Wehage, Application of matrix partitioning and recursive projection
to O(n) solution of constraint equations of motion, 1988: a block LU factorisation.

Solves: forward_dynamics. Any tree whose joints do not share coordinates. Work O(n), span O(depth).

    G_j, H_j   v_j = G_j v_i + H_j theta_j'                  M_j   inertia of body j with its projected subtree
    gamma_j    G_j' v_i + H_j' theta_j' (free_bodies.py)         g_j   force on it, likewise

Differences from the paper: the paper prints only eqs 27-30; a joint with several axes is eliminated one axis after the
other.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.free_bodies import (
    applied_forces,
    from_common,
    place_bodies,
    propagate_velocities,
    to_common,
)
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, right_hand_side
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Motion


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
