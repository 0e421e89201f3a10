"""Original Newton-Euler Based algorithm (O N-E B) for the mass matrix.

A. Fijany 1989, slide "Algorithms for Computation of Mass Matrix", equations (1)-(3); after M. W. Walker and D. E. Orin,
Efficient dynamic computer simulation of robotic mechanisms, J. Dyn. Sys. Meas. Control 104, 1982, method 2: the inverse
dynamics of J. Y. S. Luh, M. W. Walker and R. P. C. Paul (1980) for one unit acceleration after the other, at zero
velocity and without gravity.

Solves: mass_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    Z_j      axis of joint j, in body j's frame            dw, dv   accelerations of body i's frame, in that frame
    S_i      from joint i to the centre of body i          m, J     its mass and inertia about the centre
    F, N     force and moment on the body's centre         f, n     force and moment that joint i transmits

Differences from the paper: the slides do not print it. Bodies before joint j are at rest and are left out; the terms
with velocities are zero and folded, which is the first of the four redundancies that the slides remove.
"""

from __future__ import annotations

from bellcrank.dynamics.historical.mass_matrix.fixed_frame import subtrees, transforms
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    X = transforms(tree, q)
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
