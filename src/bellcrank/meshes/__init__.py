"""Triangles from files: STL, OBJ, COLLADA (.dae) and glTF (.gltf, .glb), for pictures alone. Textures are left out."""

from __future__ import annotations

from bellcrank.meshes.mesh import Mesh
from bellcrank.meshes.reading import LARGEST, read_mesh
from bellcrank.meshes.simpler import simpler

__all__ = ["LARGEST", "Mesh", "read_mesh", "simpler"]
