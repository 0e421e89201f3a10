"""Reader of COLLADA (.dae): geometries placed by the nodes of a scene, in the file's unit.

The declared up axis is ignored, as in RViz and other readers of robots: a mesh is in its link's axes as it is.
Triangles, strips, fans, polylists and polygons of <mesh> are read, without the holes of polygons, and the diffuse
colour of materials. Animations, skins and textures are left out. Parsing is defusedxml's: no DTD, no entities, nothing
external.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.meshes.mesh import Array, Mesh, MeshScene, compact_mesh, join_meshes

FACE_LISTS = ("triangles", "tristrips", "trifans", "polylist", "polygons")


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
        self.matrix, self.parts, self.bindings = cache(_matrix), cache(self._parts), cache(_bindings)
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


def _matrix(node: Any) -> Array:
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
