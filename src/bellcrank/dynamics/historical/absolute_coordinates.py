"""Forward dynamics in absolute coordinates with Lagrange multipliers.

P. E. Nikravesh, Computer-Aided Analysis of Mechanical Systems, 1988; equation numbers are those of P. E. Nikravesh,
G. Gim, A. Arabyan and U. Rein, 1989, section 2.1.

Solves: forward_dynamics, reactions, multipliers. Trees of bodies with mass and inertia whose joints do not share
coordinates. Work O(n) along a chain (siblings meet in their parent: O(siblings^3) there), span O(depth). Digits are
lost as the ratio of neighbouring masses and moments grows.

    M_i   inertia of body i at its centre of mass          D      Jacobian: rows are the forces T, see cut_joints.py
    g_i   gravity, gyroscopic terms, wrenches              W      forces that do work, one for each coordinate
    lam   multipliers of the forces T                      gamma  -D' v is T.gamma (free_bodies.py)
    E     zero, but for rotors

Eqs 3 and 4 are [M -D^T; D E] [v'; lam] = [g; T.gamma] with E = 0: v' is eliminated by M^-1, and D M^-1 D^T + E is
factorised row by row from the leaves to the root, where every pivot is positive.

Differences from the paper: the coordinates and velocities of the bodies are computed from those of the joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.historical.cut_joints import (  # fmt: skip
    add_joint_forces,
    constraints,
    drive_forces,
    mobilities,
    multiplier_equations,
    total_joint_forces,
    world_reactions,
)
from bellcrank.dynamics.historical.free_bodies import (
    PlacedBody,
    VelocityPropagation,
    applied_forces,
    place_bodies,
    propagate_velocities,
)
from bellcrank.dynamics.ltl_factorisation import solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Force, Motion


@dataclass(slots=True, eq=False)
class AbsoluteSolution:
    """Solution of the equations of motion: accelerations of the bodies, multipliers and joint forces."""

    bodies: list[PlacedBody]
    propagation: list[VelocityPropagation]
    W: list[list[Force]]
    dv: list[Motion]
    lam: list[Scalar]
    joint_forces: list[Force]  # total force that a joint transmits to its body, about the body's centre


def solve_motion(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> AbsoluteSolution:
    """Solve the equations of motion in absolute coordinates.

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
    propagation, inverse = propagate_velocities(tree, bodies, v), mobilities(tree, bodies)
    g = applied_forces(tree, q, bodies, frames, wrench)
    for j, link in enumerate(tree.links):
        step("g", link.name)
        g[j] = g[j] - bodies[j].M.newton_euler(Acceleration(propagation[j].w, ZERO, ZERO))

    def accelerations(passes: Sequence[Force]) -> list[Motion]:
        return [inverse[i] @ f for i, f in enumerate(add_joint_forces(tree, bodies, g, passes))]  # 4

    D, W = constraints(tree, q, bodies)
    drive = drive_forces(tree, q, v, tau, W)
    rate = [propagation[row.joint].gamma.dot(row.T[row.joint]) for row in D]  # 3
    S, b = multiplier_equations(tree, D, inverse, accelerations(drive), rate)
    lam = solve(S, b, [tree.links[row.joint].name for row in D])
    passes = total_joint_forces(tree, D, lam, drive)
    return AbsoluteSolution(bodies, propagation, W, accelerations(passes), lam, passes)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the joint accelerations, from the accelerations v' of the bodies.

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
    s = solve_motion(tree, q, v, tau, frames, wrench)
    a: list[Scalar] = [0.0] * tree.nv
    for j, link in enumerate(tree.links):
        step("a", link.name)
        up = s.dv[link.parent] if link.parent >= 0 else NO_MOTION
        carried = s.propagation[j].G.motion(up) + s.propagation[j].gamma
        for w, k in zip(s.W[j], link.v_index, strict=True):
            a[k] = (s.dv[j] - carried).dot(w)
    return a


def multipliers(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return lam, row by row of D: the constraints of each joint, and one for each axis that has a rotor.

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
    return solve_motion(tree, q, v, tau, frames, wrench).lam


def reactions(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[list[Scalar]]:
    """Return the [force, moment] that each joint transmits from its parent to its body, drives and rotors included.

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
    s = solve_motion(tree, q, v, tau, frames, wrench)
    return world_reactions(tree, s.bodies, s.joint_forces)
