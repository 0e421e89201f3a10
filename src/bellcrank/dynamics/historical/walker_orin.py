"""Composite-rigid-body algorithm by mass, centre and central inertia.

M. W. Walker and D. E. Orin, Efficient dynamic computer simulation of robotic mechanisms, J. Dyn. Sys. Meas. Control
104, 1982, method 3; equation numbers are those of Wong 1991, section 2.2.1. crba.py is the same with inertias about the
joint.

Solves: mass_matrix, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    M_j, c_j, J_j  mass, centre and central inertia of body j and its subtree         r, r*  its parts' centres from c_j
    F, N           force and moment about c_j that a unit acceleration of a joint needs

Differences from the paper: body coordinates, with frames on the joints, so that -d is the shift to the next frame and c
= -k. In print d_j has one sign in 2.2 and 2.5 and the other in 2.8 and 2.11; here it is that of 2.5 everywhere. Joints
may have several axes and bodies several branches: one is added after the other. M = L^T D L instead of Cholesky's
factors: no square roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.ltl_factorisation import Rows, TreeMatrix, axis_columns, coordinate_names, full_matrix, solve
from bellcrank.dynamics.rnea import net_forces
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.inertia import about_centre
from bellcrank.spatial.moves import Rotation, Shift, Transform
from bellcrank.spatial.vector import SYM_ZERO, Force, Motion, SymMat, Vec


@dataclass(slots=True, eq=False)
class Composite:
    """Composite body: mass, centre of mass and central inertia."""

    M: Scalar
    c: Vec
    J: SymMat

    def __matmul__(self, s: Motion) -> Force:
        """Return the force about the frame's origin that the unit acceleration `s` needs."""
        F = (s.lin + s.ang.cross(self.c)) * self.M  # 2.10
        N = self.J @ s.ang  # 2.10
        return Force(N + self.c.cross(F), F)  # 2.11


def parallel_axis_term(m: Scalar, r: Vec) -> SymMat:
    """Return m (r.r 1 - r r^T), the parallel-axis term of a mass `m` whose centre is at distance `r`."""
    return about_centre(m, r, SYM_ZERO).I


def join_composites(one: Composite, other: Composite) -> Composite:
    """Return the composite of the bodies `one` and `other`."""
    M = other.M + one.M  # 2.4
    if is_zero(one.M) or is_zero(other.M):
        c = other.c if is_zero(one.M) else one.c
        return Composite(M, c, other.J + one.J)
    c = other.c * (other.M / M) + one.c * (one.M / M)  # 2.5
    r = other.c - c  # 2.8
    r_star = one.c - c  # 2.9
    b = parallel_axis_term(other.M, r) + one.J + parallel_axis_term(one.M, r_star)  # 2.7
    return Composite(M, c, other.J + b)  # 2.6


def composite_in_parent(X: Transform, b: Composite) -> Composite:
    """Express the composite body `b` in the parent's frame, from which `X` leads to the body's."""
    for move in reversed(X.moves):
        if isinstance(move, Shift):
            b = Composite(b.M, b.c + move.r, b.J)
        elif isinstance(move, Rotation):
            b = Composite(b.M, move.up(b.c), move.up_sym(b.J))
    return b


def mass_matrix_triangle(tree: Tree, q: Vector) -> Rows:
    """Return the lower triangle of the mass matrix of `tree` at positions `q`."""
    links = tree.links
    S, M = axis_columns(tree, q), TreeMatrix(tree)
    bodies = [Composite(link.inertia.m, link.inertia.centre, link.inertia.I_centre) for link in links]

    def moved(i: int, F: Force) -> Force:
        return links[i].transform(q).force(F)  # 2.11

    for j, link in reversed(list(enumerate(links))):
        for s in S[j]:
            step("F", link.name)
            M.carry_to_ground(s, S, bodies[j] @ s.Z, moved)  # 2.12
        if link.parent >= 0:
            step("J", links[link.parent].name)
            added = composite_in_parent(link.transform(q), bodies[j])
            bodies[link.parent] = join_composites(bodies[link.parent], added)
    return M.lower_triangle()


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    return full_matrix(mass_matrix_triangle(tree, q))


def accelerations(tree: Tree, q: Vector, Q: Vector) -> list[Scalar]:
    """Return M^-1 Q.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    Q
        Generalised forces, nv elements.
    """
    return solve(mass_matrix_triangle(tree, q), Q, coordinate_names(tree))


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
    return accelerations(tree, q, net_forces(tree, q, v, tau, frames, wrench))  # 2.1-2.3
