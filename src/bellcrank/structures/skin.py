"""Drawing of a structure of nodes: lines between neighbouring nodes, or the triangles of its surface.

Matrices define which nodes are coupled, and not which of them an element's edges connect. Of all coupled pairs those
are drawn that have no third node between them, nearer to both than they are to each other. Source: G. T. Toussaint, The
relative neighbourhood graph of a finite planar set, Pattern Recognition 12 (4), 261-268, 1980.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.structures.beam import Array

MOST_NODES = 300  # number of nodes that are drawn
SAME = 1e-9  # relative difference of lengths that is rounding


def pairs(grid: Array, joined: tuple[Array, Array] | None = None) -> Array:
    """Return the lines to draw, (k, 2) indices of nodes.

    Parameters
    ----------
    grid
        Positions of the nodes, (n, 3).
    joined
        First and second nodes of all coupled pairs; by default any two nodes.
    """
    kept, home = few(grid)
    n = len(kept)
    near = np.full((n, n), joined is None)
    if joined is not None:
        near[home[joined[0]], home[joined[1]]] = True
    near &= ~np.eye(n, dtype=bool)
    away = np.linalg.norm(grid[kept][:, None] - grid[kept][None], axis=-1)
    lines = []
    for i, j in np.argwhere(np.triu(near)):
        between = np.maximum(away[i], away[j]) < (1 - SAME) * away[i, j]
        if not np.any(between & near[i] & near[j]):
            lines.append((kept[i], kept[j]))
    return np.array(lines, dtype=int).reshape(-1, 2)


def triangles(grid: Array, faces: Any) -> Array:
    """Return the `faces` of a surface over the nodes `grid`, (k, 3) indices, on at most MOST_NODES nodes."""
    faces = np.asarray(faces, dtype=int)
    used = np.unique(faces)
    kept, home = few(grid[used])
    place = np.full(len(grid), -1)
    place[used] = used[kept][home]
    found = place[faces]
    a, b, c = found.T
    found = found[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(found, axis=1), axis=0, return_index=True)
    return np.asarray(found[np.sort(first)])


def few(grid: Array) -> tuple[Array, Array]:
    """Select at most MOST_NODES nodes of `grid`, one per cell of a regular grid.

    Returns
    -------
    tuple
        Indices of the selected nodes, and for each node the position of its representative among these.
    """
    low, size = grid.min(axis=0), max(float(np.ptp(grid, axis=0).max()), 1e-300)
    if len(grid) <= MOST_NODES:
        return np.arange(len(grid)), np.arange(len(grid))
    cells = 256
    while True:
        at = np.minimum((grid - low) / size * cells, cells - 1).astype(int)
        _, first, home = np.unique(at, axis=0, return_index=True, return_inverse=True)
        if len(first) <= MOST_NODES:
            return first, home.ravel()
        cells = int(cells * 0.8)


def joined(K: Any, each: int) -> tuple[Array, Array]:
    """Return the coupled pairs of nodes in a stiffness matrix `K` with `each` displacements per node."""
    rows, columns = K.nonzero() if hasattr(K, "tocsc") else np.nonzero(K)
    return rows // each, columns // each
