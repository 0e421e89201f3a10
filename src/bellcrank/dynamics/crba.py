"""Composite-rigid-body algorithm for the joint-space inertia matrix.

M. W. Walker and D. E. Orin, Efficient dynamic computer simulation of robotic mechanisms, J. Dyn. Sys. Meas. Control
104, 1982, method 3; equation numbers are those of Wong 1991, section 2.2.1. The factorisation along the tree is that of
ltl_factorisation.py.

Solves: mass_matrix, mass_matrix_factors, inverse_mass_matrix, forward_dynamics. Any tree, with mimic joints too. Work
O(n depth^2), span O(depth).

    Ic_i  composite inertia of body i and its subtree       F      force that a unit acceleration of a joint needs
    M     mass matrix, lower triangle by rows

Differences from the paper: inertias are (m, h, I) about the joint instead of (M, c, J) about the composite's centre,
and are transformed along the elementary rotations and shifts of spatial/moves.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.ltl_factorisation import (
    Rows,
    TreeMatrix,
    axis_columns,
    coordinate_names,
    full_matrix,
    inverse_matrix,
    solve,
    udu_factors,
)
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def mass_matrix_triangle(tree: Tree, q: Vector) -> Rows:
    """Return the lower triangle of M for `tree` at positions `q`."""
    Ic = tree.link_inertias(q)
    S, M = axis_columns(tree, q), TreeMatrix(tree)

    def moved(i: int, F: Force) -> Force:
        return tree.links[i].transform(q).force(F)  # 2.11

    for i, link in reversed(list(enumerate(tree.links))):
        for s in S[i]:
            step("F", link.name)
            M.carry_to_ground(s, S, Ic[i] @ s.Z, moved)  # 2.10, 2.12
        if link.parent >= 0:
            step("Ic", tree.links[link.parent].name)
            Ic[link.parent] = Ic[link.parent] + link.transform(q).inertia(Ic[i])  # 2.4-2.9
    for body in tree.flexible:
        M.add_modes(body, S, q, moved)
    return M.lower_triangle()


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return M of `tree` at positions `q`."""
    return full_matrix(mass_matrix_triangle(tree, q))


def mass_matrix_factors(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return U and D, with M = U D U^T, of `tree` at positions `q`."""
    return udu_factors(mass_matrix_triangle(tree, q), coordinate_names(tree))


def inverse_mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return M^-1 of `tree` at positions `q`."""
    return inverse_matrix(mass_matrix_triangle(tree, q), coordinate_names(tree))


def accelerations(tree: Tree, q: Vector, phi: Vector) -> list[Scalar]:
    """Return M^-1 phi, with M factorised along the tree.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    phi
        Generalised forces, nv elements.
    """
    return solve(mass_matrix_triangle(tree, q), phi, coordinate_names(tree))


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return M^-1 (tau + passive - bias).

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))
