"""What the methods of the orthogonal complement share: the projection of the equations of free bodies onto the
coordinates. Equation numbers are those of Wong 1991, chapter 3.

    H_i,k   what coordinate k makes of the angular velocity of body i and of the velocity of its centre of mass: row i
            has columns only for the joints on the path to body i
    dL_i    rate of body i's angular momentum about its centre of mass
    mp_i    its mass times the acceleration of that centre, less gravity

Joints that share a coordinate share its column, so that couplings are no case below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.dynamics.inertia_matrix import Rows
from bellcrank.dynamics.sweep import Vector, along, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.vector import ZERO, Acceleration, Force, Motion, euler_moment

Columns = Mapping[int, Motion]  # one row of H, by coordinate


def momentum_rates(tree: Tree, q: Vector, v: Vector) -> list[Force]:
    """dL and mp of every body while no coordinate accelerates, in body coordinates."""
    A: list[Acceleration] = []
    rates = []
    base = Acceleration(ZERO, ZERO, -tree.gravity)
    for i, link in enumerate(tree.links):
        step("w", link.name)
        vJ = along(link.subspace(q), own(link, v))
        at_joint = link.transform(q).acceleration(A[link.parent] if link.parent >= 0 else base)
        A.append(at_joint.through_joint(vJ, link.bias(q, v)))  # 3.27, 3.28
        step("mp", link.name)
        mp = (A[i].a + A[i].K @ link.inertia.centre) * link.inertia.m  # 3.29, 3.30
        step("dL", link.name)
        rates.append(Force(euler_moment(link.inertia.I_centre, A[i]), mp))  # 3.31
    return rates


def central(tree: Tree) -> list[Inertia]:
    """J and m of every body, in its own axes."""
    return [link.inertia.central for link in tree.links]


def inertia_matrix(tree: Tree, H: Sequence[Columns], bodies: Sequence[Inertia]) -> Rows:
    """H^T P, with P = diag(J, m) H: the bodies are about their centres of mass, in the axes of H."""
    P = []
    for link, row, body in zip(tree.links, H, bodies, strict=True):
        step("P", link.name)
        P.append({k: body @ h for k, h in row.items()})  # 3.16, 3.17
    return projected(tree, H, P)  # 3.11


def projected(tree: Tree, H: Sequence[Columns], P: Sequence[Mapping[int, Force]]) -> Rows:
    """H^T P and the rotors: the lower triangle of the inertia matrix."""
    M: Rows = [{} for _ in range(tree.nv)]
    for link, h, p in zip(tree.links, H, P, strict=True):
        step("M", link.name)
        for i in h:
            for k in h:
                if k <= i:
                    M[i][k] = M[i].get(k, 0.0) + h[k].dot(p[i])  # 3.23
        for k in link.v_index:
            M[k][k] = M[k][k] + link.armature
    return M


def projected_forces(tree: Tree, H: Sequence[Columns], forces: Sequence[Force], what: str = "f") -> list[Scalar]:
    """H^T times the bodies' forces, in which no constraint force has a part. `what` is for the labels."""
    f: list[Scalar] = [0.0] * tree.nv
    for link, h, force in zip(tree.links, H, forces, strict=True):
        step(what, link.name)
        for k, column in h.items():
            f[k] = f[k] + column.dot(force)  # 3.32
    return f
