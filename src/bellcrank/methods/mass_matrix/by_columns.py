"""The rows PPA of A. Fijany 1989, slide "Comparison of Two Classes of Serial and Parallel Algorithms": n processors.
What belongs to the bodies is found by doubling, one body a processor; then every processor does its column of the
matrix one row after the other. The printed costs say what is doubled: (27m + 18a) log n is a product of two rotations,
(48m + 63a) log n has the moments of the composite bodies too; 39m + 38a and 9m + 8a for a row are those of the serial
algorithms.

Solves: mass_matrix, as functions that the experiment in parallel/fijany.py counts and lays out; they are no methods of
their own, since on one core the serial variants are cheaper and on many the parallel ones. Any tree, coupled joints
too. Work O(n depth), span O(depth).

    symbols as in vneb.py and vcrb.py; f"V({i})[{j}]" is row j of column i, which the processor of body i does
"""

from __future__ import annotations

from itertools import pairwise

from bellcrank.methods.columns import Matrix, carried, columns
from bellcrank.methods.mass_matrix.doubling import ancestors, fixed_frame, totals
from bellcrank.methods.sweep import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.motion import Force
from bellcrank.spatial.moves import FullRotation, Shift


def newton_euler(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """VNEB: R by doubling."""
    R, P, _ = fixed_frame(tree, q, ancestors(tree))
    Z = columns(tree, q, R)
    bodies: list[Inertia] = []
    for i, link in enumerate(tree.links):
        step("k", link.name)
        bodies.append(FullRotation(R[i]).inertia(link.inertia))
    A, outward = Matrix(tree), carried(tree)
    for j, z in ((j, z) for j, own in enumerate(Z) for z in own):
        pr = f"({tree.links[j].name})"
        w, V = z.Z.ang, {j: z.Z.lin}
        F, N = {}, {}
        for i in outward[j]:
            step("V" + pr, tree.links[i].name)
            if i != j:
                V[i] = V[tree.links[i].parent] + w.cross(P[i])
            step("F" + pr, tree.links[i].name)
            F[i] = V[i] * bodies[i].m + w.cross(bodies[i].h)
            N[i] = bodies[i].I @ w + bodies[i].h.cross(V[i])
        for i in reversed(outward[j]):
            step("a" + pr, tree.links[i].name)
            A.felt(z, Z[i], Force(N[i], F[i]))
            if i != j:
                step("N" + pr, tree.links[i].name)
                p = tree.links[i].parent
                F[p] = F[p] + F[i]
                N[p] = N[p] + N[i] + P[i].cross(F[i])
    return A.square()


def composite_bodies(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """VCRB: R, P and the moments of the composite bodies by doubling."""
    up = ancestors(tree)
    R, P, p = fixed_frame(tree, q, up)
    Z = columns(tree, q, R)
    K: dict[int, Inertia] = {}
    for i, link in enumerate(tree.links):
        step("K", link.name)
        K[i] = FullRotation(R[i]).inertia(link.inertia)
    K = totals(tree, up, K, "K", "", lambda x, d, j: Shift(p[d] - p[j]).inertia(x))
    A = Matrix(tree)
    for i, link in enumerate(tree.links):
        for z in Z[i]:
            step(f"f({link.name})", link.name)
            f = K[i] @ z.Z
            n = f.ang
            step(f"a({link.name})", link.name)
            A.felt(z, Z[i], f)
            for above, j in pairwise(tree.path(i)):
                step(f"n({link.name})", tree.links[j].name)
                n = n + P[above].cross(f.lin)
                step(f"a({link.name})", tree.links[j].name)
                A.felt(z, Z[j], Force(n, f.lin))
    return A.square()
