"""Variant of Newton-Euler Based algorithm (V N-E B) for the mass matrix.

A. Fijany 1989, slide "A Variant of Newton-Euler Based Algorithm", steps 1 and 2, in a fixed frame as the slide
"Comparison of Serial Efficiency" advises.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    Z(j)    axis of joint j                           m, h, k   mass, first and second moment of body i about O(i)
    w       angular acceleration, the same for all    V(i)      linear acceleration of O(i)
    P(i)    from O(i-1) to O(i)                       F, N      force and moment on O(i), first of body i alone,
                                                                then of its subtree

Differences from the paper: the slide's N(i+1,i,j) lacks h(i) x V(i,j) (the parallel version has it, and the count needs
its six multiplications) and its a_ji takes the moment of body i+1 instead of i. O(j) is on the axis of joint j: V(j,j)
is zero except for sliding joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import fixed_frame, subtrees
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import Force, Mat, Vec


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    return elements(tree, q, *fixed_frame(tree, q))


def elements(
    tree: Tree, q: Vector, R: Sequence[Mat], P: Sequence[Vec], pr: Callable[[str], str] = lambda joint: ""
) -> list[list[Scalar]]:
    """Return the mass matrix, given the fixed frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    R
        Rotation of each body.
    P
        Vector from the parent's origin to the body's.
    pr
        Label of the processors of a joint's column, if it has its own.
    """
    Z = axis_columns(tree, q, R)
    bodies: list[Inertia] = []
    for i, link in enumerate(tree.links):
        step("k", link.name)
        bodies.append(FullRotation(R[i]).inertia(link.inertia))
    A, outward = TreeMatrix(tree), subtrees(tree)
    for j, z in ((j, z) for j, axes in enumerate(Z) for z in axes):
        w, V, label = z.Z.ang, {j: z.Z.lin}, pr(tree.links[j].name)
        F, N = {}, {}
        for i in outward[j]:  # step 1
            step("V" + label, tree.links[i].name)
            if i != j:
                V[i] = V[tree.links[i].parent] + w.cross(P[i])  # V(i,j)
            step("F" + label, tree.links[i].name)
            m, h, k = bodies[i].m, bodies[i].h, bodies[i].I
            F[i] = V[i] * m + w.cross(h)  # F(i+1,i,j)
            N[i] = k @ w + h.cross(V[i])  # N(i+1,i,j)
        for i in reversed(outward[j]):  # step 2
            step("a" + label, tree.links[i].name)
            A.add_joint_products(z, Z[i], Force(N[i], F[i]))  # a_ji = Z(i) . N(n+1,i,j)
            if i != j:
                step("N" + label, tree.links[i].name)
                p = tree.links[i].parent
                F[p] = F[p] + F[i]  # F(n+1,i,j)
                N[p] = N[p] + N[i] + P[i].cross(F[i])  # N(n+1,i,j)
    return A.full()
