"""The equations of reaction: P. Schaefer and W. Schiehlen, Application of parallel computing to robot dynamics, 1992,
section 2, equation (7). The Newton-Euler equations (5) of all free bodies, multiplied by Qbar^T Mbar^-1, lose the
accelerations, because no constraint force does work: Qbar^T J = 0. What is left is linear in the constraint forces,

    N g = khat - qhat,    N = Qbar^T Mbar^-1 Qbar,    khat = Qbar^T Mbar^-1 kbar,    qhat = Qbar^T Mbar^-1 qbar,

and does not wait for the equations of motion: the two can be computed side by side.

Solves: reactions. Trees of bodies with mass and inertia, whose joints do not share coordinates. N has 6 - nv rows for a
joint and is sparse: only joints on the same body meet. Work O(n) where few do, span O(depth).

    g      constraint forces, joint by joint        Qbar      how each acts on the bodies: on the child, and back on
    Qb     one column of Qbar, by body                         the parent
    kbar, qbar, S_i, r_i, m_i, I_i   as in newton_euler_symbolic.py

Departs: where a joint has an armature the force along its axis is an unknown of its own. The rotor is one more body,
armature ydd = tau + passive - g, and the constraint is that it turns with the joint: 1/armature more on the diagonal of
N, (tau + passive)/armature on the right. The reaction that is returned is the sum of constraint forces and drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.methods.kinematics import passive_torque
from bellcrank.methods.newton_euler_symbolic import Free, applied, coriolis, cut_free
from bellcrank.methods.reactions import passed_on
from bellcrank.methods.state_space import Rows, solve
from bellcrank.methods.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_FORCE, Force, Motion
from bellcrank.spatial.moves import FullRotation

Column = dict[int, Force]  # force and moment at the centre of mass of each body that feels it


# Of a body's moments of inertia, smallest against largest: below this it is a rod or a point, and cannot be turned.


def distribution(tree: Tree, bodies: Sequence[Free], i: int, f: Force) -> Column:
    """A column of Qbar: f about joint i's frame and in its axes, on the child and back on the parent."""
    link, body = tree.links[i], bodies[i]
    lin, ang = body.S @ f.lin, body.S @ f.ang
    column = {i: Force(ang - body.c.cross(lin), lin)}
    if link.parent >= 0:
        column[link.parent] = Force((bodies[link.parent].r - body.p).cross(lin) - ang, -lin)
    return column


@dataclass(frozen=True, slots=True)
class Held:
    """An unknown of (7)."""

    joint: int
    f: Force  # what one unit of it is, about the joint's frame and in its axes
    Qb: Column
    softness: Scalar = 0.0  # 1/armature
    drive: Scalar = 0.0  # what the rotor of that armature is driven with


def equations(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> tuple[list[Held], Rows, list[Scalar], list[Force]]:
    """The unknowns g, N, khat - qhat, and the drives that are known."""
    bodies, passive = cut_free(tree, q), passive_torque(tree, q, v)
    kbar, qbar = coriolis(tree, bodies, q, v), applied(tree, bodies, q, frames, wrench)
    held: list[Held] = []
    driven = [NO_FORCE] * len(bodies)
    for i, link in enumerate(tree.links):
        step("Qbar", link.name)
        W, T = link.kind.forces(link.coordinates(q))
        for f, k in zip(W, link.v_index, strict=True):
            drive = tau[k] + passive[k]
            if link.armature:
                held.append(Held(i, f, distribution(tree, bodies, i, f), 1.0 / link.armature, drive))
                continue
            driven[i] = driven[i] + f * drive
            for at, x in distribution(tree, bodies, i, f * drive).items():
                qbar[at] = qbar[at] + x
        held += [Held(i, f, distribution(tree, bodies, i, f)) for f in T]

    inverse = []
    for link, body in zip(tree.links, bodies, strict=True):
        step("Mbar^-1", link.name)
        inverse.append((FullRotation(body.S).up_sym(link.inertia.I_centre.inverse), 1.0 / body.m))
    N: Rows = [{} for _ in held]
    right: list[Scalar] = []
    for row, one in enumerate(held):
        step("N", tree.links[one.joint].name)
        moved = {i: Motion(inverse[i][0] @ f.ang, f.lin * inverse[i][1]) for i, f in one.Qb.items()}  # Mbar^-1 Qb
        for column, other in enumerate(held[: row + 1]):
            for i in [i for i in moved if i in other.Qb]:
                N[row][column] = N[row].get(column, 0.0) + moved[i].dot(other.Qb[i])  # 7, N
        N[row][row] = N[row][row] + one.softness
        step("khat - qhat", tree.links[one.joint].name)
        right.append(one.drive * one.softness)
        for i, alone in moved.items():
            right[row] = right[row] + alone.dot(kbar[i] - qbar[i])  # 7, khat - qhat
    return held, N, right, driven


def reactions(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[list[Scalar]]:
    held, N, right, f = equations(tree, q, v, tau, frames, wrench)
    g = solve(N, right, [tree.links[one.joint].name for one in held])  # 7
    for one, x in zip(held, g, strict=True):
        step("g", tree.links[one.joint].name)
        f[one.joint] = f[one.joint] + one.f * x
    return passed_on(tree, q, f)
