"""Orthogonal complement: projection of the equations of free bodies onto the coordinates.

Shared by several methods; equation numbers are those of Wong 1991, chapter 3.

    H_i,k   contribution of coordinate k to the angular velocity of body i and the velocity of its centre of mass: row i
            has columns only for the joints on the path to body i
    dL_i    rate of body i's angular momentum about its centre of mass
    mp_i    its mass times the acceleration of that centre, less gravity

Joints that share a coordinate share its column, so that mimic joints need no special treatment below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.dynamics.ltl_factorisation import Rows
from bellcrank.dynamics.tree_sweeps import Vector, joint_elements, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.vector import ZERO, Acceleration, Force, Motion, euler_moment

Columns = Mapping[int, Motion]  # one row of H, indexed by coordinate


def momentum_rates(tree: Tree, q: Vector, v: Vector) -> list[Force]:
    """Return dL and mp of every body at zero joint acceleration, in body coordinates.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    A: list[Acceleration] = []
    rates = []
    base = Acceleration(ZERO, ZERO, -tree.gravity)
    for i, link in enumerate(tree.links):
        step("w", link.name)
        vJ = subspace_motion(link.subspace(q), joint_elements(link, v))
        at_joint = link.transform(q).acceleration(A[link.parent] if link.parent >= 0 else base)
        A.append(at_joint.through_joint(vJ, link.bias(q, v)))  # 3.27, 3.28
        step("mp", link.name)
        mp = (A[i].a + A[i].K @ link.inertia.centre) * link.inertia.m  # 3.29, 3.30
        step("dL", link.name)
        rates.append(Force(euler_moment(link.inertia.I_centre, A[i]), mp))  # 3.31
    return rates


def central_inertias(tree: Tree) -> list[Inertia]:
    """Return J and m of every body of `tree`, in its own axes."""
    return [link.inertia.central for link in tree.links]


def inertia_matrix(tree: Tree, H: Sequence[Columns], bodies: Sequence[Inertia]) -> Rows:
    """Return the lower triangle of H^T P, with P = diag(J, m) H.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    H
        Rows of H, one for each body.
    bodies
        Inertias about the centres of mass, in the axes of H.
    """
    P = []
    for link, row, body in zip(tree.links, H, bodies, strict=True):
        step("P", link.name)
        P.append({k: body @ h for k, h in row.items()})  # 3.16, 3.17
    return project_inertia(tree, H, P)  # 3.11


def project_inertia(tree: Tree, H: Sequence[Columns], P: Sequence[Mapping[int, Force]]) -> Rows:
    """Return the lower triangle of the inertia matrix: H^T P and armature.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    H
        Rows of H, one for each body.
    P
        Rows of P.
    """
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


def project_forces(tree: Tree, H: Sequence[Columns], forces: Sequence[Force], what: str = "f") -> list[Scalar]:
    """Return H^T times the bodies' forces, to which constraint forces do not contribute.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    H
        Rows of H, one for each body.
    forces
        Force on each body.
    what
        Label of the step.
    """
    f: list[Scalar] = [0.0] * tree.nv
    for link, h, force in zip(tree.links, H, forces, strict=True):
        step(what, link.name)
        for k, column in h.items():
            f[k] = f[k] + column.dot(force)  # 3.32
    return f
