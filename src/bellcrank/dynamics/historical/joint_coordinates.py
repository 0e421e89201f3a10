"""Joint-coordinate formulation: projection with the velocity transformation B.

P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, Systematic generation of multibody equations of motion suitable for
recursive and parallel manipulation, 1989, sections 2.2 and 3. B is assembled from joint blocks after S. S. Kim and
M. J. Vanderploeg, 1986.

Solves: mass_matrix, bias, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    B_ik  block of body i and coordinate k: [-d~ u; u]     theta'   joint velocities (our v)
    v_i   [r', w] of body i, absolute                      M_i      its inertia, in common axes (free_bodies.py)
    Mbar  B^T M B, lower triangle by rows                  f        B^T (g - M B' theta')

Differences from the paper: our v of a ball or a floating joint is in the body's axes; the paper's, in common axes, is
used where only the accelerations are wanted (free_bodies.py). The columns of one joint are summed before B' theta' is
formed; -f is called bias, and the gyroscopic terms of g are part of Newton's and Euler's M v' there; the factorisation
is L^T D L along the tree (ltl_factorisation.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.free_bodies import (
    PlacedBody,
    body_jacobians,
    from_common,
    joint_to_centre,
    place_bodies,
    to_common,
)
from bellcrank.dynamics.historical.orthogonal_complement import Columns, inertia_matrix, project_forces
from bellcrank.dynamics.ltl_factorisation import coordinate_names, full_matrix, solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, joint_elements, right_hand_side, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Motion


def body_velocities(tree: Tree, B: Sequence[Columns], theta: Vector) -> list[Motion]:
    """Return the velocity B theta' of every body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    B
        Rows of B, one for each body.
    theta
        Joint velocities.
    """
    V = []
    for link, Bi in zip(tree.links, B, strict=True):
        step("v", link.name)
        V.append(subspace_motion(list(Bi.values()), [theta[k] for k in Bi]))  # 5
    return V


def bias_from_velocities(
    tree: Tree, bodies: Sequence[PlacedBody], B: Sequence[Columns], V: Sequence[Motion], theta: Vector
) -> list[Scalar]:
    """Return -f, the paper's B^T (M B' theta' - g), which is the bias.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    B
        Rows of B, one for each body.
    V
        Velocity of each body.
    theta
        Joint velocities.
    """
    u, du, p = [], [], []  # for each joint: u theta', its rate, and the velocity of the joint's origin
    for link, body, Vj in zip(tree.links, bodies, V, strict=True):
        step("u'", link.name)
        uj, w = subspace_motion(body.u, joint_elements(link, theta)), Vj.ang
        u.append(uj)
        du.append(NO_MOTION if body.fixed else Motion(w.cross(uj.ang), w.cross(uj.lin)) + body.du)
        p.append(Vj.lin - w.cross(body.d))
    F = []
    for i, link in enumerate(tree.links):
        step("B' theta'", link.name)
        a = NO_MOTION
        for j in reversed(tree.path(i)):
            turned = u[j].ang.cross(V[i].lin - p[j])
            a = a + joint_to_centre(bodies[j], bodies[i]).motion(du[j]) + Motion(ZERO, turned)
        step("f", link.name)
        F.append(bodies[i].M.newton_euler(Acceleration(V[i].ang, a.ang, a.lin - tree.gravity)))
    return project_forces(tree, B, F)  # 10


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    bodies = place_bodies(tree, q)
    return full_matrix(inertia_matrix(tree, body_jacobians(tree, bodies), [body.M for body in bodies]))  # 9


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
    bodies = place_bodies(tree, q, v)
    B = body_jacobians(tree, bodies)  # 5
    return bias_from_velocities(tree, bodies, B, body_velocities(tree, B, v), v)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the solution theta'' of Mbar theta'' = f.

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
    bodies = place_bodies(tree, q, v, common=True)
    B, theta = body_jacobians(tree, bodies), to_common(tree, bodies, v)
    V = body_velocities(tree, B, theta)
    pushed = to_common(tree, bodies, right_hand_side(tree, q, v, tau, [0.0] * tree.nv, frames, wrench))
    f = [t - h for t, h in zip(pushed, bias_from_velocities(tree, bodies, B, V, theta), strict=True)]
    a = solve(inertia_matrix(tree, B, [body.M for body in bodies]), f, coordinate_names(tree))  # 8
    return from_common(tree, bodies, [Vj.ang for Vj in V], theta, a)
