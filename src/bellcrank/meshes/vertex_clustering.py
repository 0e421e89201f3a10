"""Mesh simplification by vertex clustering: corners that share a cell of a grid are merged into their centre.

Source: J. Rossignac, P. Borrel. Multi-resolution 3D approximations for rendering complex scenes. In: Modeling in
Computer Graphics, Springer, 455-465, 1993. The grid is made coarser until there are few enough triangles.
"""

from __future__ import annotations

import numpy as np

from bellcrank.meshes.mesh import Mesh, cell_means, grid_cells

MAX_CELLS = 256  # cells along the longest side


def simplify(mesh: Mesh, most: int) -> Mesh:
    """Return `mesh` with at most `most` triangles, or `mesh` itself if it has no more."""
    cells = min(MAX_CELLS, int(2.0 * most**0.5) + 4)  # a surface goes through about cells^2 of them
    simplified = mesh
    while len(simplified.triangles) > most and cells >= 4:
        simplified = _clustered(mesh, cells)
        cells = int(cells * 0.75)
    return simplified


def _clustered(mesh: Mesh, cells: int) -> Mesh:
    n, index = grid_cells(mesh.corners, cells)
    t = index[mesh.triangles]
    t = t[(t[:, 0] != t[:, 1]) & (t[:, 1] != t[:, 2]) & (t[:, 2] != t[:, 0])]
    a, b, c = np.sort(t, axis=1).T.astype(np.int64)
    _, first = np.unique((a << 42) | (b << 21) | c, return_index=True)
    return Mesh(cell_means(mesh.corners, n, index), t[np.sort(first)], mesh.colour)
