"""The equations that close the loops, as quantities: every one of them, redundant or not, in the order of the loops.

Solves: closure, closure_jacobian, closure_bias. Mechanisms with loops. Work O(joints of each loop).

    Phi     what each equation misses: metres, or cosines of angles that should be right (nikravesh1989, section 2.3)
    C       dPhi/dt = C v                       (12; it is D*B of 15)
    bias    d2Phi/dt2 = C a + bias              (13; bias is its second term)
"""

from __future__ import annotations

from bellcrank.dynamics.loops.rows import equations
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar


def closure(tree: Tree, q: Vector) -> list[Scalar]:
    return [e.value for e in equations(tree, q, [0.0] * tree.nv)]


def closure_jacobian(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return [[e.row.get(k, 0.0) for k in range(tree.nv)] for e in equations(tree, q, [0.0] * tree.nv)]


def closure_bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    return [e.bias for e in equations(tree, q, v)]
