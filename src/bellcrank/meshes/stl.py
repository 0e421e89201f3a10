"""Reader of STL: a list of triangles, binary or text; corners in the same place are merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bellcrank.meshes.mesh import Mesh, middles, sorted_out

HEAD, EACH = 84, 50  # bytes
SAME = 1 << 20  # part of the size: corners closer than this are merged


def read_stl(file: Path) -> Mesh:
    """Return the mesh in `file`."""
    data = file.read_bytes()
    count = int.from_bytes(data[80:HEAD], "little") if len(data) >= HEAD else 0
    if len(data) == HEAD + EACH * count and count:
        rows = np.frombuffer(data, np.uint8, EACH * count, HEAD).reshape(count, EACH)
        corners = rows[:, 12:48].copy().view("<f4").reshape(-1, 3).astype(float)
    else:
        words = data.decode("utf-8", "replace").split()
        places = [i for i, w in enumerate(words) if w == "vertex"]
        corners = np.array([[float(x) for x in words[i + 1 : i + 4]] for i in places]).reshape(-1, 3)
        if len(corners) % 3 or not len(corners):
            raise ValueError("neither a binary nor a text STL")
    if not np.isfinite(corners).all():
        raise ValueError("corners that are not finite")
    n, index = sorted_out(corners, SAME)
    return Mesh(middles(corners, n, index), index.reshape(-1, 3))
