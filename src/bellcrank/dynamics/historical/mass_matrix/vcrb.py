"""Variant of Composite Rigid-Body algorithm (V C R-B) for the mass matrix.

A. Fijany 1989, slide "A Variant of Composite Rigid-Body Algorithm", step 1 in body frames, step 2 in a fixed frame as
the slide "Comparison of Serial Efficiency" advises; also A. Fijany and A. Bejczy, A class of parallel algorithms for
the computation of the manipulator inertia matrix, IEEE Trans. Robotics and Automation 5, 1989.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    M, H, K   mass, first and second moment of composite body i about O(i)     Z(i)   axis of joint i
    f, n      force and moment that a unit acceleration of joint i needs,      P(i)   from O(i-1) to O(i)
              at the joint itself and at those that carry it

Differences from the paper: the composite's moments are transformed along the elementary rotations and shifts of
spatial/moves.py; the slide's a_1i of step 1 is a_ii.
"""

from __future__ import annotations

from itertools import pairwise

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import fixed_frame
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    R, P = fixed_frame(tree, q)
    Z_body, Z = axis_columns(tree, q), axis_columns(tree, q, R)
    A = TreeMatrix(tree)
    K = [link.inertia for link in tree.links]
    for i, link in reversed(list(enumerate(tree.links))):
        for z in Z_body[i]:  # step 1
            step("f", link.name)
            f = K[i] @ z.Z  # f(i) = Z(i) x H(i), n(i) = K(i) Z(i)
            step("a", link.name)
            A.add_joint_products(z, Z_body[i], f)  # a_ii = Z(i) . n(i)
            step("f", link.name)
            F, n = R[i] @ f.lin, R[i] @ f.ang
            for above, j in pairwise(tree.path(i)):  # step 2
                step("n", link.name)
                n = n + P[above].cross(F)  # f(j) = f(j+1), n(j) = n(j+1) + P(j+1,j) x f(j+1)
                step("a", link.name)
                A.add_joint_products(z, Z[j], Force(n, F))  # a_ji = Z(j) . n(j)
        if link.parent >= 0:
            step("K", tree.links[link.parent].name)
            K[link.parent] = K[link.parent] + link.transform(q).inertia(K[i])  # M(i), H(i), K(i)
    return A.full()
