"""Original Kane's Equation (OKE) for the mass matrix.

A. Fijany 1989, slides "Kane's Equation: Analysis of General Case" and "An O(n^3) Algorithm Based on Kane's Equation";
after T. R. Kane and D. A. Levinson, The use of Kane's dynamical equations in robotics, Int. J. Robotics Research 2,
1983.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    Z_i       axis of joint i                      P_k*,i   from joint i to the centre of mass of body k
    W_k(i)    i-th partial angular velocity of k   V_k(i)   i-th partial velocity of its centre
    N_k(i)    partial angular momentum I_k W_k(i)  F_k(i)   partial linear momentum m_k V_k(i)

Differences from the paper: partial velocities and momenta are computed once for each body and joint, not once for each
element; everything is in one fixed frame; joints may slide, and have any number of axes.
"""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import fixed_frame
from bellcrank.dynamics.ltl_factorisation import AxisColumn, TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import Force, Motion


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
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
