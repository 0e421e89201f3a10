"""Newton-Euler state space in mixed frames: H. Hemami, A state space model for interconnected rigid bodies, IEEE Trans.
Automatic Control AC-27 (2), 1982, with the relative joint rates of H. J. Buchner; equation numbers are those of Wong
1991, section 2.2.4. Rotations are in body coordinates, translations in the inertial frame.

Solves: mass_matrix, bias, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    A_i    rotation of body i against the ground      C      w = C v, in body coordinates
    k_i    from centre of mass i to joint i           l_i    from the parent's centre of mass to joint i
    d_i    k of the parent less l_i: across it        B      sliding of the joints, in the inertial frame
    U      differences along the path                 Q      turning of k and l: U dx = Q w + B v

    U^-1 Q has A_j [d~] for a body j on the way to body i, by its next joint, and A_i [k_i~] on the diagonal; U^-1 adds
    along the path.

Departs: axes are those of our frames, not the principal ones; joints may slide (B, which the print has not), with any
number of axes; a tree as in Wong's appendix B. In print, dQ w of appendices A and B has wrong signs, against 2.28.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.methods.complement import Columns, central, inertia_matrix, projected_forces
from bellcrank.methods.state_space import accelerations, square
from bellcrank.methods.sweep import Vector, Wrenches, along, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import Force, Motion
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec, cross_matrix


@dataclass
class Kinematics:
    """Row i of each matrix: C and B by coordinate, U^-1 Q by body."""

    A: list[Mat]
    k: list[Vec]
    l: list[Vec]
    C: list[dict[int, Vec]]
    B: list[dict[int, Vec]]
    UQ: list[dict[int, Mat]]


def kinematics(tree: Tree, q: Vector) -> Kinematics:
    at = Kinematics([], [], [], [], [], [])
    for i, link in enumerate(tree.links):
        step("A", link.name)
        X, p = link.transform(q), link.parent
        turn, shift = X.pose(IDENTITY, ZERO)
        at.A.append(X.pose(at.A[p], ZERO)[0] if p >= 0 else turn)
        at.k.append(-link.inertia.centre)
        at.l.append(shift + at.k[p] if p >= 0 else shift)
        step("C", link.name)
        C = {k: X.down(c) for k, c in at.C[p].items()} if p >= 0 else {}
        B: dict[int, Vec] = {}
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            C[k] = C.get(k, ZERO) + s.ang  # 2.32
            B[k] = B.get(k, ZERO) + at.A[i] @ s.lin
        at.C.append(C)
        at.B.append(B)
        step("U^-1 Q", link.name)
        UQ = dict(at.UQ[p]) if p >= 0 else {}
        if p >= 0:
            UQ[p] = at.A[p].times(cross_matrix(at.k[p] - at.l[i]))
        UQ[i] = at.A[i].times(cross_matrix(at.k[i]))
        at.UQ.append(UQ)
    return at


def transformation(tree: Tree, at: Kinematics) -> list[Columns]:
    """[C; U^-1 (Q C + B)], 2.36."""
    H: list[Columns] = []
    for link, C, UQ in zip(tree.links, at.C, at.UQ, strict=True):
        step("U^-1 Q C", link.name)
        x = dict.fromkeys(C, ZERO)
        for j, turning in UQ.items():
            for k, c in at.C[j].items():
                x[k] = x[k] + turning @ c
            for k, b in at.B[j].items():
                x[k] = x[k] + b
        H.append({k: Motion(C[k], x[k]) for k in C})
    return H


def force_vector(tree: Tree, q: Vector, v: Vector, at: Kinematics, H: Sequence[Columns]) -> list[Scalar]:
    w: list[Vec] = []
    dC: list[Vec] = []  # dC v
    dQ: list[Vec] = []  # U^-1 (dQ w + dB v)
    forces = []
    for i, link in enumerate(tree.links):
        step("w", link.name)
        X, p = link.transform(q), link.parent
        J = link.inertia.I_centre
        vJ, aJ = along(link.subspace(q), own(link, v)), link.bias(q, v)
        carried = X.down(w[p]) if p >= 0 else ZERO
        w.append(carried + vJ.ang)  # 2.35
        dC.append((X.down(dC[p]) if p >= 0 else ZERO) + carried.cross(vJ.ang) + aJ.ang)
        step("dQ w", link.name)
        slid = (carried + w[i]).cross(vJ.lin) + aJ.lin
        dQ.append(at.A[i] @ (slid - w[i].cross(w[i].cross(at.k[i]))))  # 2.28
        if p >= 0:
            dQ[i] = dQ[p] + at.A[p] @ w[p].cross(w[p].cross(at.l[i])) + dQ[i]
        step("x", link.name)
        x = ZERO
        for j, turning in at.UQ[i].items():
            x = x + turning @ dC[j]
        x = x + dQ[i] - tree.gravity  # 2.30
        step("f", link.name)
        forces.append(Force(J @ dC[i] + w[i].cross(J @ w[i]), x * link.inertia.m))
    return projected_forces(tree, H, forces)  # 2.37


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(inertia_matrix(tree, transformation(tree, kinematics(tree, q)), central(tree)))  # 2.37


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    at = kinematics(tree, q)
    return force_vector(tree, q, v, at, transformation(tree, at))


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    at = kinematics(tree, q)
    H = transformation(tree, at)
    M, C = square(inertia_matrix(tree, H, central(tree))), force_vector(tree, q, v, at, H)
    return accelerations(tree, q, v, tau, M, C, frames, wrench)
