"""Triangle mesh, assembled from the parts of a scene, and its simplification by vertex clustering.

Corners that share a cell of a grid are merged into their centre, and the grid is made coarser until there are few
enough triangles (J. Rossignac, P. Borrel. Multi-resolution 3D approximations for rendering complex scenes. In: Modeling
in Computer Graphics, Springer, 455-465, 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
MAX_NODE_DEPTH = 60  # depth of nested nodes
MAX_NODES, MAX_TRIANGLES = 5_000, 20_000_000  # nodes of a scene, and triangles in all of them
MAX_CELLS = 256  # cells of a simplified mesh along its longest side
PART_COST_TRIANGLES = 50  # triangles that take as long as an empty part
ALWAYS_ALLOWED_TRIANGLES = 1_000_000  # triangles that a file of any size may have


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh with one colour."""

    corners: Array  # (n, 3), m
    triangles: Array  # (k, 3), which corners; counter-clockwise from outside
    colour: tuple[float, float, float] | None = None  # if the file defines one for the whole mesh

    def transformed(self, matrix: Array) -> Mesh:
        """Return the mesh transformed by the 4x4 `matrix`; a reflection reverses the orientation of triangles."""
        corners = self.corners @ matrix[:3, :3].T + matrix[:3, 3]
        turned = self.triangles[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else self.triangles
        return Mesh(corners, turned, self.colour)


def compact_mesh(corners: Array, triangles: Array, colour: tuple[float, float, float] | None = None) -> Mesh:
    """Return a mesh with only those corners that its triangles use.

    Several parts of a file may share one large list of corners, which is not copied for each of them.

    Parameters
    ----------
    corners
        (n, 3), m.
    triangles
        (k, 3), indices of corners.
    colour
        Colour of the mesh.
    """
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(corners)):
        raise ValueError("a triangle refers to a corner that does not exist")
    used, index = np.unique(triangles, return_inverse=True)
    return Mesh(corners[used].astype(float), index.reshape(-1, 3), colour)


class MeshScene:
    """The meshes that the nodes of a file place, within a limit that follows from the size of the file.

    Nodes may refer to the same mesh many times, so that a file of some kilobytes can describe more triangles than fit
    into memory. The limit is checked before a mesh is copied to its place.

    Parameters
    ----------
    size : int
        Bytes of the file with all its buffers. A file may have as many triangles as it has bytes.
    """

    def __init__(self, size: int) -> None:
        self.parts = list[Mesh]()
        self.file_bytes = size
        self.node_count = self.triangle_count = 0

    def count_node(self, deep: int) -> None:
        """Count a node at the depth `deep`."""
        self.node_count += 1
        if deep > MAX_NODE_DEPTH or self.node_count > MAX_NODES:
            raise ValueError(f"nodes nested without end, or more than {MAX_NODES} of them")

    def count_triangles(self, triangles: int) -> None:
        """Count the `triangles` of a part that is about to be read or placed."""
        self.triangle_count += max(PART_COST_TRIANGLES, triangles)
        limit = min(MAX_TRIANGLES, ALWAYS_ALLOWED_TRIANGLES + self.file_bytes)
        if self.triangle_count > limit:
            raise ValueError(f"more than {limit} triangles, the most that are read from a file of this size")

    def add(self, part: Mesh, matrix: Array) -> None:
        """Place a copy of `part`, transformed by the 4x4 `matrix`."""
        self.count_triangles(len(part.triangles))
        self.parts.append(part.transformed(matrix))


def join_meshes(parts: Sequence[Mesh]) -> Mesh:
    """Return the `parts` as one mesh; its colour is that of the largest part."""
    if not parts:
        return Mesh(np.zeros((0, 3)), np.zeros((0, 3), int))
    offsets = np.cumsum([0, *(len(p.corners) for p in parts)])
    triangles = [p.triangles + o for p, o in zip(parts, offsets, strict=False)]
    largest = max(parts, key=lambda p: len(p.triangles))
    return Mesh(np.concatenate([p.corners for p in parts]), np.concatenate(triangles), largest.colour)


def grid_cells(corners: Array, cells: int) -> tuple[int, Array]:
    """Sort `corners` into a grid with `cells` cells along its longest side, at most 2^20.

    Returns
    -------
    tuple
        Number of occupied cells, and the index of each corner's cell.
    """
    low = corners.min(axis=0)
    size = max(float((corners.max(axis=0) - low).max()), 1e-300) / (cells - 1)
    x = np.rint((corners - low) / size).astype(np.int64)
    _, index = np.unique((x[:, 0] << 42) | (x[:, 1] << 21) | x[:, 2], return_inverse=True)
    index = index.reshape(-1)
    return int(index.max()) + 1, index


def cell_means(corners: Array, n: int, index: Array) -> Array:
    """Return the mean of the `corners` in each of `n` cells; `index` is the cell of each corner."""
    counts = np.bincount(index, minlength=n)[:, None]
    means: Array = np.stack([np.bincount(index, corners[:, k], n) for k in range(3)], -1) / counts
    return means


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
