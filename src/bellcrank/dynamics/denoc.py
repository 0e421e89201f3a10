"""Decoupled natural orthogonal complement: S. K. Saha, Simulation of industrial manipulators based on the UDU^T
decomposition of inertia matrix, Multibody System Dynamics, 2001; its equation numbers.

The twists of all bodies are t = N_l N_d dtheta. N_l holds the rigid-body propagations B_ij and N_d the joints' twists
p_k, so that the mass matrix is N_d^T (N_l^T M N_l) N_d, and eliminating it from the last column up (denoc_factors.py)
takes nothing but 6-vectors: the forward dynamics become three sweeps.

Solves: mass_matrix, forward_dynamics; mass_matrix_factors and inverse_mass_matrix in denoc_factors.py. Any tree whose
joints do not share coordinates. Forward dynamics: work O(n), span O(depth); mass matrix: work O(n depth).

    p_k     twist that coordinate k gives its body (S)     phi     tau - C dtheta: forces less velocity terms
    B_ij    takes twists from body j to body i (X)         tau^    U^-1 phi             tau~    D^-1 tau^
    M~_i    mass matrix of composite body i                eta_i   wrench that joint i passes on, for phi alone
    m^_k    moment of inertia of the articulated body      mu_i    twist rate of body i, for phi alone

Departs: a twist is that of the joint's frame instead of the mass centre, which makes d_i = 0 and the c_ij constant, and
bodies need no mass; there are children instead of a body i+1; armature adds to the diagonal; joints have any number of
axes. Nodes of a body that bends share their coordinates, and each adds what stands on it (bent.py does the rest).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.denoc_factors import elimination, inverse_mass_matrix, mass_matrix_factors
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.state_space import Rows, square
from bellcrank.dynamics.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_FORCE, NO_MOTION, Motion

__all__ = ["accelerations", "forward_dynamics", "inverse_mass_matrix", "mass_matrix", "mass_matrix_factors"]


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
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
    return square(I)


def accelerations(tree: Tree, q: Vector, phi: Vector) -> list[Scalar]:
    """M^-1 phi by the three steps of section 2.2, in the order of section 3."""
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
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))  # 1
