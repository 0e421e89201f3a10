"""Equations of reaction: constraint forces without the equations of motion.

P. Schaefer and W. Schiehlen, Application of parallel computing to robot dynamics, 1992, section 2, equation (7). The
Newton-Euler equations (5) of all free bodies, multiplied by Qbar^T Mbar^-1, lose the accelerations, because constraint
forces do no work: Qbar^T J = 0. The remainder is linear in the constraint forces,

    N g = khat - qhat,    N = Qbar^T Mbar^-1 Qbar,    khat = Qbar^T Mbar^-1 kbar,    qhat = Qbar^T Mbar^-1 qbar,

and does not depend on the equations of motion: both can be computed in parallel.

Solves: reactions. Trees of bodies with mass and inertia, whose joints do not share coordinates. N has 6 - nv rows for a
joint and is sparse: only joints on the same body are coupled. Work O(n) if these are few, span O(depth).

    g      constraint forces, joint by joint        Qbar      their action on the bodies: on the child, and back on
    kbar, qbar, S_i, r_i, m_i, I_i                            the parent (D^T of cut_joints.py)
           as in newton_euler_symbolic.py

Differences from the paper: if a joint has an armature, the rotor's force along its axis is an unknown too: the rotor is
one more body, constrained to rotate with the joint, so that 1/armature is on the diagonal of N. Drives are part of
qbar. The reaction that is returned is the sum of constraint forces, rotors' forces and drives.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.historical import cut_joints
from bellcrank.dynamics.historical.cut_joints import (
    ConstraintRow,
    add_joint_forces,
    constraints,
    drive_forces,
    mobilities,
    total_joint_forces,
    world_reactions,
)
from bellcrank.dynamics.historical.free_bodies import PlacedBody, applied_forces, place_bodies
from bellcrank.dynamics.historical.newton_euler_symbolic import coriolis
from bellcrank.dynamics.ltl_factorisation import Rows, solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


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
    kbar, qbar = (
        coriolis(tree, bodies, v),
        add_joint_forces(tree, bodies, applied_forces(tree, q, bodies, frames, wrench), drive),
    )
    free = []
    for i, link in enumerate(tree.links):
        step("qbar - kbar", link.name)
        free.append(inverse[i] @ (qbar[i] - kbar[i]))
    N, right = cut_joints.multiplier_equations(tree, Qbar, inverse, free, [0.0] * len(Qbar))  # 7
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
