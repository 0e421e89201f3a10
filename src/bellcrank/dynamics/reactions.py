"""Joint reactions by one more Newton-Euler sweep.

With the accelerations known, the recursion of rnea.py gives the total force through every joint, as its subtree needs
it. In the terms of Schaefer and Schiehlen 1992, section 3, this variant depends on the equations of motion;
newton_euler_symbolic.py has the one that does not.

Solves: reactions. Any tree, with mimic joints too. Work O(n), or that of crba with mimic joints; span O(depth).

    a     accelerations, by aba (crba with mimic joints)
    f_i   force and moment that joint i transmits, about its internal frame F and in its axes
    p     origin of the user's body frame in F

A reaction is the total force through a joint: constraint forces, and along the free axes tau + passive - armature a.
The rotor that an armature represents rotates with the joint's coordinate and not with a body, so its inertia does not
load the bearings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.aba import body_acceleration
from bellcrank.dynamics.rnea import body_force, joint_forces
from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    Vector,
    Wrenches,
    accumulate_subtree,
    orientation,
    poses,
    wrench_force,
)
from bellcrank.model.tree import Tree, regrouped
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def body_reactions(tree: Tree, q: Vector, f: Sequence[Force]) -> list[list[Scalar]]:
    """Return [force, moment] on each body in world axes, the moment about the origin of the user's body frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    f
        Force through each joint, about its frame F.
    """
    rows: list[list[Scalar]] = []
    for link, (R_WF, _), x in zip(tree.links, poses(tree, q), f, strict=True):
        step("reaction", link.name)
        _, _, p = tree.frames[link.name]
        rows.append([*(R_WF @ x.lin), *(R_WF @ (x.ang - p.cross(x.lin)))])
    return rows


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
    method = crba if tree.coupled else aba
    a = method.forward_dynamics(regrouped(tree), q, v, tau, frames, wrench)  # accelerations do not change by regrouping
    return body_reactions(tree, q, joint_forces(tree, q, v, a, frames, wrench))


# -- the work of one body


def body_reaction(body: Body) -> BodyRecursion:
    """Return force and moment in the joint of the `body`."""
    R = yield from orientation(body)
    body = replace(body, external=wrench_force(body, R))
    found = yield from body_acceleration(body)
    (f,) = yield from accumulate_subtree(body, body.X.force, f=body_force(body, found.own, found.A)[0])
    step("reaction", body.link.name)
    (p,) = body.seen.points
    return [*(R @ f.lin), *(R @ (f.ang - p.cross(f.lin)))]
