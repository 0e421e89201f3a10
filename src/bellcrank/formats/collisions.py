"""Collision shapes of a URDF or MJCF file as contact shapes (forces/shapes.py), each in a frame of the mechanism.

Boxes, cylinders, capsules and spheres are taken as they are. A mesh becomes the primitive of least volume around its
corners (a box, sphere, cylinder or capsule), along its own axes, which the report lists; a mesh that is missing or too
large is reported and left out. Meshes are read as for pictures (meshes/), so that a link collides where it is drawn.

Of a MuJoCo model also planes and small height fields are taken as they are, and an ellipsoid becomes a primitive like a
mesh. Geoms that touch nothing (no mask, no pair) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ReadError, check_known
from bellcrank.forces.contact import Contact
from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere, Terrain, grid
from bellcrank.formats import robot_file_bytes
from bellcrank.formats.visuals import find_mesh
from bellcrank.formats.xml_elements import XmlElement, parse_xml
from bellcrank.meshes import read_mesh_corners
from bellcrank.model import Mechanism
from bellcrank.model.parts import ORIGIN, Array, Frame, Report, ReportLine, matrix, triple
from bellcrank.model.pose import AngleReader

ROUND_END_TOLERANCE = 0.01  # share of the radius by which points of a mesh may stick out of a round end
MAX_SCALED_COORDINATE = 1e6  # m; of a mesh after its scale
MAX_FIELD_POINTS = 400  # points of a height field; each costs some operations in every contact
GeomShape = tuple[Shape, Array, Array, str]  # shape, rotation and point in the geom's frame, text for the report
Reason = tuple[str, str]  # outcome and level for the report
Maker = Callable[[Any, int], GeomShape | Reason]


def bounding_primitive(points: Array) -> tuple[Shape, Array, Array]:
    """Return the primitive of least volume around `points`, (n, 3): (shape, rotation, centre)."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, np.maximum(high - low, 1e-6)
    offsets = points - middle
    radius = max(float(np.linalg.norm(offsets, axis=1).max()), 1e-6)
    candidates: list[tuple[float, Shape, Array]] = [
        (float(np.prod(size)), Box((float(size[0]), float(size[1]), float(size[2]))), np.eye(3)),
        (4 / 3 * math.pi * radius**3, Sphere(radius), np.eye(3)),
    ]
    for k in range(3):
        turn = np.eye(3)[:, [(k + 1) % 3, (k + 2) % 3, k]]  # z along axis k
        across = max(float(np.linalg.norm(np.delete(offsets, k, axis=1), axis=1).max()), 1e-6)
        length = float(size[k])
        candidates.append((math.pi * across**2 * length, Cylinder(across, length), turn))
        straight = length - 2 * across
        if straight > 0.0:
            volume = math.pi * across**2 * straight + 4 / 3 * math.pi * across**3
            ends = np.abs(offsets[:, k]) - straight / 2  # points in the corners must be inside the round ends
            side = np.linalg.norm(np.delete(offsets, k, axis=1), axis=1)
            if (np.hypot(np.maximum(ends, 0.0), side) <= across * (1 + ROUND_END_TOLERANCE)).all():
                candidates.append((volume, Capsule(across, straight), turn))
    _, shape, turn = min(candidates, key=lambda x: x[0])
    return shape, turn, middle


def bounding_shape(points: Array, what: str) -> tuple[Shape, Array, Array, str]:
    """Return the bounding primitive of `points`, the corners of `what`, and a text for the report."""
    shape, turn, middle = bounding_primitive(points)
    return shape, turn, middle, f"{what}: taken as a {type(shape).__name__.lower()} around it"


class PlacedShapes:
    """Shapes with a frame of the mechanism for each, and lines of the report about them."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism, self.frames = mechanism, dict(mechanism.frames)
        self.shapes, self.lines = dict[str, Shape](), list[ReportLine]()

    def report(self, element: str, outcome: str, level: str = "ok") -> None:
        """Add a line to the report: `element`, its `outcome` and the `level`."""
        self.lines.append(ReportLine(element, outcome, level))

    def add(self, link: str, k: int, shape: Shape, rotation: Array, point: Any) -> str:
        """Add `shape` number `k` of `link`, at `point` with `rotation` in the link's frame; return its frame."""
        base, frame = self.mechanism.frames[link], f"{link}.collision{k}"
        turn = np.asarray(base.rotation, float)
        place = np.asarray(base.point, float) + turn @ point
        self.frames[frame] = Frame(frame, base.body, matrix(turn @ rotation), triple(place))
        self.shapes[frame] = shape
        return frame

    def result(self, source: str) -> tuple[Mechanism, dict[str, Shape], Report]:
        """Return the mechanism with all frames, the shapes by frame, and the report about `source`."""
        return replace(self.mechanism, frames=self.frames), self.shapes, Report(source, tuple(self.lines))


@dataclass(frozen=True, eq=False)
class Collisions:
    """The mechanism with a frame for each shape, the shapes by frame, and a report on every element."""

    mechanism: Mechanism
    shapes: dict[str, Shape]
    report: Report

    def contacts(self, only: Sequence[str] = (), floor: Shape | None = None, **numbers: Any) -> list[Contact]:
        """Return a contact of each shape with the floor.

        Parameters
        ----------
        only : sequence of str
            Links whose shapes are used; all links if empty.
        floor : Shape, optional
            A shape in the ground's frame. By default the planes and terrains that the file has on the ground, or else
            the plane z = 0.
        **numbers
            Stiffness, damping, friction and other arguments of Contact.

        Returns
        -------
        list of Contact
            One contact for each shape and floor.

        Raises
        ------
        ReadError
            If a name in `only` is not a link with a shape.
        """
        links = {frame.rpartition(".collision")[0] for frame in self.shapes}
        for name in only:
            check_known("link with a shape", name, links, f'collisions of "{self.mechanism.name}"', ReadError)
        chosen_shapes = {f: s for f, s in self.shapes.items() if not only or f.rpartition(".collision")[0] in only}
        ground = self.mechanism.ground
        moving_shapes = {f: s for f, s in chosen_shapes.items() if self.mechanism.frames[f].body != ground}
        floors = self._floors() if floor is None else {ground: floor}
        return [
            Contact(f if len(floors) == 1 else f"{f} on {place}", place, f, below, shape, **numbers)
            for f, shape in moving_shapes.items()
            for place, below in floors.items()
        ]

    def _floors(self) -> dict[str, Shape]:
        ground = self.mechanism.ground
        fixed = {f: s for f, s in self.shapes.items() if self.mechanism.frames[f].body == ground}
        return {f: s for f, s in fixed.items() if isinstance(s, Plane | Terrain)} or {ground: Plane()}


@explain_argument_errors
def collisions(path: str | Path, mechanism: Mechanism) -> Collisions:
    """Read the collision shapes of a robot file.

    Parameters
    ----------
    path : path
        The URDF file that `mechanism` was read from (<collision> elements), or an MJCF file (geoms).
    mechanism : Mechanism
        The mechanism of that file.

    Returns
    -------
    Collisions
        The mechanism with a frame for each shape, and the shapes.

    Raises
    ------
    ReadError
        If the file cannot be read.
    """
    file = Path(path)
    root = parse_xml(robot_file_bytes(file), file.name)
    if root.tag == "mujoco":
        return Collisions(*_geom_shapes(file, mechanism))
    if root.tag != "robot":
        raise ReadError(f"{file}: the root element is <{root.tag}>; expected <robot> (URDF) or <mujoco> (MJCF).")
    placed = PlacedShapes(mechanism)
    mesh_corners = cache(_mesh_corners)  # links often share a mesh
    for link in root.children_named("link"):
        name = link.require_attribute("name", "the link's name")
        if name not in mechanism.frames:
            placed.report(f'link "{name}"', "is not in the mechanism: its shapes are left out", "warning")
            continue
        for k, e in enumerate(link.children_named("collision")):
            where, shape_or_reason = f'collision of "{name}"', _shape(e, file, mesh_corners)
            if isinstance(shape_or_reason, str):
                placed.report(where, shape_or_reason, "warning")
                continue
            shape, R, p, description = shape_or_reason
            placed.add(name, k, shape, R, p)
            placed.report(where, description, "note" if description.startswith("mesh") else "ok")
    return Collisions(*placed.result(file.name))


def _shape(
    e: XmlElement, file: Path, mesh_corners: Callable[[Path], Array | ReadError]
) -> tuple[Shape, Array, Any, str] | str:
    """Return (shape, rotation, point, description), or the reason why there is none."""
    R, p = e.origin(AngleReader(), [])
    geometry = e.require_child("geometry")
    if (box := geometry.child("box")) is not None:
        return Box(box.vector("size", ORIGIN)), R, p, "box"
    if (ball := geometry.child("sphere")) is not None:
        return Sphere(ball.number("radius")), R, p, "sphere"
    for tag, kind in (("cylinder", Cylinder), ("capsule", Capsule)):
        if (one := geometry.child(tag)) is not None:
            return kind(one.number("radius"), one.number("length")), R, p, tag
    given = geometry.child("mesh")
    if given is None:
        return "has no shape that is known: left out"
    name = given.require_attribute("filename", "the mesh's file")
    mesh = find_mesh(name, file.parent)
    if mesh is None:
        return f"mesh {name} is not there: left out. Give the file its meshes, or the link a primitive"
    corners = mesh_corners(mesh)
    if isinstance(corners, ReadError):
        return f"mesh: {corners} Left out."
    scale = given.vector("scale", (1.0, 1.0, 1.0))
    scaled = corners * np.array(scale)
    if np.abs(scaled).max() > MAX_SCALED_COORDINATE:
        return f"mesh {name}: its scale {scale} puts corners further away than {MAX_SCALED_COORDINATE:g} m. Left out."
    shape, turn, middle, description = bounding_shape(scaled, f"mesh {mesh.name}")
    return shape, R @ turn, p + R @ middle, description


def _mesh_corners(path: Path) -> Array | ReadError:
    """Return the corners of the mesh in the file `path`, or why it cannot be read."""
    try:
        return read_mesh_corners(path)
    except ReadError as error:
        return error


def _geom_shapes(file: Path, mechanism: Mechanism) -> tuple[Mechanism, dict[str, Shape], Report]:
    """Return `mechanism` with a frame for each shape of the MJCF `file`, the shapes by frame, and a report."""
    from bellcrank.formats.mjcf_model import ElementNames, body_frame_offsets, compile_model, report_names, rotation

    m, warnings = compile_model(None, str(file))
    bodies, names, offset = ElementNames(m).body, report_names(m, "geom"), body_frame_offsets(m)
    paired = set(m.pair_geom1.tolist()) | set(m.pair_geom2.tolist())
    placed, counts = PlacedShapes(mechanism), dict[str, int]()
    for message in warnings:
        placed.report("MuJoCo", message, "warning")
    for i, name in enumerate(names):
        where, body = f'geom "{name}"', bodies[m.geom_bodyid[i]]
        made = _geom_shape(m, i, i in paired)
        if body not in mechanism.frames:
            made = f'its body "{body}" is not in the mechanism: left out', "warning"
        if len(made) == 2:
            placed.report(where, *made)
            continue
        shape, turn, middle, description = made
        G = rotation(m.geom_quat[i])
        point = m.geom_pos[i] - offset[m.geom_bodyid[i]] + G @ middle
        frame = placed.add(body, counts.setdefault(body, 0), shape, G @ turn, point)
        counts[body] += 1
        placed.report(where, f"{description}, frame {frame}", "note" if "taken as" in description else "ok")
    placed.lines += _unused(m, len(placed.shapes))
    return placed.result(file.name)


def _geom_shape(m: Any, i: int, paired: bool) -> GeomShape | Reason:
    """Return the shape of a geom, or the reason why there is none."""
    if not (m.geom_contype[i] or m.geom_conaffinity[i] or paired):
        return "touches nothing (contype and conaffinity are 0): left out", "ok"
    kind = int(m.geom_type[i])
    if kind not in SHAPE_MAKERS:
        return "signed distance field or other shape that is not known: left out", "warning"
    return SHAPE_MAKERS[kind](m, i)


def _of_size(shape_of: Callable[[list[float]], Shape]) -> Maker:
    """Return the maker of a geom that is the shape of its size as it is."""

    def made(m: Any, i: int) -> GeomShape:
        shape = shape_of([float(x) for x in m.geom_size[i]])
        return shape, np.eye(3), np.zeros(3), type(shape).__name__.lower()

    return made


def _height_field(m: Any, i: int) -> GeomShape | Reason:
    k = m.geom_dataid[i]
    rows, columns, start = int(m.hfield_nrow[k]), int(m.hfield_ncol[k]), m.hfield_adr[k]
    if rows * columns > MAX_FIELD_POINTS:
        return f"height field of {rows} x {columns} points: left out, the most is {MAX_FIELD_POINTS}", "warning"
    along, across, high, _ = (float(x) for x in m.hfield_size[k])
    heights = m.hfield_data[start : start + rows * columns].reshape(rows, columns).T * high
    xs, ys = np.linspace(-along, along, columns), np.linspace(-across, across, rows)
    field = Terrain(grid(xs.tolist(), ys.tolist(), heights.tolist()))
    return field, np.eye(3), np.zeros(3), "height field, bilinear, and level beyond its edges"


def _ellipsoid(m: Any, i: int) -> GeomShape:
    turns = np.linspace(0.0, 2.0 * np.pi, 49)
    a, b = np.meshgrid(turns, turns[:25])
    ball = np.stack([np.cos(a) * np.sin(b), np.sin(a) * np.sin(b), np.cos(b)], axis=-1).reshape(-1, 3)
    return bounding_shape(ball * m.geom_size[i], "ellipsoid")


def _mesh_geom(m: Any, i: int) -> GeomShape:
    k = m.geom_dataid[i]
    start = m.mesh_vertadr[k]
    return bounding_shape(np.asarray(m.mesh_vert[start : start + m.mesh_vertnum[k]], float), "mesh")


# By MuJoCo's mjtGeom.
SHAPE_MAKERS: dict[int, Maker] = {
    0: _of_size(lambda s: Plane()),
    1: _height_field,
    2: _of_size(lambda s: Sphere(s[0])),
    3: _of_size(lambda s: Capsule(s[0], 2.0 * s[1])),
    4: _ellipsoid,
    5: _of_size(lambda s: Cylinder(s[0], 2.0 * s[1])),
    6: _of_size(lambda s: Box((2.0 * s[0], 2.0 * s[1], 2.0 * s[2]))),
    7: _mesh_geom,
}


def _unused(m: Any, shapes: int) -> Iterator[ReportLine]:
    """Yield report lines for the contact settings of geoms and pairs, which are not used."""
    if shapes:
        text = "contype, conaffinity, condim, friction, margin, gap, priority, solmix, solref and solimp are not used: "
        text += "give contacts() stiffness, damping and friction, and the links that touch"
        yield ReportLine("geoms", text, "note")
    for what, field in (("surfacevel", "geom_surfacevel"), ("adhesion", "geom_adhesion")):
        if np.any(getattr(m, field, 0.0)):
            yield ReportLine("geoms", f"{what} is not used", "warning")
    floor_alone = "not used: contacts() has every shape on the floor alone"
    for count, what, text, level in (
        (m.npair, "contact pairs", floor_alone, "warning"),
        (m.nexclude, "excluded pairs", floor_alone, "note"),
        (m.nflex, "flexes", "their shapes are not used", "warning"),
    ):
        if count:
            yield ReportLine(f"{count} {what}", text, level)
