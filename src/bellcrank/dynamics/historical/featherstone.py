"""Articulated-body algorithm in the inertial frame, as first published.

R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J. Robotics Research 2 (1),
1983; equation numbers are those of Wong 1991, section 2.2.2. aba.py is the same elimination in body coordinates, with
the velocity terms inside.

Solves: forward_dynamics. Any tree whose joints do not share coordinates. Work O(n), span O(depth).

    s     axis of a joint, [z, p x z]                  J_i, JA_i  inertia of body i: rigid, articulated
    Q     force vector: tau + passive - bias           P_i        bias force of body i
    a_i   acceleration of body i at the origin         psi, D, u  JA s D, 1/(s.JA s), Q - s.P, for one axis s

Differences from the paper: JA is symmetric and is stored as such, with the blocks of 2.22 (in 2.15 as printed [x] has
the other sign, and the columns are in another order than in a = [x'', w']). The denominator of 2.18 is that of axis i;
the paper has i + 1. A joint with several axes is eliminated one axis after the other, last first; branches add up;
armature adds to s.JA s. The force vector comes from Luh, Walker and Paul, as Featherstone recommends.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.inertial_frame import inertial_axes, inertial_inertias, inertial_poses
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, Motion


def accelerations(tree: Tree, q: Vector, Q: Vector) -> list[Scalar]:
    """Return M^-1 Q.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    Q
        Generalised forces, nv elements.
    """
    links, X = tree.links, inertial_poses(tree, q)
    S = inertial_axes(tree, q, X)
    JA = [articulated_inertia(J) for J in inertial_inertias(tree, X)]  # 2.15
    P = [NO_FORCE] * len(links)
    psi, D, u = {}, {}, {}
    for i, link in reversed(list(enumerate(links))):
        for s, k in reversed(list(zip(S[i], link.v_index, strict=True))):
            step("JA", link.name)
            free = JA[i].across_joint(s, link.armature)
            psi[k], D[k], JA[i] = free.psi, free.inverse, free.rest  # 2.14
            step("u", link.name)
            u[k] = Q[k] - s.dot(P[i])
            step("P", link.name)
            P[i] = P[i] + psi[k] * u[k]  # 2.16
        if link.parent >= 0:
            step("JA", links[link.parent].name)
            JA[link.parent] = JA[link.parent] + JA[i]  # 2.14
            step("P", links[link.parent].name)
            P[link.parent] = P[link.parent] + P[i]  # 2.16

    theta: list[Scalar] = [0.0] * tree.nv
    a: list[Motion] = []
    for i, link in enumerate(links):
        step("a", link.name)
        a.append(a[link.parent] if link.parent >= 0 else NO_MOTION)
        for s, k in zip(S[i], link.v_index, strict=True):
            theta[k] = u[k] * D[k] - a[i].dot(psi[k])  # 2.18
            a[i] = a[i] + s * theta[k]  # 2.17
    return theta


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
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))
