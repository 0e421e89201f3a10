"""Choice of a mesh reader by file suffix, and validation of its result."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bellcrank.errors import ReadError, brief
from bellcrank.files import DAMAGED_FILE_ERRORS
from bellcrank.meshes.collada import read_dae
from bellcrank.meshes.gltf import read_gltf
from bellcrank.meshes.mesh import Array, Mesh
from bellcrank.meshes.obj import read_obj
from bellcrank.meshes.stl import read_stl

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
