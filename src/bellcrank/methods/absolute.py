"""Absolute coordinates with Lagrange multipliers: P. E. Nikravesh, Computer-Aided Analysis of Mechanical Systems, 1988;
equation numbers are those of P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, 1989, section 2.1.

Solves: forward_dynamics, reactions. Trees of bodies with mass and inertia whose joints do not share coordinates. Work
O(n) along a chain (siblings meet in their parent: O(siblings^3) there), span O(depth).

    M_i   inertia of body i at its centre of mass           D      Jacobian: rows are the forces T that joints pass on,
    g_i   gravity, gyroscopic terms, drives, wrenches              T on the joint's body and -T on its parent
    lam   multipliers: how much of each T                   W      forces that do work, one for each coordinate
    E     zero, but for rotors                              gamma  -D' v is T.gamma (centres.py)

Eqs 3 and 4 are [M -D^T; D E] [v'; lam] = [g; T.gamma] with E = 0: v' is eliminated by M^-1, and D M^-1 D^T + E is
factorised row by row from the leaves to the root, where every pivot is positive.

Departs: the coordinates and velocities of the bodies are found from those of the joints. A joint with armature has its
W among its T, with 1/armature in E: the rotor's force is a multiplier too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.methods.centres import Passed, Placed, passed, placed, still
from bellcrank.methods.kinematics import passive_torque
from bellcrank.methods.state_space import Rows, solve
from bellcrank.methods.sweep import Vector, Wrenches, external
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_FORCE, NO_MOTION, Acceleration, Force, Motion
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import AXES, IDENTITY, ZERO


@dataclass(slots=True, eq=False)
class Row:
    """One row of D."""

    joint: int
    T: dict[int, Force]  # by body, about its centre
    E: Scalar = 0.0


def constraints(tree: Tree, q: Vector, bodies: Sequence[Placed]) -> tuple[list[Row], list[list[Force]]]:
    """D, and W of each joint about the centre of its body."""
    D: list[Row] = []
    W: list[list[Force]] = []
    for j, (link, body) in enumerate(zip(tree.links, bodies, strict=True)):
        step("D", link.name)
        working, idle = link.kind.forces(link.coordinates(q))
        W.append([body.force(w) for w in working])
        D += [Row(j, _both(tree, bodies, j, T)) for T in _common(body, idle)]
        D += [Row(j, _both(tree, bodies, j, w), 1.0 / link.armature) for w in W[j] if link.armature]
    return D, W


@dataclass(slots=True, eq=False)
class Solved:
    bodies: list[Placed]
    by: list[Passed]
    W: list[list[Force]]
    dv: list[Motion]
    passes: list[Force]  # all that a joint passes on to its body, about the body's centre


def solved(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> Solved:
    links, bodies = tree.links, placed(tree, q, v)
    by, outer, passive = passed(tree, bodies, v), external(tree, q, frames, wrench), passive_torque(tree, q, v)
    D, W = constraints(tree, q, bodies)
    inverse, drive, g = [], [], []
    for j, (link, body) in enumerate(zip(links, bodies, strict=True)):
        step("1/M", link.name)
        inverse.append((FullRotation(body.A).up_sym(link.inertia.I_centre.inverse), 1.0 / body.M.m))
        step("g", link.name)
        drive.append(_combined(W[j], [tau[k] + passive[k] for k in link.v_index]))
        gyroscopic = body.M.newton_euler(Acceleration(by[j].w, ZERO, ZERO))
        g.append(Force(ZERO, tree.gravity * body.M.m) + body.force(outer[j]) - gyroscopic)

    def freely(i: int, f: Force) -> Motion:
        """M_i^-1 f."""
        return Motion(inverse[i][0] @ f.ang, f.lin * inverse[i][1])

    def accelerations(passes: Sequence[Force]) -> list[Motion]:
        total = list(g)
        for j, f in enumerate(passes):
            step("v'", links[j].name)
            for i, felt in _both(tree, bodies, j, f).items():
                total[i] = total[i] + felt
        return [freely(i, f) for i, f in enumerate(total)]  # 4

    dv = accelerations(drive)
    b: list[Scalar] = []
    S: Rows = [{k: row.E} for k, row in enumerate(D)]
    for k, row in enumerate(D):
        step("D 1/M D^T", links[row.joint].name)
        b.append(by[row.joint].gamma.dot(row.T[row.joint]))  # 3
        for i, T in row.T.items():
            b[k] = b[k] - dv[i].dot(T)
            moved = freely(i, T)
            for l, other in enumerate(D[: k + 1]):
                if i in other.T:
                    S[k][l] = S[k].get(l, 0.0) + moved.dot(other.T[i])
    lam = solve(S, b, [links[row.joint].name for row in D])
    passes = list(drive)
    for x, row in zip(lam, D, strict=True):
        step("D^T lam", links[row.joint].name)
        passes[row.joint] = passes[row.joint] + row.T[row.joint] * x
    return Solved(bodies, by, W, accelerations(passes), passes)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """v' of the bodies, as the joints see it."""
    s = solved(tree, q, v, tau, frames, wrench)
    a: list[Scalar] = [0.0] * tree.nv
    for j, link in enumerate(tree.links):
        step("a", link.name)
        carried = s.by[j].G.motion(s.dv[link.parent] if link.parent >= 0 else NO_MOTION) + s.by[j].gamma
        for w, k in zip(s.W[j], link.v_index, strict=True):
            a[k] = (s.dv[j] + carried * -1.0).dot(w)
    return a


def reactions(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[list[Scalar]]:
    """[force, moment] that each joint passes from its parent's side to its body, drives and rotors included: world
    axes, moment about the origin of the body's own frame.
    """
    s = solved(tree, q, v, tau, frames, wrench)
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    out = []
    for link, body, f in zip(tree.links, s.bodies, s.passes, strict=True):
        step("reaction", link.name)
        origin = body.p + body.A @ tree.frames[link.name][2]
        out.append([*(R @ f.lin), *(R @ (f.ang + (body.r - origin).cross(f.lin)))])
    return out


def _both(tree: Tree, bodies: Sequence[Placed], j: int, f: Force) -> dict[int, Force]:
    """A force of joint j as its two bodies feel it."""
    i = tree.links[j].parent
    return {j: f} if i < 0 else {j: f, i: NO_FORCE - Shift(bodies[j].r - bodies[i].r).force(f)}


def _common(body: Placed, idle: Sequence[Force]) -> list[Force]:
    """T about the body's centre. Where three forces (or moments) span them all, they are taken along the common axes,
    as in r_1 + s_1 - r_4 - s_4 = 0: then they have zeros.
    """
    forces = [T for T in idle if still(T.ang)]
    moments = [T for T in idle if still(T.lin)]
    out = [Force(-(body.d.cross(e)), e) for e in AXES] if len(forces) == 3 else [body.force(T) for T in forces]
    out += [Force(e, ZERO) for e in AXES] if len(moments) == 3 else [body.force(T) for T in moments]
    return out + [body.force(T) for T in idle if T not in forces and T not in moments]


def _combined(forces: Sequence[Force], amounts: Vector) -> Force:
    total = NO_FORCE
    for f, x in zip(forces, amounts, strict=True):
        total = total + f * x
    return total
