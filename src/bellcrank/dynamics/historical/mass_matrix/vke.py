"""Variant of Kane's Equation (VKE) for the mass matrix.

A. Fijany 1989, slides "Modified Kane's Equation" and "An O(n^2) Algorithm Based on Kane's Equation".

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    Z_i       axis of joint i                     P_j,i    from joint i to joint j
    S_j       from joint j to body j's centre     P_j*,i   from joint i to body j's centre
    N_j(i)    partial angular momentum of body j  F_j(i)   partial linear momentum
    n_j(i)    sum of the moments about joint j    f_j(i)   sum of the momenta, over the subtree of joint j

Differences from the paper: everything is in one fixed frame; joints may slide, and have any number of axes.
"""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import fixed_frame, subtrees
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import ZERO, Force


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    R, P = fixed_frame(tree, q)
    Z = axis_columns(tree, q, R)
    m, S, I = [], [], []
    for j, link in enumerate(tree.links):
        step("I", link.name)
        m.append(link.inertia.m)
        S.append(R[j] @ link.inertia.centre)
        I.append(FullRotation(R[j]).up_sym(link.inertia.I_centre))
    A, outward = TreeMatrix(tree), subtrees(tree)
    for i, z in ((i, z) for i, axes in enumerate(Z) for z in axes):
        P_i = {i: ZERO}
        f, n = {}, {}
        for j in outward[i]:
            step("F", tree.links[j].name)
            if j != i:
                P_i[j] = P_i[tree.links[j].parent] + P[j]  # P_j,i = P_j-1,i + P_j,j-1
            Ps = P_i[j] + S[j]  # P_j*,i = P_j,i + S_j
            N = I[j] @ z.Z.ang  # N_j(i) = I_j Z_i
            F = (z.Z.lin + z.Z.ang.cross(Ps)) * m[j]  # F_j(i) = m_j (Z_i x P_j*,i)
            f[j], n[j] = F, N + S[j].cross(F)
        for j in reversed(outward[i]):
            step("a", tree.links[j].name)
            A.add_joint_products(z, Z[j], Force(n[j], f[j]))  # a_ij = Z_j . n_j(i)
            if j != i:
                step("f", tree.links[j].name)
                p = tree.links[j].parent
                f[p] = f[p] + f[j]  # f_j(i) = F_j(i) + f_j+1(i)
                n[p] = n[p] + n[j] + P[j].cross(f[j])  # n_j(i) = N_j(i) + S_j x F_j(i) + n_j+1(i) + P_j+1,j x f_j+1(i)
    return A.full()
