"""Kane's equation for the mass matrix, as it stands and as a variant of A. Fijany."""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    doubled_fixed_frame,
    doubling_ancestors,
    fixed_frame,
    subtrees,
)
from bellcrank.dynamics.ltl_factorisation import AxisColumn, TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import ZERO, Force, Motion


def oke(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the original Kane's equation (OKE).

    A. Fijany 1989, slides "Kane's Equation: Analysis of General Case" and "An O(n^3) Algorithm Based on Kane's
    Equation"; after T. R. Kane and D. A. Levinson, The use of Kane's dynamical equations in robotics, Int. J. Robotics
    Research 2, 1983.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

        Z_i       axis of joint i                      P_k*,i   from joint i to the centre of mass of body k
        W_k(i)    i-th partial angular velocity of k   V_k(i)   i-th partial velocity of its centre
        N_k(i)    partial angular momentum I_k W_k(i)  F_k(i)   partial linear momentum m_k V_k(i)

    Differences from the paper: partial velocities and momenta are computed once for each body and joint, not once for
    each element; everything is in one fixed frame; joints may slide, and have any number of axes.
    """
    R, P = fixed_frame(tree, q)
    Z = axis_columns(tree, q, R)
    A = TreeMatrix(tree)
    for k, link in enumerate(tree.links):
        step("P", link.name)
        body = FullRotation(R[k]).inertia(link.inertia.central)
        P_ki = R[k] @ link.inertia.centre
        partial: list[tuple[AxisColumn, Motion, Force]] = []
        for i in tree.path(k):
            for z in Z[i]:
                step("V", link.name)
                V = Motion(z.Z.ang, z.Z.lin + z.Z.ang.cross(P_ki))  # W_k(i) = Z_i, V_k(i) = Z_i x P_k*,i
                step("F", link.name)
                F = body @ V  # N_k(i) = I_k Z_i, F_k(i) = m_k V_k(i)
                step("a", link.name)
                partial.append((z, V, F))
                for z_j, V_j, _ in partial:
                    A.add_product(z, z_j, V_j.dot(F))  # a_ij = sum over k of V_k(i) . F_k(j) + W_k(i) . N_k(j)
            step("P", link.name)
            P_ki = P[i] + P_ki
    return A.full()


def oke_parallel(tree: Tree, q: Vector, projection: str = "base") -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the original Kane's equation on O(n^3) processors.

    A. Fijany 1989, slide "Parallelism in Computation of Mass Matrix: Time and Processors Bounds": all terms of all
    elements at the same time, and their sums in pairs.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth^2), span O(log depth) on a chain.

        Letters as in `oke`; p(k) from O(1) to O(k), by doubling. The frame of `projection` is "base" or "end".

    Differences from the paper: as those of `oke`; the slides leave open how the axes and distances of O(log n) are
    computed, and here it is by recursive doubling (fixed_frame.py). Processors share the partial velocities and momenta
    of a body and a joint, of which there are O(n^2).
    """
    R, _, p = doubled_fixed_frame(tree, q, doubling_ancestors(tree), projection)
    Z = axis_columns(tree, q, R)
    A = TreeMatrix(tree)
    for k, link in enumerate(tree.links):
        step("P", link.name)
        body = FullRotation(R[k]).inertia(link.inertia.central)
        centre = p[k] + R[k] @ link.inertia.centre
        partial: list[tuple[AxisColumn, Motion]] = []
        for i in tree.path(k):
            for z in Z[i]:
                column = f"({tree.links[i].name})"
                step("V" + column, link.name)
                V = Motion(z.Z.ang, z.Z.lin + z.Z.ang.cross(centre - p[i]))  # V_k(i) = Z_i x P_k*,i
                step("F" + column, link.name)
                F = body @ V  # N_k(i) = I_k Z_i, F_k(i) = m_k V_k(i)
                partial.append((z, V))
                for z_j, V_j in partial:
                    step(f"a{column}", link.name)
                    A.add_product(z, z_j, V_j.dot(F))
    return A.full()


def vke(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the variant of Kane's equation (VKE).

    A. Fijany 1989, slides "Modified Kane's Equation" and "An O(n^2) Algorithm Based on Kane's Equation".

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

        Z_i       axis of joint i                     P_j,i    from joint i to joint j
        S_j       from joint j to body j's centre     P_j*,i   from joint i to body j's centre
        N_j(i)    partial angular momentum of body j  F_j(i)   partial linear momentum
        n_j(i)    sum of the moments about joint j    f_j(i)   sum of the momenta, over the subtree of joint j

    Differences from the paper: everything is in one fixed frame; joints may slide, and have any number of axes.
    """
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
