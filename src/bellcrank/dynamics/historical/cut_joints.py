"""Cut joints: joint forces as unknowns, with one constraint equation for each.

Shared by several methods (nikravesh1989, equations 3 and 4; schaefer1992, equation 7, where D^T is Qbar, D M^-1 D^T is
N and lam is g).

    D     rows are the forces T that a joint can transmit       W    forces that do work, one for each coordinate
          without work: T on its body and -T on its parent      E    zero, but for rotors
    M_i   inertia of body i at its centre of mass               lam  multipliers of T

Free bodies that would accelerate by x are held together by (D M^-1 D^T + E) lam = rate - D x. A joint with armature has
its W among its T, with 1/armature in E: the rotor's force is a multiplier too. Bodies are those of free_bodies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics.historical.free_bodies import PlacedBody, centre_to_centre, is_zero_vector
from bellcrank.dynamics.ltl_factorisation import Rows
from bellcrank.dynamics.tree_sweeps import Vector, passive_torque
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import AXES, IDENTITY, NO_FORCE, ZERO, Force, Motion, SymMat, weighted_sum


@dataclass(slots=True, eq=False)
class ConstraintRow:
    """One row of D."""

    joint: int
    T: dict[int, Any]  # keyed by body: a Force about its centre, or that of a deformable body
    E: Scalar = 0.0


@dataclass(slots=True, eq=False)
class Mobility:
    """M^-1 of one free body: maps a force to an acceleration."""

    J: SymMat
    m: Scalar

    def __matmul__(self, f: Force) -> Motion:
        return Motion(self.J @ f.ang, f.lin * self.m)


def mobility(link: Link, body: PlacedBody) -> Mobility:
    """Return the mobility of the `body` of a `link`."""
    step("1/M", link.name)
    return Mobility(FullRotation(body.A).up_sym(link.inertia.I_centre.inverse), 1.0 / body.M.m)


def mobilities(tree: Tree, bodies: Sequence[PlacedBody]) -> list[Mobility]:
    """Return the mobility of every body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    """
    return [mobility(link, body) for link, body in zip(tree.links, bodies, strict=True)]


def constraints(tree: Tree, q: Vector, bodies: Sequence[PlacedBody]) -> tuple[list[ConstraintRow], list[list[Force]]]:
    """Return D, and W of each joint about the centre of its body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    bodies
        Bodies, as `place_bodies` returns them.
    """
    D: list[ConstraintRow] = []
    W: list[list[Force]] = []
    for j, (link, body) in enumerate(zip(tree.links, bodies, strict=True)):
        step("D", link.name)
        if link.kind.name == "modal":  # nodes move with their bodies: deformable_bodies.py
            W.append([])
            continue
        working, idle = link.kind.forces(link.coordinates(q))
        W.append([body.force(w) for w in working])
        D += [ConstraintRow(j, on_both_bodies(tree, bodies, j, T)) for T in _along_common_axes(body, idle)]
        D += [ConstraintRow(j, on_both_bodies(tree, bodies, j, w), 1.0 / link.armature) for w in W[j] if link.armature]
    return D, W


def on_both_bodies(tree: Tree, bodies: Sequence[PlacedBody], j: int, f: Force) -> dict[int, Force]:
    """Return a force of joint `j` as it acts on its two bodies, by body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    j
        Index of the joint.
    f
        Force on the joint's body, about its centre.
    """
    i = tree.links[j].parent
    return {j: f} if i < 0 else {j: f, i: NO_FORCE - centre_to_centre(bodies[i], bodies[j]).force(f)}


def _along_common_axes(body: PlacedBody, idle: Sequence[Force]) -> list[Force]:
    """Return T about the body's centre.

    Three forces (or moments) that span all directions are taken along the common axes, as in r_1 + s_1 - r_4 - s_4 = 0,
    so that they contain zeros.
    """
    forces = [T for T in idle if is_zero_vector(T.ang)]
    moments = [T for T in idle if is_zero_vector(T.lin)]
    out = [Force(-(body.d.cross(e)), e) for e in AXES] if len(forces) == 3 else [body.force(T) for T in forces]
    out += [Force(e, ZERO) for e in AXES] if len(moments) == 3 else [body.force(T) for T in moments]
    return out + [body.force(T) for T in idle if T not in forces and T not in moments]


def drive_forces(tree: Tree, q: Vector, v: Vector, tau: Vector, W: Sequence[Sequence[Force]]) -> list[Force]:
    """Return the force that each joint transmits to its body by drive, spring and friction.

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
    W
        Working forces of each joint.
    """
    joint_drives, passive = [], passive_torque(tree, q, v)
    for link, working in zip(tree.links, W, strict=True):
        step("drive", link.name)
        felt = [tau[k] + passive[k] for k in link.v_index] if working else []
        joint_drives.append(weighted_sum(working, felt, NO_FORCE))
    return joint_drives


def add_joint_forces(
    tree: Tree, bodies: Sequence[PlacedBody], f: Sequence[Force], passes: Sequence[Force]
) -> list[Force]:
    """Return the forces on the bodies plus those transmitted by the joints.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    f
        Force on each body.
    passes
        Force transmitted by each joint.
    """
    total = list(f)
    for j, x in enumerate(passes):
        step("f", tree.links[j].name)
        for i, felt in on_both_bodies(tree, bodies, j, x).items():
            total[i] = total[i] + felt
    return total


def multiplier_equations(
    tree: Tree, D: Sequence[ConstraintRow], inverse: Any, x: Any, rate: Vector
) -> tuple[Rows, list[Scalar]]:
    """Return the lower triangle of D M^-1 D^T + E, and rate - D x.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    D
        Constraint rows.
    inverse
        Mobility of each body by index, for the type of force in the rows.
    x
        Acceleration of each free body by index, likewise.
    rate
        Right-hand side of each row.
    """
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


def total_joint_forces(tree: Tree, D: Sequence[ConstraintRow], lam: Vector, drive: Sequence[Force]) -> list[Force]:
    """Return the total force that each joint transmits to its body, about the body's centre.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    D
        Constraint rows.
    lam
        Multipliers.
    drive
        Force of each joint's drive.
    """
    total = list(drive)
    for x, row in zip(lam, D, strict=True):
        step("D^T lam", tree.links[row.joint].name)
        total[row.joint] = total[row.joint] + row.T[row.joint] * x
    return total


def world_reactions(tree: Tree, bodies: Sequence[PlacedBody], passes: Sequence[Force]) -> list[list[Scalar]]:
    """Return [force, moment] of each joint in world axes, the moment about the origin of the body's own frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    passes
        Force transmitted by each joint.
    """
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    out = []
    for link, body, f in zip(tree.links, bodies, passes, strict=True):
        step("reaction", link.name)
        moment = f.ang + (body.d - body.A @ tree.frames[link.name][2]).cross(f.lin)
        out.append([*(R @ f.lin), *(R @ moment)])
    return out
