"""Geoms of a MuJoCo model as contact shapes (forces/shapes.py), each in a frame of the mechanism.

Planes, spheres, capsules, cylinders, boxes and small height fields are taken as they are. A mesh or an ellipsoid
becomes the primitive of least volume around its points. Geoms that touch nothing (no mask, no pair) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere, Terrain, grid
from bellcrank.formats.collisions import PlacedShapes, bounding_shape
from bellcrank.formats.mjcf_model import ElementNames, body_frame_offsets, compile_model, report_names, rotation
from bellcrank.model import Array, Mechanism, Report, ReportLine

MAX_FIELD_POINTS = 400  # points of a height field; each costs some operations in every contact
GeomShape = tuple[Shape, Array, Array, str]  # shape, rotation and point in the geom's frame, text for the report
Reason = tuple[str, str]  # outcome and level for the report
Maker = Callable[[Any, int], GeomShape | Reason]


def geom_shapes(file: Path, mechanism: Mechanism) -> tuple[Mechanism, dict[str, Shape], Report]:
    """Return `mechanism` with a frame for each shape of the MJCF `file`, the shapes by frame, and a report."""
    m, warnings = compile_model(None, str(file))
    bodies, names, offset = ElementNames(m).body, report_names(m, "geom"), body_frame_offsets(m)
    paired = set(m.pair_geom1.tolist()) | set(m.pair_geom2.tolist())
    placed, counts = PlacedShapes(mechanism), dict[str, int]()
    for message in warnings:
        placed.report("MuJoCo", message, "warning")
    for i, name in enumerate(names):
        where, body = f'geom "{name}"', bodies[m.geom_bodyid[i]]
        made = _shape(m, i, i in paired)
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


def _shape(m: Any, i: int, paired: bool) -> GeomShape | Reason:
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


def _mesh(m: Any, i: int) -> GeomShape:
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
    7: _mesh,
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
