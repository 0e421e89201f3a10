"""Velocity transformation of nikravesh1989 as whole matrices, to be read, exported and checked (sections 2.2 and 4).

    B          [r'; w] of every body = B theta', with r at the centre of mass, in world axes       5
    G, H       G [r'; w] = H theta', which is 28 without gamma for every body: B = G^-1 H          27

The rows of a body are its three of r', then its three of w. Any tree; mechanisms with loops have those of their reduced
system, which is the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.dynamics.historical.free_bodies import body_jacobians, centre_to_centre, place_bodies
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import AXES, IDENTITY, ZERO, Motion

Matrix = list[list[Scalar]]


def velocity_transformation(tree: Tree, q: Vector) -> Matrix:
    """Return B (5) of `tree` at positions `q`: six rows [r'; w] for each body."""
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    rows = body_jacobians(tree, place_bodies(tree, q))
    return _six_rows([{k: m.rotated(R) for k, m in row.items()} for row in rows], tree.nv)


def joint_blocks(tree: Tree, q: Vector) -> Matrix:
    """Return H (28) of `tree` at positions `q`: the columns of each body's own joint, at its centre of mass."""
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    bodies = place_bodies(tree, q)
    own = [
        {k: h.rotated(R) for k, h in zip(link.v_index, body.H, strict=True)}
        for link, body in zip(tree.links, bodies, strict=True)
    ]
    return _six_rows(own, tree.nv)


def propagation_matrix(tree: Tree, q: Vector) -> Matrix:
    """Return G (28) of `tree` at positions `q`: 1 on the diagonal, and -G_j in the columns of the parent."""
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    bodies = place_bodies(tree, q)
    rows: list[dict[int, Motion]] = []
    for j, link in enumerate(tree.links):
        row = _identity_columns(6 * j)
        if link.parent >= 0:
            r = R @ centre_to_centre(bodies[link.parent], bodies[j]).r
            row |= {6 * link.parent + k: Motion(ZERO, -e) for k, e in enumerate(AXES)}
            row |= {6 * link.parent + 3 + k: Motion(-e, r.cross(e)) for k, e in enumerate(AXES)}
        rows.append(row)
    return _six_rows(rows, 6 * len(tree.links))


def _identity_columns(first: int) -> dict[int, Motion]:
    lin = {first + k: Motion(ZERO, e) for k, e in enumerate(AXES)}
    return lin | {first + 3 + k: Motion(e, ZERO) for k, e in enumerate(AXES)}


def _six_rows(rows: Sequence[Mapping[int, Motion]], width: int) -> Matrix:
    """Return six rows [linear; angular] for each body, with zeros where it has no column."""
    step("rows")
    out: Matrix = []
    for row in rows:
        columns = [[*row[k].lin, *row[k].ang] if k in row else [0.0] * 6 for k in range(width)]
        out += [list(line) for line in zip(*columns, strict=True)]
    return out
