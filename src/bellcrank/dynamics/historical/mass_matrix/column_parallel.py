"""Mass matrix with one processor for each column.

The algorithms are those in the rows "PPA" of A. Fijany 1989, slide "Comparison of Two Classes of Serial and Parallel
Algorithms", for n processors. Recursive doubling computes the values of the bodies, one body per processor; then every
processor computes its column of the matrix, one row after the other. The printed costs show which values are computed
by doubling: (27m + 18a) log n is a product of two rotations, (48m + 63a) log n includes the moments of the composite
bodies. The costs of a row, 39m + 38a and 9m + 8a, are those of the serial algorithms.

Solves: mass_matrix, as functions that the experiment in papers/fijany.py counts and schedules; they
are not methods of the table, since the serial variants are cheaper on one core and the parallel ones on many. Any tree,
with mimic joints too. Work O(n depth), span O(depth).

    symbols as in vneb.py and vcrb.py; f"V({i})[{j}]" is row j of column i, computed by the processor of body i
"""

from __future__ import annotations

from itertools import pairwise

from bellcrank.dynamics.historical.mass_matrix import vneb
from bellcrank.dynamics.historical.mass_matrix.fixed_frame import doubled_fixed_frame, doubling_ancestors
from bellcrank.dynamics.historical.mass_matrix.vcrb_parallel import composites
from bellcrank.dynamics.ltl_factorisation import TreeMatrix, axis_columns
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def newton_euler(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q` by VNEB, with R by doubling."""
    R, P, _ = doubled_fixed_frame(tree, q, doubling_ancestors(tree))
    return vneb.elements(tree, q, R, P, lambda joint: f"({joint})")


def composite_bodies(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at `q` by VCRB, with R, P and the composite moments by doubling."""
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
