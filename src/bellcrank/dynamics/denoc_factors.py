"""The factors of the mass matrix, M = U D U^T: S. K. Saha, Simulation of industrial manipulators based on the UDU^T
decomposition of inertia matrix, Multibody System Dynamics, 2001, appendix B: Gaussian elimination in reverse, from the
last column up. What is left of a column is an articulated body seen from its joint, so 6-vectors are all it takes.

Solves: mass_matrix_factors, inverse_mass_matrix. Any tree whose joints do not share coordinates. Elimination: work
O(n), span O(depth). U: work O(n depth). The inverse: work O(n depth^2), but its cubic part is n^3/6 + n^3/6 in a chain.

    p_k     twist that coordinate k gives body i (S)           psi_k      psi^_k / m^_k
    M_i     mass of articulated body i, the print's M^_i       alpha_jk   above the diagonal of U
    psi^_k  M_i p_k, the wrench that moves it along p_k        eta        as in (13), for phi = 1 at k and 0 elsewhere
    m^_k    p_k^T psi^_k, the diagonal of D

Departs: wrenches are about the joint's frame instead of the mass centre; there are children instead of a body i+1;
armature adds to m^; a joint with several axes is eliminated one axis after the other, last first; psi^_ik is psi_ik
before it is divided, so it is never formed. The inverse, U^-T D^-1 U^-1, is not in this paper but in its reference 21
(Int. J. Robotics Research 18 (1), 1999): here (12) and (13) on unit vectors give U^-1, and the product is symmetric.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellcrank.dynamics.state_space import Rows, coordinate_names, inverse, upper
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated
from bellcrank.spatial.motion import Force

Psi = Mapping[int, Force]


def elimination(tree: Tree, q: Vector) -> tuple[Psi, list[Scalar], list[Scalar]]:
    """psi_k, m^_k and 1/m^_k of every coordinate: all that U and D are made of."""
    links = tree.links
    M = [articulated(link.inertia) for link in links]
    psi: dict[int, Force] = {}
    m, inverse_m = [0.0] * tree.nv, [0.0] * tree.nv
    for i, link in reversed(list(enumerate(links))):
        for p, k in reversed(list(zip(link.subspace(q), link.v_index, strict=True))):
            step("M^", link.name)
            free = M[i].freed(p, link.armature)
            m[k], inverse_m[k] = free.D, free.inverse  # 26
            psi[k], M[i] = free.psi, free.rest  # 27, 28
        if link.parent >= 0:
            step("M^", links[link.parent].name)
            M[link.parent] = M[link.parent] + link.transform(q).articulated(M[i])  # 28
    return psi, m, inverse_m


def columns(tree: Tree, q: Vector, psi: Psi, inverted: bool) -> Rows:
    """Column k of U or of U^-1 above the diagonal: what the joints that carry coordinate k feel of a force on it, while
    they hold still or, inverted, give way.
    """
    found: Rows = [{} for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        for k in link.v_index:
            eta = psi[k]
            for carrier in tree.path(i):
                at = tree.links[carrier]
                step("U", link.name)
                for p, j in reversed(list(zip(at.subspace(q), at.v_index, strict=True))):
                    if j < k:
                        alpha = p.dot(eta)  # 25, 12
                        found[k][j] = -alpha if inverted else alpha
                        if inverted:
                            eta = eta - psi[j] * alpha  # 13
                eta = at.transform(q).force(eta)  # 26, 13
    return found


def mass_matrix_factors(tree: Tree, q: Vector) -> list[list[Scalar]]:
    psi, m, _ = elimination(tree, q)
    return upper(columns(tree, q, psi, inverted=False), m)


def inverse_mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """M^-1 = U^-T D^-1 U^-1, from the factors of M = U D U^T."""
    psi, _, inverse_m = elimination(tree, q)
    return inverse(columns(tree, q, psi, inverted=True), inverse_m, coordinate_names(tree))
