"""Variant of Composite Rigid-Body algorithm in parallel, for the mass matrix.

A. Fijany 1989, the row PA of "Comparison of Two Classes of Serial and Parallel Algorithms", in the base frame as
"Algorithmic Choice for Parallel Computation" advises; after A. Fijany and A. Bejczy, A class of parallel algorithms for
the computation of the manipulator inertia matrix, IEEE Trans. Robotics and Automation 5, 1989, by Wong 1991, equations
4.31 and 4.32.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(log depth) on a chain.

    R(i)      from body i's axes to the fixed ones    M, H, K   mass, first and second moment of composite body i
    Z(i)      axis of joint i                                   about O(i), in fixed axes
    P(i,j)    from O(j) to O(i)                       f, n      force and moment that a unit of joint i needs at O(i)

Differences from the paper: the slides do not print it; it is the serial step 1 by doubling, where P(i+1,i) becomes
P(i+2^eta,i), and step 2 without its recursion. The base frame is that of the first body.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    Levels,
    doubled_fixed_frame,
    doubling_ancestors,
    subtree_totals,
)
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import Force, Mat, Vec


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    up = doubling_ancestors(tree)
    R, _, p = doubled_fixed_frame(tree, q, up)
    Z, K = axis_columns(tree, q, R), composites(tree, up, R, p)
    A = TreeMatrix(tree)
    for i, link in enumerate(tree.links):
        for z in Z[i]:
            step("f", link.name)
            f = K[i] @ z.Z  # f(i) = Z(i) x H(i), n(i) = K(i) Z(i)
            for j in tree.path(i):
                step(f"a({link.name})", tree.links[j].name)
                n = f.ang if i == j else f.ang + (p[i] - p[j]).cross(f.lin)  # P(i,j): 4.31
                A.add_joint_products(z, Z[j], Force(n, f.lin))  # a_ji = Z(j) . (n(i) + P(i,j) x f(i)): 4.32
    return A.full()


def composites(tree: Tree, up: Levels, R: Sequence[Mat], p: Sequence[Vec]) -> dict[int, Inertia]:
    """Return the moments M(i), H(i), K(i) of the composite bodies, by doubling.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    up
        As `doubling_ancestors` returns it.
    R
        Rotation of each body.
    p
        Origin of each body.
    """
    K: dict[int, Inertia] = {}
    for i, link in enumerate(tree.links):
        step("K", link.name)
        K[i] = FullRotation(R[i]).inertia(link.inertia)
    return subtree_totals(tree, up, K, "K", "", lambda x, d, j: Shift(p[d] - p[j]).inertia(x))
