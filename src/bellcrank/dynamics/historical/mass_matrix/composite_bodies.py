"""Mass matrix from composite bodies by first and second moments: one core, one per column, one per element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bellcrank.dynamics.historical.mass_matrix.body_frames import composite_bodies
from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    Levels,
    doubled_fixed_frame,
    doubling_ancestors,
    fixed_frame,
    subtree_totals,
)
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import Force, Mat, Vec


def vcrb(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the variant of the composite-body algorithm (V C R-B).

    A. Fijany 1989, slide "A Variant of Composite Rigid-Body Algorithm", step 1 in body frames, step 2 in a fixed frame
    as the slide "Comparison of Serial Efficiency" advises; also A. Fijany and A. Bejczy, A class of parallel
    algorithms for the computation of the manipulator inertia matrix, IEEE Trans. Robotics and Automation 5, 1989.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

        M, H, K   mass, first and second moment of composite body i about O(i)     Z(i)   axis of joint i
        f, n      force and moment that a unit acceleration of joint i needs,      P(i)   from O(i-1) to O(i)
                  at the joint itself and at those that carry it

    Differences from the paper: the composite's moments are transformed along the elementary rotations and shifts of
    spatial/moves.py; the slide's a_1i of step 1 is a_ii.
    """
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


def vcrb_parallel(tree: Tree, q: Vector, projection: str = "base") -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the parallel variant of the composite-body algorithm.

    A. Fijany 1989, the row PA of "Comparison of Two Classes of Serial and Parallel Algorithms", in the base frame as
    "Algorithmic Choice for Parallel Computation" advises; after A. Fijany and A. Bejczy, A class of parallel
    algorithms for the computation of the manipulator inertia matrix, IEEE Trans. Robotics and Automation 5, 1989, by
    Wong 1991, equations 4.31 and 4.32.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(log depth) on a chain.

        R(i)    from body i's axes to the fixed ones    M, H, K   mass, first and second moment of composite body i
        Z(i)    axis of joint i                                   about O(i), in fixed axes
        P(i,j)  from O(j) to O(i)                       f, n      force and moment that a unit of joint i needs at O(i)

    Differences from the paper: the slides do not print it; it is the serial step 1 by doubling, where P(i+1,i) becomes
    P(i+2^eta,i), and step 2 without its recursion. The base frame is that of the first body. A `projection` on "end" or
    "body" uses the last body's frame, or every body's own.
    """
    if projection == "body":
        return composite_bodies(tree, q)
    up = doubling_ancestors(tree)
    R, _, p = doubled_fixed_frame(tree, q, up, projection)
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


def vcrb_column_parallel(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at `q` by VCRB with one processor per column.

    R, P and the composite moments are computed by doubling.
    """
    up = doubling_ancestors(tree)
    R, P, p = doubled_fixed_frame(tree, q, up)
    Z, K = axis_columns(tree, q, R), composites(tree, up, R, p)
    A = TreeMatrix(tree)
    for i, link in enumerate(tree.links):
        for z in Z[i]:
            step(f"f({link.name})", link.name)
            f = K[i] @ z.Z
            n = f.ang
            step(f"a({link.name})", link.name)
            A.add_joint_products(z, Z[i], f)
            for above, j in pairwise(tree.path(i)):
                step(f"n({link.name})", tree.links[j].name)
                n = n + P[above].cross(f.lin)
                step(f"a({link.name})", tree.links[j].name)
                A.add_joint_products(z, Z[j], Force(n, f.lin))
    return A.full()
