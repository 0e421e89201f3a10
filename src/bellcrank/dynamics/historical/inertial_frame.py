"""Methods that refer everything to the inertial frame: composite inertias, and articulated bodies as first published.

The inertial frame is the internal ground frame of the tree, not the user's world. Equation numbers are those of Wong
1991. The 6x6 inertia about the origin, [[m 1, -m [x]], [m [x], J - m [x]^2]] for [linear, angular] (2.22), is stored as
the ten numbers m, h = m x and I = J - m [x]^2. These are linear in the body's own, so regrouped inertias are possible.

    R_i, p_i  axes and origin of body i's frame       x_i, J_i   its centre of mass and central inertia
    s, B      axis of a joint, [z, p x z]             J_i, JA_i  inertia of body i: rigid, articulated

bae_hwang, section 2.2.3: D. S. Bae, R. S. Hwang and E. J. Haug, A recursive formulation for real-time dynamic
simulation, Advances in Design Automation, ASME DE-Vol. 14, 1988.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    K_i   inertia of body i and its subtree, about the origin
    F     K B: momentum of the subtree at unit rate of the joint        M     mass matrix, lower triangle by rows

Differences from the paper: the 6x6 K_i is stored as its ten numbers. B_i K_i is formed once for each axis; nothing has
to be transformed from body to body after that, so an element of M is one product of six terms. The axes of a joint with
several share K_i; branches add up.

featherstone, section 2.2.2: R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J.
Robotics Research 2 (1), 1983. aba.py is the same elimination in body coordinates, with the velocity terms inside.

Solves: forward_dynamics. Any tree whose joints do not share coordinates. Work O(n), span O(depth).

    Q     force vector: tau + passive - bias          P_i        bias force of body i
    a_i   acceleration of body i at the origin        psi, D, u  JA s D, 1/(s.JA s), Q - s.P, for one axis s

Differences from the paper: JA is symmetric and is stored as such, with the blocks of 2.22 (in 2.15 as printed [x] has
the other sign, and the columns are in another order than in a = [x'', w']). The denominator of 2.18 is that of axis i;
the paper has i + 1. A joint with several axes is eliminated one axis after the other, last first; branches add up;
armature adds to s.JA s. The force vector comes from Luh, Walker and Paul, as Featherstone recommends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bellcrank.dynamics.ltl_factorisation import TreeMatrix, indexed_columns
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, poses
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia, articulated_inertia
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, FullRotation, Shift
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, Mat, Motion, Vec

Poses = list[tuple[Mat, Vec]]


def inertial_poses(tree: Tree, q: Vector) -> Poses:
    """Return the pose of every body of `tree` at positions `q` in the inertial frame."""
    return poses(replace(tree, ground=IDENTITY_TRANSFORM), q)


def inertial_axes(tree: Tree, q: Vector, X: Poses) -> list[list[Motion]]:
    """Return the columns [z, p x z] of every joint: motions of the body's point at the origin.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    X
        Poses of the bodies.
    """
    joint_axes = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("s", link.name)
        S = [s.rotated(R) for s in link.subspace(q)]
        joint_axes.append([Motion(s.ang, s.lin + p.cross(s.ang)) for s in S])
    return joint_axes


def inertial_inertias(tree: Tree, X: Poses) -> list[Inertia]:
    """Return the inertia of every body of `tree` with poses `X` about the origin."""
    inertias = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("J", link.name)
        inertias.append(Shift(p).inertia(FullRotation(R).inertia(link.inertia)))
    return inertias


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    X = inertial_poses(tree, q)
    B, M = indexed_columns(tree, inertial_axes(tree, q, X)), TreeMatrix(tree)  # 2.23
    K = inertial_inertias(tree, X)  # 2.22
    for i, link in reversed(list(enumerate(tree.links))):
        for b in B[i]:
            step("F", link.name)
            M.carry_to_ground(b, B, K[i] @ b.Z, lambda _, F: F)  # B_i K_i B_j
        if link.parent >= 0:
            step("K", tree.links[link.parent].name)
            K[link.parent] = K[link.parent] + K[i]  # 2.21
    return M.full()


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
