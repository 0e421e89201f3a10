"""Newton-Euler equations with global Jacobians.

P. Schaefer and W. Schiehlen, Application of parallel computing to robot dynamics, 1992, section 2, after the program
NEWEUL of E. Kreuzer and G. Leister; equation numbers are those of the paper. Every body is cut free, its Newton-Euler
equations (3) are written in the inertial frame at its centre of mass, and d'Alembert's principle eliminates all
constraint forces at once: M = J^T Mbar J, k = J^T kbar and q = J^T qbar.

Solves: mass_matrix, bias, gravity_torque, coriolis_torque (k), forward_dynamics; reactions, see below. Any tree, with
mimic joints too. Work O(n depth^2), span O(depth). The three modules M, k and q share only S, r, J and
I, which is the basis of the paper's parallel strategies.

    S_i, r_i     rotation (A_i) and centre of body i         J_Ti, J_Ri   its Jacobians, lin and ang, by coordinate
    m_i, I_i     mass, and inertia about r_i (M_i)           w, dw, a     angular velocity; dw_i and a_i at zero ydd
    kbar_i       Coriolis and centrifugal force and moment   qbar_i       applied force and moment
    y, yd, ydd   the paper's coordinates are our q, v, a     u            the paper's control inputs are our tau

free_bodies.py has the free bodies (1), their Jacobians (2) and qbar, orthogonal_complement.py the projection.

Differences from the paper: the terms with a bar in (2) come from a recursion over the bodies instead of derivatives of
(1). Drives, springs and friction enter q as they are, since J^T of a pair of forces along an axis is the force itself.
M is factorised by ltl_factorisation.py instead of Cholesky's method, without square roots. The scanned paper has J_T
for J_R in the angular parts of (2).

Equations of reaction (7): the Newton-Euler equations (5) of all free bodies, multiplied by Qbar^T Mbar^-1, lose the
accelerations, because constraint forces do no work: Qbar^T J = 0. The remainder is linear in the constraint forces,

    N g = khat - qhat,    N = Qbar^T Mbar^-1 Qbar,    khat = Qbar^T Mbar^-1 kbar,    qhat = Qbar^T Mbar^-1 qbar,

and does not depend on the equations of motion: both can be computed in parallel. Trees of bodies with mass and inertia,
whose joints do not share coordinates. N has 6 - nv rows for a joint and is sparse: only joints on the same body are
coupled. Work O(n) if these are few, span O(depth).

    g      constraint forces, joint by joint         Qbar         their action on the bodies: on the child, and back on
                                                                  the parent (D^T of cut_joints.py)

Differences from the paper: if a joint has an armature, the rotor's force along its axis is an unknown too: the rotor is
one more body, constrained to rotate with the joint, so that 1/armature is on the diagonal of N. Drives are part of
qbar. The reaction that is returned is the sum of constraint forces, rotors' forces and drives.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical.cut_joints import (
    ConstraintRow,
    add_joint_forces,
    constraints,
    drive_forces,
    mobilities,
    multiplier_equations,
    total_joint_forces,
    world_reactions,
)
from bellcrank.dynamics.historical.free_bodies import PlacedBody, applied_forces, body_jacobians, place_bodies
from bellcrank.dynamics.historical.joint_coordinates import mass_matrix as mass_matrix  # the same product (6)
from bellcrank.dynamics.historical.orthogonal_complement import inertia_matrix, project_forces
from bellcrank.dynamics.ltl_factorisation import Rows, coordinate_names, solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, joint_elements, passive_torque, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import AT_REST, ZERO, Acceleration, Force


def coriolis(tree: Tree, bodies: Sequence[PlacedBody], v: Vector) -> list[Force]:
    """Return kbar, the force on each body at zero ydd.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    v
        Velocities, nv elements.
    """
    A: list[Acceleration] = []
    kbar = []
    for link, body in zip(tree.links, bodies, strict=True):
        step("k", link.name)
        up, origin = (A[link.parent], bodies[link.parent].r) if link.parent >= 0 else (AT_REST, ZERO)
        through = (
            Shift(body.p - origin)
            .acceleration(up)
            .through_joint(subspace_motion(body.u, joint_elements(link, v)), body.du)
        )
        A.append(Shift(body.d).acceleration(through))  # 2, w dw a
        kbar.append(body.M.newton_euler(A[-1]))  # 3
    return kbar


def coriolis_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return k, the Coriolis and centrifugal forces, without gravity.

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
    return project_forces(tree, body_jacobians(tree, bodies), coriolis(tree, bodies, v), "k")


def gravity_torque(tree: Tree, q: Vector) -> list[Scalar]:
    """Return the joint forces that balance gravity in `tree` at positions `q`: minus the part of q due to gravity."""
    bodies = place_bodies(tree, q)
    return [-x for x in project_forces(tree, body_jacobians(tree, bodies), applied_forces(tree, q, bodies), "q")]


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return k less the part of q due to gravity.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    k, g = coriolis_torque(tree, q, v), gravity_torque(tree, q)
    step("k - q")
    return [x + y for x, y in zip(k, g, strict=True)]


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
    bodies, passive = place_bodies(tree, q, v), passive_torque(tree, q, v)
    J = body_jacobians(tree, bodies)
    M = inertia_matrix(tree, J, [body.M for body in bodies])
    k = project_forces(tree, J, coriolis(tree, bodies, v), "k")
    qa = project_forces(tree, J, applied_forces(tree, q, bodies, frames, wrench), "q")
    step("q - k")
    b = [f + t + p - c for f, t, p, c in zip(qa, tau, passive, k, strict=True)]
    return solve(M, b, coordinate_names(tree))  # 6


def equations(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    bodies: Sequence[PlacedBody],
    frames: Sequence[str] = (),
    wrench: Wrenches = None,
) -> tuple[list[ConstraintRow], Rows, list[Scalar], list[Force]]:
    """Return Qbar by columns, N, khat - qhat, and the known drives.

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
    bodies
        Bodies, as `place_bodies` returns them.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    Qbar, W = constraints(tree, q, bodies)
    drive, inverse = drive_forces(tree, q, v, tau, W), mobilities(tree, bodies)
    kbar = coriolis(tree, bodies, v)
    qbar = add_joint_forces(tree, bodies, applied_forces(tree, q, bodies, frames, wrench), drive)
    free = []
    for i, link in enumerate(tree.links):
        step("qbar - kbar", link.name)
        free.append(inverse[i] @ (qbar[i] - kbar[i]))
    N, right = multiplier_equations(tree, Qbar, inverse, free, [0.0] * len(Qbar))  # 7
    return Qbar, N, right, drive


def reactions(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[list[Scalar]]:
    """Return the [force, moment] that each joint transmits to its body.

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
    bodies = place_bodies(tree, q, v)
    Qbar, N, right, drive = equations(tree, q, v, tau, bodies, frames, wrench)
    g = solve(N, right, [tree.links[row.joint].name for row in Qbar])  # 7
    return world_reactions(tree, bodies, total_joint_forces(tree, Qbar, g, drive))
