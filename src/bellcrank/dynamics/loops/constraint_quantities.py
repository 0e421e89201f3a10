"""Loop equations as quantities: all of them, redundant or not, in the order of the loops.

Solves: closure, closure_jacobian, closure_bias. Mechanisms with loops. Work O(joints of each loop).

    Phi     residual of each equation: metres, or cosines of angles between axes (nikravesh1989, section 2.3)
    C       dPhi/dt = C v                       (12; it is D*B of 15)
    bias    d2Phi/dt2 = C a + bias              (13; bias is its second term)
"""

from __future__ import annotations

from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar


def closure(tree: Tree, q: Vector) -> list[Scalar]:
    """Return Phi of `tree` at positions `q`."""
    return [e.value for e in loop_equations(tree, q, [0.0] * tree.nv)]


def closure_jacobian(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return C of `tree` at positions `q`."""
    return [[e.row.get(k, 0.0) for k in range(tree.nv)] for e in loop_equations(tree, q, [0.0] * tree.nv)]


def closure_bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the second time derivative of Phi at zero acceleration.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return [e.bias for e in loop_equations(tree, q, v)]
