"""Newton-Euler state space in body coordinates.

D. Wong, Parallel implementation of multibody dynamics for real-time simulation, PhD thesis, University of British
Columbia, 1991, chapter 3, appendices A and B, table 6.1.

Solves: mass_matrix, bias, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    X_i     transform from the parent's frame, A in print     c_ij    axis of joint j, in body i's coordinates
    rho_ij  from the centre of mass of body i to joint j      J, m    diagonal matrices of inertias and masses
    H       [C; rho x C]: row i for body i, column k for coordinate k; the orthogonal complement of the constraints
    P       diag(J, m) H; the thesis calls it H, and our H is its H with a bar
    f_v     Coriolis, centrifugal and gravity forces

Differences from the thesis: frames are attached to the joint and not to the centre of mass, so that rho runs along the
joints first and to the centre last: with k and l of 3.9 in one step, their sum costs 5 additions instead of 6. A joint
has the columns of its motion subspace, of which table 6.1 is an extract. The square roots of Cholesky's factorisation
are avoided. As printed, 3.11 has the wrong sign before M (U^-1 dQ w), the product after it lacks U^-1 Q, and 3.33 has
(rho x c).F = c.(rho x F), where it is -c.(rho x F): none of them is used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.historical.orthogonal_complement import (
    Columns,
    central_inertias,
    inertia_matrix,
    momentum_rates,
    project_forces,
)
from bellcrank.dynamics.ltl_factorisation import coordinate_names, full_matrix, nonzero_triangle, solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, right_hand_side
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import NO_MOTION, ZERO, Motion, Vec


@dataclass(frozen=True)
class Hinge:
    """A joint on the path to a body, in the body's frame: position relative to the body's own joint, and axes."""

    position: Vec
    axes: Sequence[tuple[int, Motion]]  # (index in v, axis)


def transformation(tree: Tree, q: Vector) -> list[Columns]:
    """Return H of `tree` at positions `q`; the paths are the rows of the connectivity matrix U^-1 (3.14, 3.15)."""
    path: list[list[Hinge]] = []
    H: list[Columns] = []
    for link in tree.links:
        step("c", link.name)
        X = link.transform(q)
        path.append([])
        for far in path[link.parent] if link.parent >= 0 else ():
            axes = [(k, Motion(X.down(c.ang), X.down(c.lin))) for k, c in far.axes]  # 3.10
            path[-1].append(Hinge(X.point(far.position), axes))
        path[-1].append(Hinge(ZERO, list(zip(link.v_index, link.subspace(q), strict=True))))
        step("rho x c", link.name)
        row: dict[int, Motion] = {}
        for hinge in path[-1]:
            rho = hinge.position - link.inertia.centre  # 3.9
            for k, c in hinge.axes:
                row[k] = row.get(k, NO_MOTION) + Motion(c.ang, rho.cross(c.ang) + c.lin)  # 3.7, table 6.1
        H.append(row)
    return H


def force_vector(tree: Tree, q: Vector, v: Vector, H: Sequence[Columns]) -> list[Scalar]:
    """Return the bias forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    H
        Rows of H, one for each body.
    """
    return project_forces(tree, H, momentum_rates(tree, q, v))  # 3.34


def accelerations(tree: Tree, M: Sequence[Vector], b: Vector) -> list[Scalar]:
    """Return M^-1 b.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    M
        Mass matrix, nv x nv.
    b
        Generalised forces, nv elements.
    """
    return solve(nonzero_triangle(M), b, coordinate_names(tree), divide=True)  # 3.39


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    return full_matrix(inertia_matrix(tree, transformation(tree, q), central_inertias(tree)))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the bias forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return force_vector(tree, q, v, transformation(tree, q))


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations.

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
    H = transformation(tree, q)
    M, f_v = full_matrix(inertia_matrix(tree, H, central_inertias(tree))), force_vector(tree, q, v, H)
    return accelerations(tree, M, right_hand_side(tree, q, v, tau, f_v, frames, wrench))  # 3.11
