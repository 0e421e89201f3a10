"""Natural orthogonal complement with factored body inertias.

J. Angeles and O. Ma, Dynamic simulation of n-axis serial robotic manipulators using a natural orthogonal complement,
Int. J. Robotics Research 7 (5), 1988; the force vector from J. Angeles, O. Ma and A. Rojas, An algorithm for the
inverse dynamics of n-axis general manipulators using Kane's equations, Computers Math. Applic. 17 (12), 1989. Equation
numbers are those of Wong 1991, sections 3.1 and 3.3.

Solves: mass_matrix, bias, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    T     the complement: twists of the bodies by unit joint rates; Wong's matrix H is the same
    Jbar  factor of a body's central inertia, J = Jbar^T Jbar; mbar likewise of its mass
    P     diag(Jbar, mbar) T, so that M = P^T P

Differences from the paper: trees and all joints, as in Wong. Jbar is lower triangular, so that an axis along z gives a
single number; bodies may be thin or points.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.ness import transformation
from bellcrank.dynamics.historical.orthogonal_complement import momentum_rates, project_inertia
from bellcrank.dynamics.ltl_factorisation import Rows, accelerations, full_matrix
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, generalised_forces
from bellcrank.model.tree import Tree
from bellcrank.parameters import nominal
from bellcrank.scalar import Scalar, sqrt, step
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import ZERO, Force, Mat, Motion, SymMat, vec

NEGLIGIBLE_MOMENT_RATIO = 1e-14  # central moments below this fraction of the moments about the joint are rounding
SMALL_PIVOT_RATIO = 1e-4  # fraction of the largest pivot below which another row comes first


def inertia_factor(I: SymMat, J: SymMat) -> Mat:
    """Return Jbar, row by row.

    The z row comes first, unless the body is so thin that J.zz is little more than rounding.

    Parameters
    ----------
    I
        Inertia about the joint.
    J
        Central inertia.
    """
    remainder = [list(row) for row in J.rows]
    rows = [ZERO] * 3
    for row in (2, 1, 0):
        # Any order is correct; free inertias are full (method_table.py).
        diagonal = [nominal(remainder[k][k]) for k in range(3)]
        if max(diagonal) <= NEGLIGIBLE_MOMENT_RATIO * nominal(I.xx + I.yy + I.zz):
            break  # a rod or a point
        pivot = max(k for k in range(3) if diagonal[k] >= SMALL_PIVOT_RATIO * max(diagonal))
        root = sqrt(remainder[pivot][pivot])
        r = [x / root for x in remainder[pivot]]
        rows[row] = vec(r)
        remainder = [[0.0 if pivot in (i, j) else remainder[i][j] - r[i] * r[j] for j in range(3)] for i in range(3)]
    return Mat(*rows)


def inertia_matrix(tree: Tree, q: Vector) -> Rows:
    """Return the lower triangle of the mass matrix of `tree` at positions `q`."""
    P = []
    for link, twists in zip(tree.links, transformation(tree, q), strict=True):
        step("P", link.name)
        Jbar, mbar = inertia_factor(link.inertia.I, link.inertia.I_centre), sqrt(link.inertia.m)
        P.append({k: Motion(Jbar @ t.ang, t.lin * mbar) for k, t in twists.items()})
    return project_inertia(tree, P, [{k: Force(p.ang, p.lin) for k, p in row.items()} for row in P])


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    return full_matrix(inertia_matrix(tree, q))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the bias forces in O(n): moments about the joints are accumulated along the path instead of projected.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    forces = []
    for link, rate in zip(tree.links, momentum_rates(tree, q, v), strict=True):  # 3.27-3.31
        step("f", link.name)
        forces.append(Shift(link.inertia.centre).force(rate))
    return generalised_forces(tree, q, forces)  # 3.33


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
    return accelerations(tree, q, v, tau, mass_matrix(tree, q), bias(tree, q, v), frames, wrench)
