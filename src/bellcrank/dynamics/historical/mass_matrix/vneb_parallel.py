"""Variant of Newton-Euler Based algorithm in parallel, for the mass matrix.

A. Fijany 1989, the three steps of the unnamed slides after "Comparison of Two Classes of Serial and Parallel
Algorithms", for n(n+1)/2 processors; PR_ji does row j of column i.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth log depth), span O(log depth) on a chain.

    R(j)   from body j's axes to the fixed ones      M, S, K   mass, centre and second moment of body j about O(j)
    Z(i)   axis of joint i                           H(j)      first moment M S of body j, in fixed axes
    P      from one O to another                     V(j,i)    acceleration of O(j) by a unit of joint i
    F, N   force and moment on O(j), of body j alone, then of its subtree

Differences from the paper: the fixed frame is that of the first body (fixed_frame.py), and P(j,i) is the
difference of two distances from it; O(j) is on joint j and not at the body's far end, so that P(j,i) ends where V(j,i)
is taken.
"""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    doubled_fixed_frame,
    doubling_ancestors,
    subtree_totals,
    subtrees,
)
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns, pairwise_sum
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import ZERO, Force


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    up = doubling_ancestors(tree)
    R, P, p = doubled_fixed_frame(tree, q, up)  # step 1: 1-4b; step 2: 1
    Z = axis_columns(tree, q, R)  # 4a
    H = []
    for j, link in enumerate(tree.links):
        step("H", link.name)
        H.append(R[j] @ link.inertia.h)  # 4c, 4d
    A, outward = TreeMatrix(tree), subtrees(tree)
    for i, z in ((i, z) for i, axes in enumerate(Z) for z in axes):
        w = z.Z.ang
        pr = f"({tree.links[i].name}{z.c or ''})"  # the processors of column i
        F, N = {}, {}
        for j in outward[i]:  # step 2
            link = tree.links[j]
            step("V" + pr, link.name)
            V = z.Z.lin if i == j else z.Z.lin + w.cross(p[j] - p[i])  # 2a
            step("F" + pr, link.name)
            F[j] = w.cross(H[j]) + V * link.inertia.m  # 2b
            step("N" + pr, link.name)
            N[j] = R[j] @ (link.inertia.I @ (R[j].T @ w)) + H[j].cross(V)  # 2c
        F = subtree_totals(tree, up, F, "F", pr)  # step 3: 1
        carries: dict[int, list[int]] = {j: [] for j in outward[i]}
        for j in outward[i][1:]:
            carries[tree.links[j].parent].append(j)
        for j in outward[i]:
            step("PxF" + pr, tree.links[j].name)
            N[j] = N[j] + pairwise_sum([ZERO, *(P[c].cross(F[c]) for c in carries[j])])  # 3a
        N = subtree_totals(tree, up, N, "N", pr)  # 3b
        for j in outward[i]:
            step("a" + pr, tree.links[j].name)
            A.add_joint_products(z, Z[j], Force(N[j], F[j]))  # 2, the second of that number
    return A.full()
