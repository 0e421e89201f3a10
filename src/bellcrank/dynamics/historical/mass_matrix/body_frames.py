"""Both parallel algorithms with the equations of every body in its own frame, after A. Fijany.

A. Fijany 1989, slide "Comparison of Serial Efficiency of Different Algorithms": projection onto the body frame needs
O(n^2) transformations, one between each body and each of its ancestors, where a fixed frame needs O(n). In return,
inertias and axes stay constant. The transformations come from recursive doubling too: from a body to its ancestor at
distance 2^eta, and on from there.

    X(j,i)   transformation from ancestor i to body j     Z(i)   axis of joint i, in its own frame
    a(j,i)   acceleration of body j by a unit of joint i  f(j,i) force on body j, then on its subtree
    K(i)     inertia of composite body i about O(i)
"""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    doubling_ancestors,
    fixed_frame,
    subtree_totals,
    subtrees,
)
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, FullRotation, Shift, Transform
from bellcrank.spatial.vector import Mat, Vec

Transforms = dict[tuple[int, int], Transform]


def pair_transforms(tree: Tree, q: Vector) -> Transforms:
    """Return the transformation X(j,i) from every ancestor i to body j, itself included.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    """
    R, P = fixed_frame(tree, q, relative=True)
    pose: dict[tuple[int, int], tuple[Mat, Vec]] = {}
    X: Transforms = {}
    for j, link in enumerate(tree.links):
        path = tree.path(j)
        X[j, j] = IDENTITY_TRANSFORM
        if link.parent >= 0:
            pose[j, link.parent], X[j, link.parent] = (R[j], P[j]), link.transform(q)
        for distance, i in enumerate(path[2:], 2):
            eta = (distance - 1).bit_length() - 1
            step(f"X{eta}({tree.links[i].name})", link.name)
            middle = path[1 << eta]
            (R_jk, p_jk), (R_ki, p_ki) = pose[j, middle], pose[middle, i]
            pose[j, i] = R_ki.times(R_jk), p_ki + R_ki @ p_jk
            X[j, i] = Transform([Shift(pose[j, i][1]), FullRotation(pose[j, i][0])])
    return X


def unit_accelerations(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` from unit accelerations (V N-E B) in body frames."""
    X, up, Z = pair_transforms(tree, q), doubling_ancestors(tree), axis_columns(tree, q)
    A, outward = TreeMatrix(tree), subtrees(tree)
    for i, z in ((i, z) for i, axes in enumerate(Z) for z in axes):
        column = f"({tree.links[i].name}{z.c or ''})"
        f = {}
        for j in outward[i]:
            step("V" + column, tree.links[j].name)
            a = X[j, i].motion(z.Z)
            step("F" + column, tree.links[j].name)
            f[j] = tree.links[j].inertia @ a
        f = subtree_totals(tree, up, f, "F", column, lambda x, d, j: X[d, j].force(x))
        for j in outward[i]:
            step("a" + column, tree.links[j].name)
            A.add_joint_products(z, Z[j], f[j])
    return A.full()


def composite_bodies(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` from composite bodies (V C R-B) in body frames."""
    X, up, Z = pair_transforms(tree, q), doubling_ancestors(tree), axis_columns(tree, q)
    bodies = {i: link.inertia for i, link in enumerate(tree.links)}
    K = subtree_totals(tree, up, bodies, "K", "", lambda x, d, j: X[d, j].inertia(x))
    A = TreeMatrix(tree)
    for i, link in enumerate(tree.links):
        for z in Z[i]:
            step("f", link.name)
            f = K[i] @ z.Z
            for j in tree.path(i):
                step(f"a({link.name})", tree.links[j].name)
                A.add_joint_products(z, Z[j], X[i, j].force(f))
    return A.full()
