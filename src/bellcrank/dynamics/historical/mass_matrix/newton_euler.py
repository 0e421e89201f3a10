"""Mass matrix from the Newton-Euler equations of unit accelerations: one core, one per column, one per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.dynamics.historical.mass_matrix.body_frames import unit_accelerations
from bellcrank.dynamics.historical.mass_matrix.fixed_frame import (
    doubled_fixed_frame,
    doubling_ancestors,
    fixed_frame,
    subtree_totals,
    subtrees,
)
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns, pairwise_sum
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import ZERO, Force, Mat, Vec


def oneb(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the original Newton-Euler algorithm (O N-E B).

    A. Fijany 1989, slide "Algorithms for Computation of Mass Matrix", equations (1)-(3); after M. W. Walker and D. E.
    Orin, Efficient dynamic computer simulation of robotic mechanisms, J. Dyn. Sys. Meas. Control 104, 1982, method 2:
    the inverse dynamics of J. Y. S. Luh, M. W. Walker and R. P. C. Paul (1980) for one unit acceleration after the
    other, at zero velocity and without gravity.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

        Z_j      axis of joint j, in body j's frame            dw, dv   accelerations of body i's frame, in that frame
        S_i      from joint i to the centre of body i          m, J     its mass and inertia about the centre
        F, N     force and moment on the body's centre         f, n     force and moment that joint i transmits

    Differences from the paper: the slides do not print it. Bodies before joint j are at rest and are left out; the
    terms with velocities are zero and folded, which is the first of the four redundancies that the slides remove.
    """
    X = []
    for link in tree.links:
        step("X", link.name)
        X.append(link.transform(q))
    Z = axis_columns(tree, q)
    bodies = [(link.inertia.m, link.inertia.centre, link.inertia.I_centre) for link in tree.links]
    A, outward = TreeMatrix(tree), subtrees(tree)
    for j, z in ((j, z) for j, axes in enumerate(Z) for z in axes):
        a, f = {j: z.Z}, {}  # (3)
        for i in outward[j]:
            step("a", tree.links[i].name)
            if i != j:
                a[i] = X[i].motion(a[tree.links[i].parent])
            step("F", tree.links[i].name)
            dw, dv, (m, S, J) = a[i].ang, a[i].lin, bodies[i]
            F = (dv + dw.cross(S)) * m
            N = J @ dw
            f[i] = Force(N + S.cross(F), F)
        for i in reversed(outward[j]):
            step("tau", tree.links[i].name)
            A.add_joint_products(z, Z[i], f[i])  # (2)
            if i != j:
                step("f", tree.links[i].name)
                f[tree.links[i].parent] = f[tree.links[i].parent] + X[i].force(f[i])
    return A.full()


def vneb(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the variant of the Newton-Euler algorithm (V N-E B).

    A. Fijany 1989, slide "A Variant of Newton-Euler Based Algorithm", steps 1 and 2, in a fixed frame as the slide
    "Comparison of Serial Efficiency" advises.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

        Z(j)    axis of joint j                           m, h, k   mass, first and second moment of body i about O(i)
        w       angular acceleration, the same for all    V(i)      linear acceleration of O(i)
        P(i)    from O(i-1) to O(i)                       F, N      force and moment on O(i), first of body i alone,
                                                                    then of its subtree

    Differences from the paper: the slide's N(i+1,i,j) lacks h(i) x V(i,j) (the parallel version has it, and the count
    needs its six multiplications) and its a_ji takes the moment of body i+1 instead of i. O(j) is on the axis of joint
    j: V(j,j) is zero except for sliding joints.
    """
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


def vneb_parallel(tree: Tree, q: Vector, projection: str = "base") -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by the parallel variant of the Newton-Euler algorithm.

    A. Fijany 1989, the three steps of the unnamed slides after "Comparison of Two Classes of Serial and Parallel
    Algorithms", for n(n+1)/2 processors; PR_ji does row j of column i.

    Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth log depth), span O(log depth) on a chain.

        R(j)   from body j's axes to the fixed ones      M, S, K   mass, centre and second moment of body j about O(j)
        Z(i)   axis of joint i                           H(j)      first moment M S of body j, in fixed axes
        P      from one O to another                     V(j,i)    acceleration of O(j) by a unit of joint i
        F, N   force and moment on O(j), of body j alone, then of its subtree

    Differences from the paper: the fixed frame is that of the first body (fixed_frame.py), and P(j,i) is the
    difference of two distances from it; O(j) is on joint j and not at the body's far end, so that P(j,i) ends where
    V(j,i) is taken. A `projection` on "end" or "body" uses the last body's frame, or every body's own.
    """
    if projection == "body":
        return unit_accelerations(tree, q)
    up = doubling_ancestors(tree)
    R, P, p = doubled_fixed_frame(tree, q, up, projection)  # step 1: 1-4b; step 2: 1
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


def vneb_column_parallel(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by VNEB with one processor per column, R by doubling."""
    R, P, _ = doubled_fixed_frame(tree, q, doubling_ancestors(tree))
    return elements(tree, q, R, P, lambda joint: f"({joint})")
