"""Triangle meshes from files, for drawing only: STL, OBJ, COLLADA (.dae) and glTF (.gltf, .glb), without textures."""

from __future__ import annotations

from bellcrank.meshes.mesh import Mesh
from bellcrank.meshes.mesh_reader import MAX_MESH_BYTES, read_mesh
from bellcrank.meshes.vertex_clustering import simplify

__all__ = ["MAX_MESH_BYTES", "Mesh", "read_mesh", "simplify"]
