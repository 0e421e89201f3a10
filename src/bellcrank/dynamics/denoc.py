"""Decoupled natural orthogonal complement: inverse dynamics, convective matrix, and U D U^T of the mass matrix.

S. K. Saha, Simulation of industrial manipulators based on the UDU^T decomposition of inertia matrix, Multibody System
Dynamics, 2001; equation numbers are those of the paper.

The twists of all bodies are t = N_l N_d dtheta. N_l holds the rigid-body propagations B_ij and N_d the joints' twists
p_k, so that the mass matrix is N_d^T (N_l^T M N_l) N_d. Gaussian elimination in reverse, from the last column up
(appendix B), gives M = U D U^T. The remainder of a column is an articulated body seen from its joint, so 6-vectors are
sufficient, and the forward dynamics become three sweeps.

The wrenches of the bodies are w_i = M_i t_i' + W_i M_i t_i. With the rates of (4), their projection by the complement
gives the forces and the convective matrix of (1), by composite bodies as in (6):

    I ddtheta + C dtheta = N_d^T N_l^T w        C = N_d^T N_l^T (M (N_l N_d)' + W M N_l N_d)

Solves: inverse_dynamics, coriolis_matrix, mass_matrix, forward_dynamics, mass_matrix_factors, inverse_mass_matrix. Any
tree whose joints do not share coordinates. Dynamics, elimination: work O(n), span O(depth); matrices, U: work O(n
depth). The inverse: work O(n depth^2), but its cubic part is n^3/6 + n^3/6 in a chain.

    t_i     twist of body i, [angular, linear]             w_i, w~_i   wrench on body i, on composite body i
    H~_i    convective matrix of composite body i: [H, 0; -[P], 0], with its momentum P relative to its frame
    p_k     twist that coordinate k gives its body (S)     phi     tau - C dtheta: forces less velocity terms
    B_ij    takes twists from body j to body i (X)         tau^    U^-1 phi             tau~    D^-1 tau^
    M~_i    mass matrix of composite body i                eta_i   wrench that joint i transmits, for phi alone
    M_i     mass of articulated body i, the paper's M^_i   mu_i    twist rate of body i, for phi alone
    psi^_k  M_i p_k, the wrench that moves it along p_k    psi_k   psi^_k / m^_k
    m^_k    p_k^T psi^_k, the diagonal of D                alpha_jk   above the diagonal of U

Differences from the paper: a twist is that of the joint's frame instead of the mass centre, which makes d_i = 0 and the
c_ij constant, and bodies need no mass; there are children instead of a body i+1; armature adds to the diagonal; a joint
with several axes is eliminated one axis after the other, last first; psi^_ik is psi_ik before it is divided, so it is
never formed. Inverse dynamics and C are not printed in this paper, which refers to its references 15 and 20. There W_i
contains the angular velocity Omega of the body, so that a moment is Omega I omega; here it is Omega (I - tr(I)/2 1)
omega, which is the same moment and makes a body the sum of its particles, for which W = 0: then C is that of the
Christoffel symbols (coriolis.py). The inverse, U^-T D^-1 U^-1, is not in this paper but in its reference 21 (Int. J.
Robotics Research 18 (1), 1999): here (12) and (13) on unit vectors give U^-1, and the product is symmetric. Nodes of a
flexible body share their coordinates, and each adds its subtree (flexible_layer.py does the rest).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.dynamics.convective_matrix import convective_matrix, convective_wrench, propagations
from bellcrank.dynamics.ltl_factorisation import Rows, coordinate_names, full_matrix, inverse, udu_matrix
from bellcrank.dynamics.momentum_moments import rotate_to_parent
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import (
    Vector,
    Wrenches,
    external_forces,
    joint_elements,
    passive_torque,
    subspace_motion,
)
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, ZERO, Force, Motion

Psi = Mapping[int, Force]


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, a: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the joint forces I ddtheta + C dtheta, less springs, friction and wrenches.

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
    links, outer = tree.links, external_forces(tree, q, frames, wrench)
    dt: list[Motion] = []
    w: list[Force] = []
    for link, by, f in zip(links, propagations(tree, q, v), outer, strict=True):
        step("t'", link.name)
        S, carried = link.subspace(q), dt[link.parent] if link.parent >= 0 else Motion(ZERO, -tree.gravity)
        p, ddp = subspace_motion(S, joint_elements(link, v)), subspace_motion(S, joint_elements(link, a))
        turning = Motion(by.w.cross(p.ang), by.w.cross(p.lin) + by.up.cross(by.dc)) + link.bias(q, v)
        dt.append(link.transform(q).motion(carried) + ddp + turning)  # 4, derived
        step("w", link.name)
        w.append(link.inertia @ dt[-1] + convective_wrench(link.inertia, by.w) - f)
    tau = [-x for x in passive_torque(tree, q, v)]
    for i, link in reversed(list(enumerate(links))):
        step("tau", link.name)
        for p, k in zip(link.subspace(q), link.v_index, strict=True):
            tau[k] = tau[k] + p.dot(w[i]) + link.armature * a[k]  # 1
        if link.parent >= 0:
            step("w~", links[link.parent].name)
            w[link.parent] = w[link.parent] + link.transform(q).force(w[i])
    return tau


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> list[list[Scalar]]:
    """Return C of (1), nv x nv.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    links, X, rates = tree.links, [link.transform(q) for link in tree.links], propagations(tree, q, v)
    M, H, axes = [link.inertia for link in links], [], list[list[tuple[int, Motion, Motion]]]()
    for link, by in zip(links, rates, strict=True):
        step("p'", link.name)
        columns = zip(link.v_index, link.subspace(q), link.subspace_rate(q, v), strict=True)
        axes.append([(k, p, Motion(by.w.cross(p.ang), by.w.cross(p.lin)) + dS) for k, p, dS in columns])
        step("H~", link.name)
        H.append(convective_matrix(link.inertia, by.w))
    for i, link in reversed(list(enumerate(links))):
        if link.parent >= 0:
            step("H~", links[link.parent].name)
            H[link.parent] = H[link.parent] + H[i].in_parent_frame(X[i], M[i], rates[i].dc)
            M[link.parent] = M[link.parent] + X[i].inertia(M[i])  # 6
    C = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i in range(len(links)):
        for k, p, dp in axes[i]:
            step("C", links[i].name)
            moved = M[i] @ dp + H[i] @ p  # wrench due to the rate of coordinate k
            for j, other, _ in axes[i]:
                C[j][k] = other.dot(moved)
            r, b, j = M[i] @ p, H[i].H.T @ p.ang + H[i].P.cross(p.lin), i  # p.(M~ t' + H~ t) = r.t' + b.w
            while links[j].parent >= 0:
                b = rotate_to_parent(X[j], b + rates[j].dc.cross(r.lin))
                r, moved, j = X[j].force(r), X[j].force(moved), links[j].parent
                for o, other, rate in axes[j]:
                    C[o][k], C[k][o] = other.dot(moved), rate.dot(r) + other.ang.dot(b)
    return C


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
