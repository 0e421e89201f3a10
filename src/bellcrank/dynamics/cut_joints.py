"""What the methods share that cut the joints open: the forces that joints pass on as unknowns, one equation for each
(nikravesh1989, equations 3 and 4; schaefer1992, equation 7, where D^T is Qbar, D M^-1 D^T is N and lam is g).

    D     rows are the forces T that a joint can pass on        W    forces that do work, one for each coordinate
          without work: T on its body and -T on its parent      E    zero, but for rotors
    M_i   inertia of body i at its centre of mass               lam  how much of each T

Free bodies that would accelerate by x are held together by (D M^-1 D^T + E) lam = rate - D x. A joint with armature has
its W among its T, with 1/armature in E: the rotor's force is a multiplier too. Bodies are those of centres.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.centres import Placed, between, still
from bellcrank.dynamics.inertia_matrix import Rows
from bellcrank.dynamics.sweep import Vector, passive_torque
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import AXES, IDENTITY, NO_FORCE, ZERO, Force, Motion, Sym


@dataclass(slots=True, eq=False)
class Row:
    """One row of D."""

    joint: int
    T: dict[int, Force]  # by body, about its centre
    E: Scalar = 0.0


@dataclass(slots=True, eq=False)
class Mobility:
    """M^-1: how a force moves a free body."""

    J: Sym
    m: Scalar

    def __matmul__(self, f: Force) -> Motion:
        return Motion(self.J @ f.ang, f.lin * self.m)


def mobilities(tree: Tree, bodies: Sequence[Placed]) -> list[Mobility]:
    found = []
    for link, body in zip(tree.links, bodies, strict=True):
        step("1/M", link.name)
        found.append(Mobility(FullRotation(body.A).up_sym(link.inertia.I_centre.inverse), 1.0 / body.M.m))
    return found


def constraints(tree: Tree, q: Vector, bodies: Sequence[Placed]) -> tuple[list[Row], list[list[Force]]]:
    """D, and W of each joint about the centre of its body."""
    D: list[Row] = []
    W: list[list[Force]] = []
    for j, (link, body) in enumerate(zip(tree.links, bodies, strict=True)):
        step("D", link.name)
        working, idle = link.kind.forces(link.coordinates(q))
        W.append([body.force(w) for w in working])
        D += [Row(j, both(tree, bodies, j, T)) for T in _common(body, idle)]
        D += [Row(j, both(tree, bodies, j, w), 1.0 / link.armature) for w in W[j] if link.armature]
    return D, W


def both(tree: Tree, bodies: Sequence[Placed], j: int, f: Force) -> dict[int, Force]:
    """A force of joint j as its two bodies feel it."""
    i = tree.links[j].parent
    return {j: f} if i < 0 else {j: f, i: NO_FORCE - between(bodies[i], bodies[j]).force(f)}


def _common(body: Placed, idle: Sequence[Force]) -> list[Force]:
    """T about the body's centre. Where three forces (or moments) span them all, they are taken along the common axes,
    as in r_1 + s_1 - r_4 - s_4 = 0: then they have zeros.
    """
    forces = [T for T in idle if still(T.ang)]
    moments = [T for T in idle if still(T.lin)]
    out = [Force(-(body.d.cross(e)), e) for e in AXES] if len(forces) == 3 else [body.force(T) for T in forces]
    out += [Force(e, ZERO) for e in AXES] if len(moments) == 3 else [body.force(T) for T in moments]
    return out + [body.force(T) for T in idle if T not in forces and T not in moments]


def drives(tree: Tree, q: Vector, v: Vector, tau: Vector, W: Sequence[Sequence[Force]]) -> list[Force]:
    """What each joint passes on to its body by drive, spring and friction."""
    found, passive = [], passive_torque(tree, q, v)
    for link, working in zip(tree.links, W, strict=True):
        step("drive", link.name)
        total = NO_FORCE
        for w, k in zip(working, link.v_index, strict=True):
            total = total + w * (tau[k] + passive[k])
        found.append(total)
    return found


def with_passed(tree: Tree, bodies: Sequence[Placed], f: Sequence[Force], passes: Sequence[Force]) -> list[Force]:
    """Forces on the bodies, and what the joints pass on beside them."""
    total = list(f)
    for j, x in enumerate(passes):
        step("f", tree.links[j].name)
        for i, felt in both(tree, bodies, j, x).items():
            total[i] = total[i] + felt
    return total


def equations(
    tree: Tree, D: Sequence[Row], inverse: Sequence[Mobility], x: Sequence[Motion], rate: Vector
) -> tuple[Rows, list[Scalar]]:
    """D M^-1 D^T + E, lower triangle, and rate - D x."""
    N: Rows = [{k: row.E} for k, row in enumerate(D)]
    b = list(rate)
    for k, row in enumerate(D):
        step("D 1/M D^T", tree.links[row.joint].name)
        moved = {i: inverse[i] @ T for i, T in row.T.items()}
        for l, other in enumerate(D[: k + 1]):
            for i in [i for i in moved if i in other.T]:
                N[k][l] = N[k].get(l, 0.0) + moved[i].dot(other.T[i])
        for i, T in row.T.items():
            b[k] = b[k] - x[i].dot(T)
    return N, b


def passed_by(tree: Tree, D: Sequence[Row], lam: Vector, drive: Sequence[Force]) -> list[Force]:
    """All that each joint passes on to its body, about the body's centre."""
    total = list(drive)
    for x, row in zip(lam, D, strict=True):
        step("D^T lam", tree.links[row.joint].name)
        total[row.joint] = total[row.joint] + row.T[row.joint] * x
    return total


def reported(tree: Tree, bodies: Sequence[Placed], passes: Sequence[Force]) -> list[list[Scalar]]:
    """[force, moment] in world axes, the moment about the origin of the body's own frame."""
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    out = []
    for link, body, f in zip(tree.links, bodies, passes, strict=True):
        step("reaction", link.name)
        moment = f.ang + (body.d - body.A @ tree.frames[link.name][2]).cross(f.lin)
        out.append([*(R @ f.lin), *(R @ moment)])
    return out
