"""Composite rigid bodies: M. W. Walker and D. E. Orin, Efficient dynamic computer simulation of robotic mechanisms,
J. Dyn. Sys. Meas. Control 104, 1982, method 3; equation numbers are those of Wong 1991, section 2.2.1. Factorised
along the tree after R. Featherstone, Efficient factorization of the joint-space inertia matrix for branched kinematic
trees, Int. J. Robotics Research 24, 2005.

Solves: mass_matrix, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    Ic_i  inertia of body i and all it carries       F      force that a unit acceleration of a joint needs
    M     mass matrix, lower triangle by rows        L, D   M = L^T D L

Departs: inertias are (m, h, I) about the joint instead of (M, c, J) about the composite's centre, and move along the
elementary turns and shifts of spatial/moves.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.methods.kinematics import passive_torque
from bellcrank.methods.rnea import Wrenches, rigid_forces
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step

Vector = Sequence[Scalar]
Rows = list[dict[int, Scalar]]  # row i: its nonzero columns j <= i


def composite(tree: Tree, q: Vector) -> Rows:
    """The lower triangle of M, only where a joint carries another (or shares its coordinate)."""
    Ic = [link.inertia for link in tree.links]
    M: Rows = [{} for _ in range(tree.nv)]

    def add(k: int, j: int, x: Scalar) -> None:
        row, col = max(k, j), min(k, j)
        M[row][col] = M[row].get(col, 0.0) + x

    for i, link in reversed(list(enumerate(tree.links))):
        S = link.subspace(q)
        for c, (s, k) in enumerate(zip(S, link.v_index, strict=True)):
            step("F", link.name)
            F = Ic[i] @ s  # 2.10
            step("M", link.name)
            for other, j in zip(S[: c + 1], link.v_index[: c + 1], strict=True):
                add(k, j, other.dot(F))  # 2.12
            add(k, k, link.armature)
            at = i
            while tree.links[at].parent >= 0:
                step("F", link.name)
                F = tree.links[at].transform(q).force(F)  # 2.11
                at = tree.links[at].parent
                step("M", link.name)
                for other, j in zip(tree.links[at].subspace(q), tree.links[at].v_index, strict=True):
                    x = other.dot(F)  # 2.12
                    add(
                        k, j, x + x if j == k else x
                    )  # joints that share a coordinate meet on the diagonal, from both sides
        if link.parent >= 0:
            step("Ic", tree.links[link.parent].name)
            Ic[link.parent] = Ic[link.parent] + link.transform(q).inertia(Ic[i])  # 2.4-2.9
    return M


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    M = composite(tree, q)
    return [[M[max(i, j)].get(min(i, j), 0.0) for j in range(tree.nv)] for i in range(tree.nv)]


def solve(M: Rows, b: list[Scalar], names: Sequence[str]) -> list[Scalar]:
    """x with M x = b by M = L^T D L, eliminating from the leaves: no fill-in on a tree."""
    n = len(b)
    M, b = [dict(row) for row in M], list(b)
    L: Rows = [{} for _ in range(n)]
    D: list[Scalar] = [0.0] * n  # inverted
    for k in reversed(range(n)):
        step("L", names[k])
        D[k] = 1.0 / M[k].pop(k)
        for i, x in M[k].items():
            L[k][i] = x * D[k]
        for i in M[k]:
            for j in M[k]:
                if j <= i:
                    M[i][j] = M[i].get(j, 0.0) - L[k][i] * M[k][j]
            b[i] = b[i] - L[k][i] * b[k]
    for k in range(n):
        step("a", names[k])
        b[k] = b[k] * D[k]
        for i, x in L[k].items():
            b[k] = b[k] - x * b[i]
    return b


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """M^-1 (tau + passive - bias)."""
    names = {k: link.name for link in tree.links for k in link.v_index}
    C = rigid_forces(tree, q, v, [0.0] * tree.nv, frames, wrench)
    passive = passive_torque(tree, q, v)
    step("tau - C")
    b = [t + p - c for t, p, c in zip(tau, passive, C, strict=True)]
    return solve(composite(tree, q), b, [names[k] for k in range(tree.nv)])
