"""Forward dynamics in absolute coordinates with Lagrange multipliers.

P. E. Nikravesh, Computer-Aided Analysis of Mechanical Systems, 1988; equation numbers are those of P. E. Nikravesh,
G. Gim, A. Arabyan and U. Rein, 1989, section 2.1.

Solves: forward_dynamics, reactions, multipliers. Trees of bodies with mass and inertia and without mimic joints; bodies
may be flexible (section 6, deformable_bodies.py). Work O(n) along a chain (siblings meet in their parent: O(siblings^3)
there), span O(depth). Digits are lost as the ratio of neighbouring masses and moments grows.

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

from bellcrank.dynamics.flexible_layer import rigid_snapshot
from bellcrank.dynamics.historical.cut_joints import (  # fmt: skip
    ConstraintRow,
    add_joint_forces,
    constraints,
    drive_forces,
    multiplier_equations,
    on_both_bodies,
    total_joint_forces,
    world_reactions,
)
from bellcrank.dynamics.historical.deformable_bodies import (
    DeformableBody,
    DeformingForce,
    DeformingMotion,
    PlacedTree,
    deformable_bodies,
    is_node,
    modal_loads,
)
from bellcrank.dynamics.historical.free_bodies import applied_forces, place_bodies, propagate_velocities
from bellcrank.dynamics.ltl_factorisation import solve
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, passive_torque
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, Acceleration, Force, Motion, weighted_sum


@dataclass(slots=True, eq=False)
class FreeBodies:
    """Bodies without their joints: loads, mobilities, and what velocities contribute to their accelerations."""

    placed: PlacedTree
    deformable: list[DeformableBody]  # of each link, then of the ground
    gamma: list[Motion]  # acceleration of each link due to velocities, beyond that of its body
    g: list[Force]
    modes: dict[int, Scalar]  # force on each mode

    @property
    def each(self) -> dict[int, DeformableBody]:
        """Bodies by their roots; the ground only if modes move its nodes."""
        return {body.root: body for body in self.deformable if body.root >= 0 or body.flexible}


@dataclass(slots=True, eq=False)
class AbsoluteSolution:
    """Solution of the equations of motion: accelerations of the bodies, multipliers and joint forces."""

    free: FreeBodies
    W: list[list[Force]]
    moved: dict[int, DeformingMotion]  # by root
    lam: list[Scalar]
    joint_forces: list[Force]  # total force that a joint transmits to its body, about the body's centre

    @property
    def dv(self) -> list[Motion]:
        """Accelerations of the links, at their centres."""
        each = self.free.deformable[:-1]
        return [body.acceleration(j, self.moved[body.root]) for j, body in enumerate(each)]


def free_bodies(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> FreeBodies:
    """Return the bodies without their joints.

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
    rigid = rigid_snapshot(tree, q)
    bodies = place_bodies(rigid, q, v)
    placed = PlacedTree(rigid, bodies, propagate_velocities(rigid, bodies, v))
    deformable = deformable_bodies(placed, tree.flexible)
    gamma = [body.gamma.get(j, NO_MOTION) for j, body in enumerate(deformable)]
    g = applied_forces(rigid, q, bodies, frames, wrench)
    for j, link in enumerate(tree.links):
        step("g", link.name)
        g[j] = g[j] - bodies[j].M.newton_euler(Acceleration(placed.propagation[j].w, gamma[j].ang, gamma[j].lin))
    passive, on_modes = passive_torque(tree, q, v) if tree.flexible else [], dict[int, Scalar]()
    for flexible in tree.flexible:
        force, needed = modal_loads(placed, flexible, gamma[flexible.link], q, v)
        if flexible.link >= 0:
            g[flexible.link] = g[flexible.link] - force
        on_modes |= {k: tau[k] + passive[k] - x for k, x in zip(flexible.v_index, needed, strict=True)}
    return FreeBodies(placed, deformable, gamma, g, on_modes)


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
    free = free_bodies(tree, q, v, tau, frames, wrench)
    bodies = free.placed.bodies
    inverse = {root: body.mobility(free.placed, q) for root, body in free.each.items()}

    def accelerations(passes: Sequence[Force]) -> dict[int, DeformingMotion]:
        f, moved = add_joint_forces(tree, bodies, free.g, passes), {}
        for root, body in free.each.items():
            on_modes = DeformingForce(NO_FORCE, {k: free.modes[k] for k in body.modes})
            moved[root] = inverse[root] @ (body.gather({j: f[j] for j in body.links}) + on_modes)  # 4
        return moved

    D, W = constraints(tree, q, bodies)
    drive = drive_forces(tree, q, v, tau, W)
    rates = [_rate(free, row) for row in D]  # 3
    rows = [_on_deformable_bodies(free, row) for row in D]
    S, b = multiplier_equations(tree, rows, inverse, accelerations(drive), rates)
    lam = solve(S, b, [tree.links[row.joint].name for row in D])
    passes = total_joint_forces(tree, D, lam, drive)
    return AbsoluteSolution(free, W, accelerations(passes), lam, passes)


def _rate(free: FreeBodies, row: ConstraintRow) -> Scalar:
    """Return -D' v: T.gamma of the joint, less that of its two links beyond their bodies."""
    rate = free.placed.propagation[row.joint].gamma.dot(row.T[row.joint])
    for j, T in row.T.items():
        if j in free.deformable[j].gamma:
            rate = rate - free.gamma[j].dot(T)
    return rate


def _on_deformable_bodies(free: FreeBodies, row: ConstraintRow) -> ConstraintRow:
    """Return the `row` with the forces T on the deformable bodies of its links."""
    return ConstraintRow(
        row.joint, {free.deformable[j].root: free.deformable[j].gather({j: T}) for j, T in row.T.items()}, row.E
    )


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
    dv, a = s.dv, dict[int, Scalar]()
    for moved in s.moved.values():
        a |= moved.modes
    for j, link in enumerate(tree.links):
        step("a", link.name)
        by, up = s.free.placed.propagation[j], dv[link.parent] if link.parent >= 0 else NO_MOTION
        carried = by.G.motion(up) + by.gamma
        a |= {k: (dv[j] - carried).dot(w) for w, k in zip(s.W[j], link.v_index, strict=False)}  # nodes have no W
    return [a[k] for k in range(tree.nv)]


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
    return world_reactions(tree, s.free.placed.bodies, _forces_at_nodes(tree, q, s))


def _forces_at_nodes(tree: Tree, q: Vector, s: AbsoluteSolution) -> list[Force]:
    """Return the joint forces, with those that flexible bodies transmit to their nodes: what each node needs."""
    passes, dv, bodies = list(s.joint_forces), s.dv, s.free.placed.bodies
    for j in reversed([j for j in range(len(tree.links)) if is_node(tree, j)]):
        step("f", tree.links[j].name)
        needed = bodies[j].M @ (dv[j] - s.free.gamma[j]) - s.free.g[j]
        for body in (body for body in tree.flexible if body.link == j):
            ddn = s.moved[s.free.deformable[j].root].modes
            felt = weighted_sum(body.modal_momentum(q), (ddn[k] for k in body.v_index), NO_FORCE)
            needed = needed + bodies[j].force(felt)
        for child in (c for c, link in enumerate(tree.links) if link.parent == j):
            needed = needed - on_both_bodies(tree, bodies, child, passes[child])[j]
        passes[j] = needed
    return passes
