"""Readers of files with a scene: COLLADA (.dae) and glTF 2.0 (.glb; .gltf with its buffers inside or beside it).

Meshes are placed by the nodes of the scene, COLLADA's in the file's unit. A declared up axis is ignored, and glTF's y
stays what it is: a robot's mesh is in its link's axes as it is, according to URDF, RViz and other readers. Animations,
skins and textures are left out.

COLLADA: triangles, strips, fans, polylists and polygons of <mesh>, without the holes of polygons, and the diffuse
colour of materials. Parsing is defusedxml's: no DTD, no entities, nothing external.

glTF: triangles with float positions, and the base colour.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.meshes.mesh import Array, Mesh, MeshScene, compact_mesh, join_meshes

FACE_LISTS = ("triangles", "tristrips", "trifans", "polylist", "polygons")
COMPONENT_TYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
ELEMENT_SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
TRIANGLES_MODE = 4  # mode of a primitive
MAX_BYTES = 100_000_000  # size of the file and its buffers


def read_dae(file: Path) -> Mesh:
    """Return the mesh in `file`."""
    from defusedxml.ElementTree import fromstring

    data = file.read_bytes()
    try:
        root = fromstring(data)
    except Exception as error:  # whatever defusedxml and expat raise, it is not COLLADA
        raise ValueError(f"not readable XML: {error}") from None
    for e in root.iter():
        e.tag = e.tag.rpartition("}")[2]
    ids = {e.get("id"): e for e in root.iter() if e.get("id")}
    reader = _ColladaReader(ids, len(data))
    scene_instance = root.find("scene/instance_visual_scene")
    scene = ids.get(_ref(scene_instance.get("url"))) if scene_instance is not None else root.find(".//visual_scene")
    unit_matrix = np.eye(4)
    unit = root.find("asset/unit")
    metres = float(unit.get("meter", "1") if unit is not None else 1)
    if not 0.0 < metres < math.inf:
        raise ValueError(f"a unit of {metres:g} m; expected a positive number")
    unit_matrix[:3, :3] *= metres
    if scene is not None:
        for node in scene.findall("node"):
            reader.node(node, unit_matrix, 0)
    if not reader.scene.parts:
        for geometry in root.iter("geometry"):
            reader.geometry(geometry, unit_matrix, {})
    return join_meshes(reader.scene.parts)


class _ColladaReader:
    """Reads each element once, however often nodes refer to it."""

    def __init__(self, ids: dict[Any, Any], size: int) -> None:
        self.ids, self.scene = ids, MeshScene(size)
        self.matrix, self.parts, self.bindings = cache(_collada_matrix), cache(self._parts), cache(_bindings)
        self.corners, self.colour = cache(_corners), cache(self._colour)

    def node(self, e: Any, above: Array, deep: int) -> None:
        self.scene.count_node(deep)
        placement = above @ self.matrix(e)
        for instance in e.findall("instance_geometry"):
            geometry = self.ids.get(_ref(instance.get("url")))
            if geometry is not None:
                self.geometry(geometry, placement, self.bindings(instance))
        for instance in e.findall("instance_node"):
            other = self.ids.get(_ref(instance.get("url")))
            if other is not None:
                self.node(other, placement, deep + 1)
        for child in e.findall("node"):
            self.node(child, placement, deep + 1)

    def geometry(self, e: Any, matrix: Array, bound: dict[Any, Any]) -> None:
        self.scene.count_triangles(1)
        for symbol, part in self.parts(e):
            self.scene.add(replace(part, colour=self.colour(bound.get(symbol, symbol))), matrix)

    def _parts(self, e: Any) -> list[tuple[Any, Mesh]]:
        """Return (symbol of the material, mesh) for each list of faces of a geometry."""
        parts = []
        for mesh in e.findall("mesh"):
            for kind in FACE_LISTS:
                for faces in mesh.findall(kind):
                    corners_and_faces = self._faces(faces, kind)
                    if corners_and_faces is not None:
                        parts.append((faces.get("material"), compact_mesh(*corners_and_faces)))
        return parts

    def _faces(self, e: Any, kind: str) -> tuple[Array, Array] | None:
        inputs = e.findall("input")
        width = 1 + max((int(i.get("offset", "0")) for i in inputs), default=0)
        place = next((i for i in inputs if i.get("semantic") == "VERTEX"), None)
        if place is None:
            return None
        source = self.ids[_ref(place.get("source"))]
        position = next(i for i in source.findall("input") if i.get("semantic") == "POSITION")
        corners = self.corners(self.ids[_ref(position.get("source"))])
        rows = [
            np.array((p.text or "").split(), int).reshape(-1, width)[:, int(place.get("offset", "0"))]
            for p in (*e.findall("p"), *e.findall("ph/p"))
        ]
        if not rows:
            return None
        if kind == "triangles":
            return corners, np.concatenate(rows).reshape(-1, 3)
        if kind != "polylist":
            cut_row = _strip if kind == "tristrips" else _fan
            return corners, np.array([t for r in rows for t in cut_row(r)], int).reshape(-1, 3)
        counts = [int(n) for n in (e.findtext("vcount") or "").split()]
        if min(counts, default=0) < 0:
            raise ValueError("a face with a negative number of corners")
        ends = np.cumsum(counts)
        cut = [t for a, b in zip(ends - counts, ends, strict=True) for t in _fan(rows[0][a:b])]
        return corners, np.array(cut, int).reshape(-1, 3)

    def _colour(self, material: Any) -> tuple[float, float, float] | None:
        """Return the diffuse colour of a material's effect."""
        element = self.ids.get(_ref(material)) if material else None
        link = element.find("instance_effect") if element is not None else None
        effect = self.ids.get(_ref(link.get("url"))) if link is not None else None
        text = effect.findtext(".//diffuse/color") if effect is not None else None
        numbers = [float(x) for x in text.split()] if text else []
        return (numbers[0], numbers[1], numbers[2]) if len(numbers) >= 3 else None


def _bindings(instance: Any) -> dict[Any, Any]:
    return {m.get("symbol"): m.get("target") for m in instance.iter("instance_material")}


def _corners(source: Any) -> Array:
    """Return the corners in a <source>, (n, 3), without other numbers that its accessor skips."""
    numbers = np.array(source.find("float_array").text.split(), float)
    accessor = source.find("technique_common/accessor")
    given = accessor.attrib if accessor is not None else {}
    stride, offset = max(3, int(given.get("stride", "3"))), int(given.get("offset", "0"))
    corners: Array = numbers[offset:].reshape(-1, stride)[:, :3]
    return corners


def _fan(corners: Any) -> list[tuple[int, int, int]]:
    return [(int(corners[0]), int(corners[k]), int(corners[k + 1])) for k in range(1, len(corners) - 1)]


def _strip(corners: Any) -> list[tuple[int, int, int]]:
    """Return the triangles of a strip, of which every second one lists its corners clockwise."""
    c = [int(x) for x in corners]
    return [(c[k], c[k + 1 + k % 2], c[k + 2 - k % 2]) for k in range(len(c) - 2)]


def _ref(url: Any) -> str:
    return str(url or "").removeprefix("#")


def _collada_matrix(node: Any) -> Array:
    """Return the product of all transformations of a node, in their order."""
    product = np.eye(4)
    for e in node:
        x = [float(a) for a in (e.text or "").split()] if e.tag in ("matrix", "translate", "rotate", "scale") else []
        step = np.eye(4)
        if e.tag == "matrix":
            step = np.array(x).reshape(4, 4)
        elif e.tag == "translate":
            step[:3, 3] = x
        elif e.tag == "scale":
            step[:3, :3] = np.diag(x)
        elif e.tag == "rotate":
            step[:3, :3] = rotation_about(x[:3], np.radians(x[3]))
        product = product @ step
    return product


def rotation_about(axis: Any, angle: float) -> Array:
    """Return the matrix of a rotation by `angle` about `axis` (Rodrigues)."""
    e = np.asarray(axis, float) / max(float(np.linalg.norm(axis)), 1e-300)
    K = np.array([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
    R: Array = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
    return R


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
        placement = above @ _gltf_matrix(e)
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


def _gltf_matrix(e: dict[str, Any]) -> Array:
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
