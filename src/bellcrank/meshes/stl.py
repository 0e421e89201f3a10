"""Reader of STL: a list of triangles, binary or text; corners in the same place are merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bellcrank.meshes.mesh import Mesh, cell_means, grid_cells

HEADER_BYTES, TRIANGLE_BYTES = 84, 50  # bytes
MERGE_CELLS = 1 << 20  # part of the size: corners closer than this are merged


def read_stl(file: Path) -> Mesh:
    """Return the mesh in `file`."""
    data = file.read_bytes()
    count = int.from_bytes(data[80:HEADER_BYTES], "little") if len(data) >= HEADER_BYTES else 0
    if len(data) == HEADER_BYTES + TRIANGLE_BYTES * count and count:
        rows = np.frombuffer(data, np.uint8, TRIANGLE_BYTES * count, HEADER_BYTES).reshape(count, TRIANGLE_BYTES)
        corners = rows[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(float)
    else:
        words = data.decode("utf-8", "replace").split()
        places = [i for i, w in enumerate(words) if w == "vertex"]
        corners = np.array([[float(x) for x in words[i + 1 : i + 4]] for i in places]).reshape(-1, 3)
        if len(corners) % 3 or not len(corners):
            raise ValueError("neither a binary nor a text STL")
    if not np.isfinite(corners).all():
        raise ValueError("corners that are not finite")
    n, index = grid_cells(corners, MERGE_CELLS)
    return Mesh(cell_means(corners, n, index), index.reshape(-1, 3))
