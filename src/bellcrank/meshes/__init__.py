"""Triangle meshes from files: STL, OBJ, COLLADA (.dae) and glTF (.gltf, .glb), without textures.

Pictures and collision shapes use the same readers, so that a file has the same size and place in both.
"""

from __future__ import annotations

from bellcrank.meshes.mesh import Mesh, simplify
from bellcrank.meshes.mesh_reader import MAX_MESH_BYTES, read_mesh, read_mesh_corners

__all__ = ["MAX_MESH_BYTES", "Mesh", "read_mesh", "read_mesh_corners", "simplify"]
