"""Composite rigid bodies: M. W. Walker and D. E. Orin, Efficient dynamic computer simulation of robotic mechanisms,
J. Dyn. Sys. Meas. Control 104, 1982, method 3; equation numbers are those of Wong 1991, section 2.2.1. The
factorisation along the tree is that of inertia_matrix.py.

Solves: mass_matrix, mass_matrix_factors, inverse_mass_matrix, forward_dynamics. Any tree, coupled joints too. Work
O(n depth^2), span O(depth).

    Ic_i  inertia of body i and all it carries       F      force that a unit acceleration of a joint needs
    M     mass matrix, lower triangle by rows

Departs: inertias are (m, h, I) about the joint instead of (M, c, J) about the composite's centre, and move along the
elementary turns and shifts of spatial/moves.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.inertia_matrix import (
    Matrix,
    Rows,
    columns,
    coordinate_names,
    factors,
    inverse,
    inverted,
    solve,
    square,
    upper,
)
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def composite(tree: Tree, q: Vector) -> Rows:
    """The lower triangle of M."""
    Ic = tree.inertias(q)
    S, M = columns(tree, q), Matrix(tree)

    def moved(i: int, F: Force) -> Force:
        return tree.links[i].transform(q).force(F)  # 2.11

    for i, link in reversed(list(enumerate(tree.links))):
        for s in S[i]:
            step("F", link.name)
            M.handed_down(s, S, Ic[i] @ s.Z, moved)  # 2.10, 2.12
        if link.parent >= 0:
            step("Ic", tree.links[link.parent].name)
            Ic[link.parent] = Ic[link.parent] + link.transform(q).inertia(Ic[i])  # 2.4-2.9
    for body in tree.flexible:
        M.modes(body, S, q, moved)
    return M.rows()


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(composite(tree, q))


def mass_matrix_factors(tree: Tree, q: Vector) -> list[list[Scalar]]:
    L, D, _ = factors(composite(tree, q), coordinate_names(tree))
    return upper(L, D)


def inverse_mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    names = coordinate_names(tree)
    L, _, inverse_D = factors(composite(tree, q), names)
    return inverse(inverted(L, names), inverse_D, names)


def accelerations(tree: Tree, q: Vector, phi: Vector) -> list[Scalar]:
    """M^-1 phi, with M factored along the tree."""
    return solve(composite(tree, q), phi, coordinate_names(tree))


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """M^-1 (tau + passive - bias)."""
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))
