"""Drawing of a structure of nodes: lines between neighbouring nodes, or the triangles of its surface.

Matrices define which nodes are coupled, and not which of them an element's edges connect. Of all coupled pairs those
are drawn that have no third node between them, nearer to both than they are to each other. Source: G. T. Toussaint, The
relative neighbourhood graph of a finite planar set, Pattern Recognition 12 (4), 261-268, 1980.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.structures.beam import Array

MAX_DRAWN_NODES = 300  # number of nodes that are drawn
LENGTH_TOLERANCE = 1e-9  # relative difference of lengths that is rounding


def neighbour_lines(grid: Array, joined: tuple[Array, Array] | None = None) -> Array:
    """Return the lines to draw, (k, 2) indices of nodes.

    Parameters
    ----------
    grid
        Positions of the nodes, (n, 3).
    joined
        First and second nodes of all coupled pairs; by default any two nodes.
    """
    nodes, representatives = select_nodes(grid)
    n = len(nodes)
    coupled = np.full((n, n), joined is None)
    if joined is not None:
        coupled[representatives[joined[0]], representatives[joined[1]]] = True
    coupled &= ~np.eye(n, dtype=bool)
    distances = np.linalg.norm(grid[nodes][:, None] - grid[nodes][None], axis=-1)
    lines = []
    for i, j in np.argwhere(np.triu(coupled)):
        between = np.maximum(distances[i], distances[j]) < (1 - LENGTH_TOLERANCE) * distances[i, j]
        if not np.any(between & coupled[i] & coupled[j]):
            lines.append((nodes[i], nodes[j]))
    return np.array(lines, dtype=int).reshape(-1, 2)


def surface_triangles(grid: Array, faces: Any) -> Array:
    """Return the `faces` of a surface over the nodes `grid`, (k, 3) indices, on at most MAX_DRAWN_NODES nodes."""
    faces = np.asarray(faces, dtype=int)
    used = np.unique(faces)
    selected, home = select_nodes(grid[used])
    place = np.full(len(grid), -1)
    place[used] = used[selected][home]
    triangles = place[faces]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    return np.asarray(triangles[np.sort(first)])


def select_nodes(grid: Array) -> tuple[Array, Array]:
    """Select at most MAX_DRAWN_NODES nodes of `grid`, one per cell of a regular grid.

    Returns
    -------
    tuple
        Indices of the selected nodes, and for each node the position of its representative among these.
    """
    low, size = grid.min(axis=0), max(float(np.ptp(grid, axis=0).max()), 1e-300)
    if len(grid) <= MAX_DRAWN_NODES:
        return np.arange(len(grid)), np.arange(len(grid))
    cells = 256
    while True:
        cell_indices = np.minimum((grid - low) / size * cells, cells - 1).astype(int)
        _, first, representatives = np.unique(cell_indices, axis=0, return_index=True, return_inverse=True)
        if len(first) <= MAX_DRAWN_NODES:
            return first, representatives.ravel()
        cells = int(cells * 0.8)


def coupled_nodes(K: Any, each: int) -> tuple[Array, Array]:
    """Return the coupled pairs of nodes in a stiffness matrix `K` with `each` displacements per node."""
    rows, columns = K.nonzero() if hasattr(K, "tocsc") else np.nonzero(K)
    return rows // each, columns // each
