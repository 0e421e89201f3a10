"""Visuals of a URDF: meshes and simple shapes, placed on the bodies that the links became.

They are read only for drawing, from the file that the mechanism came from, and do not affect the motion. A missing or
unreadable mesh is reported, and the body is drawn from its joints instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import BellcrankError
from bellcrank.formats.xml_elements import XmlElement, parse_xml
from bellcrank.meshes import Mesh, read_mesh
from bellcrank.model import Array, Mechanism
from bellcrank.model.pose import AngleReader

SIDES = 24  # sides of round shapes
MAX_VISUALS = 400  # visuals of one robot
GREY = (0.75, 0.76, 0.78)
Colour = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Visual:
    """One visual of a link."""

    body: int  # index in the mechanism; -1 for the ground
    mesh: Mesh  # in the body's frame
    colour: Colour


def read_visuals(m: Mechanism) -> tuple[list[Visual], list[str]]:
    """Return the visuals of all links of `m`, and messages about missing ones; both are empty without a URDF."""
    source = Path(m.report.source)
    if source.suffix.lower() not in (".urdf", ".xml") or not source.is_file():
        return [], []
    try:
        robot = parse_xml(source.read_bytes(), str(source))
    except BellcrankError:
        return [], []
    if robot.tag != "robot":
        return [], []
    colours = {e.get("name"): _rgba(e) for e in robot.children_named("material")}
    result, notes, mesh_cache = list[Visual](), list[str](), dict[str, Mesh]()
    for link in robot.children_named("link"):
        link_pose = _link_pose(m, link.get("name") or "")
        if link_pose is None:
            continue
        for e in list(link.children_named("visual"))[: MAX_VISUALS - len(result)]:
            try:
                result.append(_visual(e, source.parent, *link_pose, colours, mesh_cache))
            except BellcrankError as error:
                notes.append(str(error))
    return result, notes


def _link_pose(m: Mechanism, link: str) -> tuple[int, Array] | None:
    """Return the body that a link became part of, and the link's frame in it."""
    names = [b.name for b in m.bodies]
    if link in names:
        return names.index(link), np.eye(4)
    if link == m.ground:
        return -1, np.eye(4)
    if link not in m.frames:
        return None
    f = m.frames[link]
    return (names.index(f.body) if f.body in names else -1), _pose(f.rotation, f.point)


def _pose(rotation: Any, point: Any) -> Array:
    return np.vstack([np.column_stack([np.array(rotation, float), np.array(point, float)]), [0.0, 0.0, 0.0, 1.0]])


def _visual(
    e: XmlElement,
    folder: Path,
    body: int,
    frame: Array,
    colours: dict[str | None, Colour | None],
    known: dict[str, Mesh],
) -> Visual:
    geometry = e.require_child("geometry")
    mesh = _shape(geometry, folder, known).transformed(frame @ _pose(*e.origin(AngleReader(0.0), [])))
    material = e.child("material")
    colour = (_rgba(material) or colours.get(material.get("name"))) if material is not None else None
    return Visual(body, mesh, colour or mesh.colour or GREY)


def _shape(e: XmlElement, folder: Path, known: dict[str, Mesh]) -> Mesh:
    if (b := e.child("box")) is not None:
        return _box(np.array(b.vector("size", (0.0, 0.0, 0.0))) / 2)
    if (c := e.child("cylinder")) is not None:
        r, h = c.number("radius"), c.number("length") / 2
        return _surface_of_revolution([(-h, 0.0), (-h, r), (h, r), (h, 0.0)])
    if (s := e.child("sphere")) is not None:
        r = s.number("radius")
        return _surface_of_revolution([(-r * math.cos(a), r * math.sin(a)) for a in np.linspace(0.0, math.pi, SIDES)])
    given = e.require_child("mesh")
    name = given.require_attribute("filename", "the file of a mesh")
    file = find_mesh(name, folder)
    if file is None:
        raise given.error(f'"{name}" is neither beside the file nor in a folder above it; put it there.')
    if str(file) not in known:
        known[str(file)] = read_mesh(file)
    scale = np.diag((*given.vector("scale", (1.0, 1.0, 1.0)), 1.0))
    return known[str(file)].transformed(scale)


def find_mesh(name: str, folder: Path) -> Path | None:
    """Return the path of the mesh `name` beside the file in `folder`, or in the package that contains it."""
    inner = re.sub(r"^(package|model|file)://", "", name)
    for above in [folder, *folder.resolve().parents]:
        for tail in (inner, inner.partition("/")[2]):
            if tail and (above / tail).is_file():
                return above / tail
    return None


def _rgba(e: XmlElement) -> Colour | None:
    colour = e.child("color")
    numbers = (colour.get("rgba") or "").split() if colour is not None else []
    try:
        r, g, b = (min(max(float(x), 0.0), 1.0) for x in numbers[:3])
    except ValueError:
        return None
    return r, g, b


def _box(half: Array) -> Mesh:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Mesh(corners, np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))]))


def _surface_of_revolution(outline: list[tuple[float, float]]) -> Mesh:
    """Return a surface of revolution about z, from rings of (height, radius)."""
    angles = 2 * math.pi * np.arange(SIDES) / SIDES
    corners = np.array([[r * math.cos(a), r * math.sin(a), z] for z, r in outline for a in angles])
    return Mesh(corners, np.array(list(_rings(len(outline)))))


def _rings(n: int) -> Iterator[tuple[int, int, int]]:
    for k in range(n - 1):
        for i in range(SIDES):
            a, b = k * SIDES + i, k * SIDES + (i + 1) % SIDES
            yield a, b, b + SIDES
            yield a, b + SIDES, a + SIDES
