"""Newton-Euler state space in mixed frames.

H. Hemami, A state space model for interconnected rigid bodies, IEEE Trans. Automatic Control AC-27 (2), 1982, with the
relative joint rates of H. J. Buchner; equation numbers are those of Wong 1991, section 2.2.4. Rotations are in body
coordinates, translations in the inertial frame.

Solves: mass_matrix, bias, forward_dynamics. Any tree, with mimic joints too. Work O(n depth^2), span O(depth).

    A_i    rotation of body i against the ground      C      w = C v, in body coordinates
    k_i    from centre of mass i to joint i           l_i    from the parent's centre of mass to joint i
    d_i    k of the parent less l_i: across it        B      sliding of the joints, in the inertial frame
    U      differences along the path                 Q      rotation of k and l: U dx = Q w + B v

    U^-1 Q has A_j [d~] for a body j on the way to body i, by its next joint, and A_i [k_i~] on the diagonal; U^-1 adds
    along the path.

Differences from the paper: axes are those of bellcrank's frames, not the principal ones; joints may slide (B, which the
paper does not have), with any number of axes; a tree as in Wong's appendix B. As printed, dQ w of appendices A and B
has wrong signs, which contradicts 2.28.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.historical.orthogonal_complement import (
    Columns,
    central_inertias,
    inertia_matrix,
    project_forces,
)
from bellcrank.dynamics.ltl_factorisation import accelerations, full_matrix
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, joint_elements, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Force, Mat, Motion, Vec, cross_matrix


@dataclass(slots=True, eq=False)
class KinematicRow:
    """Row i of each matrix: C and B by coordinate, U^-1 Q by body."""

    A: Mat
    k: Vec
    l: Vec
    C: dict[int, Vec]
    B: dict[int, Vec]
    UQ: dict[int, Mat]


Kinematics = dict[int, KinematicRow]  # keyed by body: the ground is body -1 and needs no special treatment


def kinematics(tree: Tree, q: Vector) -> Kinematics:
    """Return the rows of all bodies of `tree` at positions `q`."""
    body_rows = {-1: KinematicRow(IDENTITY, ZERO, ZERO, {}, {}, {})}
    for i, link in enumerate(tree.links):
        step("A", link.name)
        X, up = link.transform(q), body_rows[link.parent]
        A, k = X.pose(up.A, ZERO)[0], -link.inertia.centre
        l = X.pose(IDENTITY, ZERO)[1] + up.k
        step("C", link.name)
        C = {j: X.down(c) for j, c in up.C.items()}
        B: dict[int, Vec] = {}
        for s, j in zip(link.subspace(q), link.v_index, strict=True):
            C[j] = C.get(j, ZERO) + s.ang  # 2.32
            B[j] = B.get(j, ZERO) + A @ s.lin
        step("U^-1 Q", link.name)
        UQ = {**up.UQ, link.parent: up.A.times(cross_matrix(up.k - l)), i: A.times(cross_matrix(k))}
        body_rows[i] = KinematicRow(A, k, l, C, B, UQ)
    return body_rows


def transformation(tree: Tree, body_rows: Kinematics) -> list[Columns]:
    """Return the rows [C; U^-1 (Q C + B)], 2.36.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    body_rows
        Rows of all bodies.
    """
    H: list[Columns] = []
    for i, link in enumerate(tree.links):
        step("U^-1 Q C", link.name)
        x = dict.fromkeys(body_rows[i].C, ZERO)
        for j, turning in body_rows[i].UQ.items():
            for k, c in body_rows[j].C.items():
                x[k] = x[k] + turning @ c
            for k, b in body_rows[j].B.items():
                x[k] = x[k] + b
        H.append({k: Motion(c, x[k]) for k, c in body_rows[i].C.items()})
    return H


def force_vector(tree: Tree, q: Vector, v: Vector, body_rows: Kinematics, H: Sequence[Columns]) -> list[Scalar]:
    """Return the bias forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    body_rows
        Rows of all bodies.
    H
        Rows of the transformation.
    """
    w, dC, dQ = {-1: ZERO}, {-1: ZERO}, {-1: ZERO}  # w, dC v and U^-1 (dQ w + dB v)
    forces = []
    for i, link in enumerate(tree.links):
        step("w", link.name)
        X, p, J = link.transform(q), link.parent, link.inertia.I_centre
        vJ, aJ = subspace_motion(link.subspace(q), joint_elements(link, v)), link.bias(q, v)
        carried = X.down(w[p])
        w[i] = carried + vJ.ang  # 2.35
        dC[i] = X.down(dC[p]) + carried.cross(vJ.ang) + aJ.ang
        step("dQ w", link.name)
        slid = (carried + w[i]).cross(vJ.lin) + aJ.lin
        turned = body_rows[i].A @ (slid - w[i].cross(w[i].cross(body_rows[i].k)))
        dQ[i] = dQ[p] + body_rows[p].A @ w[p].cross(w[p].cross(body_rows[i].l)) + turned  # 2.28
        step("x", link.name)
        x = ZERO
        for j, turning in body_rows[i].UQ.items():
            x = x + turning @ dC[j]
        x = x + dQ[i] - tree.gravity  # 2.30
        step("f", link.name)
        forces.append(Force(J @ dC[i] + w[i].cross(J @ w[i]), x * link.inertia.m))
    return project_forces(tree, H, forces)  # 2.37


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the mass matrix of `tree` at positions `q`."""
    return full_matrix(inertia_matrix(tree, transformation(tree, kinematics(tree, q)), central_inertias(tree)))  # 2.37


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the bias forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    body_rows = kinematics(tree, q)
    return force_vector(tree, q, v, body_rows, transformation(tree, body_rows))


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
    body_rows = kinematics(tree, q)
    H = transformation(tree, body_rows)
    M, C = full_matrix(inertia_matrix(tree, H, central_inertias(tree))), force_vector(tree, q, v, body_rows, H)
    return accelerations(tree, q, v, tau, M, C, frames, wrench)
