"""Choice of a mesh reader by file suffix, validation of its result, and the readers of STL and Wavefront OBJ.

STL is a list of triangles, binary or text; corners in the same place are merged. OBJ has corners (v) and faces (f),
which are cut into triangles; materials are left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bellcrank.errors import ReadError, brief
from bellcrank.files import DAMAGED_FILE_ERRORS
from bellcrank.meshes.mesh import Array, Mesh, cell_means, grid_cells
from bellcrank.meshes.scene_files import read_dae, read_gltf

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


MAX_MESH_BYTES = 100_000_000  # bytes; a larger mesh takes minutes and too much memory
READERS = {".stl": read_stl, ".obj": read_obj, ".dae": read_dae, ".gltf": read_gltf, ".glb": read_gltf}
MAX_COORDINATE = 1e6  # m; largest coordinate of a corner


def read_mesh(path: str | os.PathLike[str]) -> Mesh:
    """Return the triangles in the file `path`; an error names the file and what to do."""
    mesh = _read_checked(Path(path))
    if not len(mesh.triangles):
        raise ReadError(f"{path}: has no triangles.")
    return mesh


def read_mesh_corners(path: str | os.PathLike[str]) -> Array:
    """Return the corners of the triangles in the file `path`, (n, 3), m.

    A file that lists corners and no triangles (a point cloud) has all its corners.
    """
    mesh = _read_checked(Path(path))
    corners = mesh.corners[np.unique(mesh.triangles)] if len(mesh.triangles) else mesh.corners
    if len(corners) < 2:
        raise ReadError(f"{path}: has no triangles, and fewer than two corners.")
    return corners


def _read_checked(file: Path) -> Mesh:
    """Return the mesh in `file`, which may have no triangles."""
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise ReadError(f"{file}: a mesh of the type {file.suffix or '(none)'}; readable are {', '.join(READERS)}.")
    if not file.is_file():
        raise ReadError(f"{file}: the mesh does not exist. Put it there, or read the robot from its original folder.")
    size = file.stat().st_size
    if size > MAX_MESH_BYTES:
        raise ReadError(
            f"{file}: a mesh of {size / 1e6:.0f} MB; at most {MAX_MESH_BYTES / 1e6:.0f} MB are read. "
            "Simplify it, for example in Blender or MeshLab."
        )
    try:
        with np.errstate(all="ignore"):  # values that are not finite are refused below
            mesh = reader(file)
    except (*DAMAGED_FILE_ERRORS, OSError) as error:
        cause = f"{type(error).__name__}: {brief(str(error), 200)}"
        raise ReadError(f"{file}: not a mesh that can be read ({cause}).") from None
    if mesh.triangles.size and (mesh.triangles.min() < 0 or mesh.triangles.max() >= len(mesh.corners)):
        raise ReadError(f"{file}: a triangle refers to a corner that does not exist.")
    if not np.isfinite(mesh.corners).all() or np.abs(mesh.corners).max(initial=0.0) > MAX_COORDINATE:
        raise ReadError(f"{file}: has corners that are not finite, or further away than {MAX_COORDINATE:g} m.")
    if mesh.colour is not None and not all(0.0 <= x <= 1.0 for x in mesh.colour):
        raise ReadError(f"{file}: its colour is {mesh.colour}; expected red, green and blue from 0 to 1.")
    return mesh
