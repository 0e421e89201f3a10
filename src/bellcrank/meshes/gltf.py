"""Reader of glTF 2.0: .glb, and .gltf with its buffers inside or beside it; meshes are placed by the scene's nodes.

glTF has y up, but a robot's mesh is in the link's axes as it is, according to URDF: it is not rotated. Triangles with
float positions are read, and the base colour. Skins, animations and textures are left out.
"""

from __future__ import annotations

import base64
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.meshes.mesh import Array, Mesh, MeshScene, compact_mesh, join_meshes

COMPONENT_TYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
ELEMENT_SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
TRIANGLES_MODE = 4  # mode of a primitive
MAX_BYTES = 100_000_000  # size of the file and its buffers


def read_gltf(file: Path) -> Mesh:
    """Return the mesh in `file`."""
    data = file.read_bytes()
    text, inside = _chunks(data) if data[:4] == b"glTF" else (data, b"")
    reader = _GltfReader(json.loads(text), file.parent, inside, len(data))
    given = reader.given
    scenes, nodes = given.get("scenes", []), range(len(given.get("nodes", [])))
    for k in scenes[given.get("scene", 0)].get("nodes", []) if scenes else nodes:
        reader.node(k, np.eye(4), 0)
    return join_meshes(reader.scene.parts)


def _chunks(data: bytes) -> tuple[bytes, bytes]:
    """Return the JSON and the binary chunk of a .glb."""
    chunks, offset = dict[int, bytes](), 12
    while offset + 8 <= len(data):
        size, kind = struct.unpack_from("<II", data, offset)
        chunks.setdefault(kind, data[offset + 8 : offset + 8 + size])
        offset += 8 + size
    return chunks[0x4E4F534A], chunks.get(0x004E4942, b"")


class _GltfReader:
    """Reads each buffer, accessor and primitive once, however often nodes refer to it."""

    def __init__(self, given: dict[str, Any], folder: Path, inside: bytes, size: int) -> None:
        self.given, self.folder, self.inside = given, folder, inside
        self.scene = MeshScene(size)
        self.buffer, self.array, self.mesh = cache(self._buffer), cache(self._array), cache(self._mesh)

    def node(self, k: int, above: Array, deep: int) -> None:
        self.scene.count_node(deep)
        e = self.given["nodes"][k]
        placement = above @ _matrix(e)
        for part in self.mesh(e["mesh"]) if "mesh" in e else ():
            self.scene.add(part, placement)
        for child in e.get("children", []):
            self.node(child, placement, deep + 1)

    def _mesh(self, k: int) -> list[Mesh]:
        return [
            self._part(e)
            for e in self.given["meshes"][k]["primitives"]
            if e.get("mode", TRIANGLES_MODE) == TRIANGLES_MODE
        ]

    def _part(self, e: dict[str, Any]) -> Mesh:
        corners = self.array(e["attributes"]["POSITION"])
        index = self.array(e["indices"]).reshape(-1) if "indices" in e else np.arange(len(corners))
        self.scene.count_triangles(index.size // 3)
        return compact_mesh(corners, index.astype(int).reshape(-1, 3), self._colour(e.get("material")))

    def _array(self, k: int) -> Array:
        a = self.given["accessors"][k]
        view = self.given["bufferViews"][a["bufferView"]]
        kind, width = np.dtype(COMPONENT_TYPES[a["componentType"]]), ELEMENT_SIZES[a["type"]]
        data = self.buffer(view["buffer"])
        offset, element = view.get("byteOffset", 0) + a.get("byteOffset", 0), kind.itemsize * width  # bytes
        stride = view.get("byteStride", element)
        needed = offset + stride * (a["count"] - 1) + element
        if a["count"] < 1 or offset < 0 or stride < element or needed > len(data):
            raise ValueError("an accessor beyond its buffer")
        whole = np.frombuffer(data, np.uint8)[offset:needed]
        array: Array = np.lib.stride_tricks.as_strided(whole, (a["count"], element), (stride, 1)).copy().view(kind)
        return array

    def _buffer(self, k: int) -> bytes:
        e = self.given["buffers"][k]
        uri: str | None = e.get("uri")
        if uri is None:
            return self.inside
        if uri.startswith("data:"):
            return base64.b64decode(uri.partition(",")[2])
        file = (self.folder / uri).resolve()
        if not file.is_relative_to(self.folder.resolve()):
            raise ValueError(f"a buffer outside of its folder: {uri}")
        if not file.is_file():
            raise ValueError(f"a buffer that is not a plain file: {uri}")
        self.scene.file_bytes += file.stat().st_size
        if self.scene.file_bytes > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES / 1e6:.0f} MB of buffers")
        return file.read_bytes()

    def _colour(self, k: int | None) -> tuple[float, float, float] | None:
        if k is None:
            return None
        factor = self.given["materials"][k].get("pbrMetallicRoughness", {}).get("baseColorFactor")
        return (float(factor[0]), float(factor[1]), float(factor[2])) if factor else None


def _matrix(e: dict[str, Any]) -> Array:
    if "matrix" in e:
        return np.array(e["matrix"], float).reshape(4, 4).T
    matrix = np.eye(4)
    x, y, z, w = e.get("rotation", (0.0, 0.0, 0.0, 1.0))
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    matrix[:3, :3] = matrix[:3, :3] @ np.diag(e.get("scale", (1.0, 1.0, 1.0)))
    matrix[:3, 3] = e.get("translation", (0.0, 0.0, 0.0))
    return matrix
