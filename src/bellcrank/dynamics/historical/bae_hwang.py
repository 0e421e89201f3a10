"""Composite inertias in the inertial frame for the mass matrix.

D. S. Bae, R. S. Hwang and E. J. Haug, A recursive formulation for real-time dynamic simulation, Advances in Design
Automation, ASME DE-Vol. 14, 1988; equation numbers are those of Wong 1991, section 2.2.3.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    K_i   inertia of body i and its subtree, about the origin          B     axis of a joint, [z, p x z]
    F     K B: momentum of the subtree at unit rate of the joint        M     mass matrix, lower triangle by rows

Differences from the paper: the 6x6 K_i is stored as its ten numbers (inertial_frame.py). B_i K_i is formed once for
each axis; nothing has to be transformed from body to body after that, so an element of M is one product of six terms.
The axes of a joint with several share K_i; branches add up.
"""

from __future__ import annotations

from bellcrank.dynamics.historical.inertial_frame import inertial_axes, inertial_inertias, inertial_poses
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, indexed_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step


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
