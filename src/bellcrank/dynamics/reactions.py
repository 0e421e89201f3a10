"""Joint reactions by one more Newton-Euler sweep: with the accelerations known, the recursion of rnea.py passes through
every joint all that its body and what it carries need. In the terms of Schaefer and Schiehlen 1992, section 3, this is
the way that waits for the equations of motion; reaction_equations.py is the one that does not.

Solves: reactions. Any tree, coupled joints too. Work O(n), or that of crba where joints are coupled; span O(depth).

    a     accelerations, by aba (crba where joints are coupled)
    f_i   force and moment that joint i passes on, about its internal frame F and in its axes
    p     where the user's body frame stands in F

A reaction is the whole of what passes: constraint forces, and along the free axes tau + passive - armature a. The rotor
that an armature stands for turns with the joint's coordinate and not with a body, so its inertia is no load on the
bearings.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.rnea import joint_forces
from bellcrank.dynamics.sweep import Vector, Wrenches, poses
from bellcrank.model.tree import Tree, regrouped
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import Force


def passed_on(tree: Tree, q: Vector, f: Sequence[Force]) -> list[list[Scalar]]:
    """[force, moment] on each body in world axes, the moment about the origin of the user's body frame."""
    rows: list[list[Scalar]] = []
    for link, (R_WF, _), x in zip(tree.links, poses(tree, q), f, strict=True):
        step("reaction", link.name)
        _, _, p = tree.frames[link.name]
        rows.append([*(R_WF @ x.lin), *(R_WF @ (x.ang - p.cross(x.lin)))])
    return rows


def reactions(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[list[Scalar]]:
    by = crba if tree.coupled else aba
    a = by.forward_dynamics(regrouped(tree), q, v, tau, frames, wrench)  # the joints do not feel where the mass is
    return passed_on(tree, q, joint_forces(tree, q, v, a, frames, wrench))
