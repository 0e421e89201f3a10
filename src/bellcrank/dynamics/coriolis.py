"""The Coriolis matrix of Christoffel's symbols: S. Echeandia and P. M. Wensing, Numerical methods to compute the
Coriolis matrix and Christoffel symbols for rigid-body systems, J. Comput. Nonlinear Dynam. 16, 2021, algorithm 1.

Solves: coriolis_matrix. Any tree, coupled joints too. Work O(n depth), span O(depth).

    Ic   inertia of what a joint carries           Z, dZ   a joint's axis, and how it changes in space
    B    its Coriolis matrix, twice (derivatives.py)

    C_oc = Z_o . (Ic dZ_c + B/2 Z_c)      for a joint o that carries joint c, and
    C_co = Z_c . (Ic dZ_o + B/2 Z_o)

so that C v are the Coriolis forces and C + C^T is the rate of the mass matrix.

Departs: everything is in body coordinates, and B has 12 numbers instead of 36, as in derivatives.py.
"""

from __future__ import annotations

from bellcrank.dynamics.centroidal import composites, flows
from bellcrank.dynamics.flow import direction
from bellcrank.dynamics.frame_motion import axes_in_space
from bellcrank.dynamics.kinematics import Vector, velocities
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> list[list[Scalar]]:
    """C, nv x nv."""
    Ic, B, X = composites(tree, q), flows(tree, q, v), [link.transform(q) for link in tree.links]
    axes = []
    for link, V in zip(tree.links, velocities(tree, q, v), strict=True):
        step("dZ", link.name)
        axes.append(axes_in_space(link, q, v, V))
    C: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        for k, Z, dZ in axes[i]:
            step("C", link.name)
            u, r, b = Ic[i] @ dZ + (B[i] @ Z) * 0.5, Ic[i] @ Z, B[i].row(Z) * 0.5
            for o, Z_o, _ in axes[i]:
                C[o][k] = C[o][k] + Z_o.dot(u)
            above = i
            while tree.links[above].parent >= 0:
                step("C", link.name)
                u, r = X[above].force(u), X[above].force(r)
                b, above = direction(X[above], b), tree.links[above].parent
                for o, Z_o, dZ_o in axes[above]:
                    C[o][k] = C[o][k] + Z_o.dot(u)
                    C[k][o] = C[k][o] + dZ_o.dot(r) + Z_o.ang.dot(b)
    return C
