"""Reader of Wavefront OBJ: corners (v) and faces (f), which are cut into triangles; materials are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bellcrank.meshes.mesh import Mesh


def read_obj(file: Path) -> Mesh:
    """Return the mesh in `file`."""
    corners: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            word, *fields = line.split() or [""]
            if word == "v":
                corners.append([float(x) for x in fields[:3]])
            elif word == "f":
                indices = [int(x.split("/")[0]) for x in fields]
                indices = [k - 1 if k > 0 else len(corners) + k for k in indices]
                triangles += [(indices[0], indices[k], indices[k + 1]) for k in range(1, len(indices) - 1)]
    return Mesh(np.array(corners, float).reshape(-1, 3), np.array(triangles, int).reshape(-1, 3))
