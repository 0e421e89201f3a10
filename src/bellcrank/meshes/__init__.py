"""Triangle meshes from files, for drawing only: STL, OBJ, COLLADA (.dae) and glTF (.gltf, .glb), without textures."""

from __future__ import annotations

from bellcrank.meshes.clusters import simpler
from bellcrank.meshes.mesh import Mesh
from bellcrank.meshes.reading import LARGEST, read_mesh

__all__ = ["LARGEST", "Mesh", "read_mesh", "simpler"]
