"""Decoupled natural orthogonal complement: recursive U D U^T factorisation of the mass matrix.

S. K. Saha, Simulation of industrial manipulators based on the UDU^T decomposition of inertia matrix, Multibody System
Dynamics, 2001; equation numbers are those of the paper.

The twists of all bodies are t = N_l N_d dtheta. N_l holds the rigid-body propagations B_ij and N_d the joints' twists
p_k, so that the mass matrix is N_d^T (N_l^T M N_l) N_d. Gaussian elimination in reverse, from the last column up
(appendix B), gives M = U D U^T. The remainder of a column is an articulated body seen from its joint, so 6-vectors are
sufficient, and the forward dynamics become three sweeps.

Solves: mass_matrix, forward_dynamics, mass_matrix_factors, inverse_mass_matrix. Any tree whose joints do not share
coordinates. Forward dynamics, elimination: work O(n), span O(depth); mass matrix, U: work O(n depth). The inverse: work
O(n depth^2), but its cubic part is n^3/6 + n^3/6 in a chain.

    p_k     twist that coordinate k gives its body (S)     phi     tau - C dtheta: forces less velocity terms
    B_ij    takes twists from body j to body i (X)         tau^    U^-1 phi             tau~    D^-1 tau^
    M~_i    mass matrix of composite body i                eta_i   wrench that joint i transmits, for phi alone
    M_i     mass of articulated body i, the paper's M^_i   mu_i    twist rate of body i, for phi alone
    psi^_k  M_i p_k, the wrench that moves it along p_k    psi_k   psi^_k / m^_k
    m^_k    p_k^T psi^_k, the diagonal of D                alpha_jk   above the diagonal of U

Differences from the paper: a twist is that of the joint's frame instead of the mass centre, which makes d_i = 0 and the
c_ij constant, and bodies need no mass; there are children instead of a body i+1; armature adds to the diagonal; a joint
with several axes is eliminated one axis after the other, last first; psi^_ik is psi_ik before it is divided, so it is
never formed. The inverse, U^-T D^-1 U^-1, is not in this paper but in its reference 21 (Int. J. Robotics Research 18
(1), 1999): here (12) and (13) on unit vectors give U^-1, and the product is symmetric. Nodes of a flexible body share
their coordinates, and each adds its subtree (flexible_layer.py does the rest).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.dynamics.ltl_factorisation import Rows, coordinate_names, full_matrix, inverse, udu_matrix
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, Force, Motion

Psi = Mapping[int, Force]


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    links, M = tree.links, [link.inertia for link in tree.links]
    N: list[dict[int, Motion]] = []
    for link in links:
        step("N", link.name)
        B, above = link.transform(q), N[link.parent] if link.parent >= 0 else {}
        N.append({j: B.motion(t) for j, t in above.items()})  # 3: row i of N_l N_d
        N[-1] |= zip(link.v_index, link.subspace(q), strict=True)
    I: Rows = [{} for _ in range(tree.nv)]
    for i, link in reversed(list(enumerate(links))):
        for k in link.v_index:
            step("I", link.name)
            Mp = M[i] @ N[i][k]
            for j, Bp in N[i].items():
                if j <= k:
                    I[k][j] = I[k][j] + Bp.dot(Mp) if j in I[k] else Bp.dot(Mp)  # 6
            I[k][k] = I[k][k] + link.armature
        if link.parent >= 0:
            step("M~", links[link.parent].name)
            M[link.parent] = M[link.parent] + link.transform(q).inertia(M[i])  # 6
    return full_matrix(I)


def accelerations(tree: Tree, q: Vector, phi: Vector) -> list[Scalar]:
    """Return M^-1 phi by the three steps of section 2.2, in the order of section 3.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    phi
        Generalised forces, nv elements.
    """
    links, S = tree.links, [link.subspace(q) for link in tree.links]
    psi, _, inverse_m = elimination(tree, q)
    hat, theta = list(phi), [0.0] * tree.nv

    eta = [NO_FORCE] * len(links)  # A
    for i, link in reversed(list(enumerate(links))):
        for p, k in reversed(list(zip(S[i], link.v_index, strict=True))):
            step("tau^", link.name)
            hat[k] = phi[k] - p.dot(eta[i])  # 12
            eta[i] = psi[k] * hat[k] + eta[i]  # 13
        if link.parent >= 0:
            step("eta", links[link.parent].name)
            eta[link.parent] = eta[link.parent] + link.transform(q).force(eta[i])  # 13

    mu: list[Motion] = []  # B and C
    for i, link in enumerate(links):
        step("mu", link.name)
        mu.append(link.transform(q).motion(mu[link.parent]) if link.parent >= 0 else NO_MOTION)  # 15
        for p, k in zip(S[i], link.v_index, strict=True):
            tilde = hat[k] * inverse_m[k]
            theta[k] = tilde - mu[i].dot(psi[k])  # 14
            mu[i] = p * theta[k] + mu[i]  # 15
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
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))  # 1


def elimination(tree: Tree, q: Vector) -> tuple[Psi, list[Scalar], list[Scalar]]:
    """Return psi_k, m^_k and 1/m^_k of every coordinate of `tree` at positions `q`, which determine U and D."""
    links = tree.links
    M = [articulated_inertia(link.inertia) for link in links]
    psi: dict[int, Force] = {}
    m, inverse_m = [0.0] * tree.nv, [0.0] * tree.nv
    for i, link in reversed(list(enumerate(links))):
        for p, k in reversed(list(zip(link.subspace(q), link.v_index, strict=True))):
            step("M^", link.name)
            free = M[i].across_joint(p, link.armature)
            m[k], inverse_m[k] = free.D, free.inverse  # 26
            psi[k], M[i] = free.psi, free.rest  # 27, 28
        if link.parent >= 0:
            step("M^", links[link.parent].name)
            M[link.parent] = M[link.parent] + link.transform(q).articulated(M[i])  # 28
    return psi, m, inverse_m


def factor_columns(tree: Tree, q: Vector, psi: Psi, inverted: bool) -> Rows:
    """Return the columns of U or of U^-1 above the diagonal.

    Column k has the forces on the ancestors' joints due to a force on coordinate k, while these joints are locked or,
    if inverted, free.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    psi
        As `elimination` returns it.
    inverted
        Return U^-1 instead of U.
    """
    factor_rows: Rows = [{} for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        for k in link.v_index:
            eta = psi[k]
            for carrier in tree.path(i):
                carrier_link = tree.links[carrier]
                step("U", link.name)
                for p, j in reversed(list(zip(carrier_link.subspace(q), carrier_link.v_index, strict=True))):
                    if j < k:
                        alpha = p.dot(eta)  # 25, 12
                        factor_rows[k][j] = -alpha if inverted else alpha
                        if inverted:
                            eta = eta - psi[j] * alpha  # 13
                eta = carrier_link.transform(q).force(eta)  # 26, 13
    return factor_rows


def mass_matrix_factors(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return U and D, with M = U D U^T, of `tree` at positions `q`."""
    psi, m, _ = elimination(tree, q)
    return udu_matrix(factor_columns(tree, q, psi, inverted=False), m)


def inverse_mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return M^-1 = U^-T D^-1 U^-1 of `tree` at positions `q`."""
    psi, _, inverse_m = elimination(tree, q)
    return inverse(factor_columns(tree, q, psi, inverted=True), inverse_m, coordinate_names(tree))
