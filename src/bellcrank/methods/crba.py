"""Composite rigid bodies: M. W. Walker and D. E. Orin, Efficient dynamic computer simulation of robotic mechanisms,
J. Dyn. Sys. Meas. Control 104, 1982, method 3; equation numbers are those of Wong 1991, section 2.2.1. The
factorisation along the tree is that of state_space.py.

Solves: mass_matrix, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    Ic_i  inertia of body i and all it carries       F      force that a unit acceleration of a joint needs
    M     mass matrix, lower triangle by rows

Departs: inertias are (m, h, I) about the joint instead of (M, c, J) about the composite's centre, and move along the
elementary turns and shifts of spatial/moves.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.methods.rnea import rigid_forces
from bellcrank.methods.state_space import Rows, coordinate_names, right_hand_side, solve, square
from bellcrank.methods.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import Force, Motion


def subspaces(tree: Tree, q: Vector) -> list[list[Motion]]:
    """The axes of every joint, each in its own frame."""
    found = []
    for link in tree.links:
        step("S", link.name)
        found.append(link.subspace(q))
    return found


def column(
    M: Rows, tree: Tree, S: Sequence[Sequence[Motion]], i: int, c: int, F: Force, up: Callable[[int, Force], Force]
) -> None:
    """Adds to M what the force F that axis c of link i needs does along that axis, those before it, and all below.

    `up` is how F, about link i's frame, looks from the parent's. Joints that share a coordinate meet on the diagonal,
    from both sides.
    """
    k = tree.links[i].v_index[c]

    def add(j: int, x: Scalar) -> None:
        row, col = max(k, j), min(k, j)
        M[row][col] = M[row].get(col, 0.0) + x

    name, at = tree.links[i].name, i
    step("M", name)
    for other, j in zip(S[i][: c + 1], tree.links[i].v_index[: c + 1], strict=True):
        add(j, other.dot(F))  # 2.12
    add(k, tree.links[i].armature)
    while tree.links[at].parent >= 0:
        step("F", name)
        F = up(at, F)  # 2.11
        at = tree.links[at].parent
        step("M", name)
        for other, j in zip(S[at], tree.links[at].v_index, strict=True):
            x = other.dot(F)  # 2.12
            add(j, x + x if j == k else x)


def composite(tree: Tree, q: Vector) -> Rows:
    """The lower triangle of M, only where a joint carries another (or shares its coordinate)."""
    Ic = [link.inertia for link in tree.links]
    S = subspaces(tree, q)
    M: Rows = [{} for _ in range(tree.nv)]

    def moved(at: int, F: Force) -> Force:
        return tree.links[at].transform(q).force(F)

    for i, link in reversed(list(enumerate(tree.links))):
        for c, s in enumerate(S[i]):
            step("F", link.name)
            column(M, tree, S, i, c, Ic[i] @ s, moved)  # 2.10
        if link.parent >= 0:
            step("Ic", tree.links[link.parent].name)
            Ic[link.parent] = Ic[link.parent] + link.transform(q).inertia(Ic[i])  # 2.4-2.9
    return M


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(composite(tree, q))


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """M^-1 (tau + passive - bias)."""
    C = rigid_forces(tree, q, v, [0.0] * tree.nv, frames, wrench)
    return solve(composite(tree, q), right_hand_side(tree, q, v, tau, C), coordinate_names(tree))
