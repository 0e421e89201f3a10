"""Geoms of a MuJoCo model as contact shapes (forces/shapes.py), each in a frame of the mechanism.

Planes, spheres, capsules, cylinders, boxes and small height fields are taken as they are. A mesh or an ellipsoid
becomes the primitive of least volume around its points. Geoms that touch nothing (no mask, no pair) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere, Terrain, grid
from bellcrank.formats.bounding_primitives import bounding_primitive
from bellcrank.formats.mjcf_frames import body_frame_offsets, rotation
from bellcrank.formats.mjcf_names import ElementNames, report_names
from bellcrank.formats.mujoco_process import compile_model
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array, Frame, Report, ReportLine, matrix, triple

MAX_FIELD_POINTS = 400  # points of a height field; each costs some operations in every contact
GeomShape = tuple[Shape, Array, Array, str]  # shape, rotation and point in the geom's frame, text for the report


def geom_shapes(file: Path, mechanism: Mechanism) -> tuple[Mechanism, dict[str, Shape], Report]:
    """Return `mechanism` with a frame for each shape of the MJCF `file`, the shapes by frame, and a report."""
    m, warnings = compile_model(None, str(file))
    bodies, names, offset = ElementNames(m).body, report_names(m, "geom"), body_frame_offsets(m)
    paired = set(m.pair_geom1.tolist()) | set(m.pair_geom2.tolist())
    frames, shapes = dict(mechanism.frames), dict[str, Shape]()
    lines = [ReportLine("MuJoCo", message, "warning") for message in warnings]
    counts: dict[str, int] = {}
    for i, name in enumerate(names):
        where, body = f'geom "{name}"', bodies[m.geom_bodyid[i]]
        shape_or_line = _shape(m, i, i in paired)
        if body not in mechanism.frames:
            shape_or_line = ReportLine(where, f'its body "{body}" is not in the mechanism: left out', "warning")
        if isinstance(shape_or_line, ReportLine):
            lines.append(replace(shape_or_line, element=where))
            continue
        shape, turn, middle, description = shape_or_line
        body_frame = mechanism.frames[body]
        R, p = np.asarray(body_frame.rotation, float), np.asarray(body_frame.point, float)
        G = rotation(m.geom_quat[i])
        frame = f"{body}.collision{counts.setdefault(body, 0)}"
        counts[body] += 1
        point = p + R @ (m.geom_pos[i] - offset[m.geom_bodyid[i]] + G @ middle)
        frames[frame] = Frame(frame, body_frame.body, matrix(R @ G @ turn), triple(point))
        shapes[frame] = shape
        lines.append(ReportLine(where, f"{description}, frame {frame}", "note" if "taken as" in description else "ok"))
    lines += _unused(m, len(shapes))
    return replace(mechanism, frames=frames), shapes, Report(file.name, tuple(lines))


def _shape(m: Any, i: int, paired: bool) -> GeomShape | ReportLine:
    """Return the shape of a geom, or a report line with the reason why there is none."""
    if not (m.geom_contype[i] or m.geom_conaffinity[i] or paired):
        return ReportLine("", "touches nothing (contype and conaffinity are 0): left out")
    kind = int(m.geom_type[i])
    if kind not in SHAPE_MAKERS:
        return ReportLine("", "signed distance field or other shape that is not known: left out", "warning")
    return SHAPE_MAKERS[kind](m, i)


def _plane(m: Any, i: int) -> GeomShape:
    return Plane(), np.eye(3), np.zeros(3), "plane"


def _height_field(m: Any, i: int) -> GeomShape | ReportLine:
    k = m.geom_dataid[i]
    rows, columns, start = int(m.hfield_nrow[k]), int(m.hfield_ncol[k]), m.hfield_adr[k]
    if rows * columns > MAX_FIELD_POINTS:
        text = f"height field of {rows} x {columns} points: left out, the most is {MAX_FIELD_POINTS}"
        return ReportLine("", text, "warning")
    along, across, high, _ = (float(x) for x in m.hfield_size[k])
    heights = m.hfield_data[start : start + rows * columns].reshape(rows, columns).T * high
    xs, ys = np.linspace(-along, along, columns), np.linspace(-across, across, rows)
    field = Terrain(grid(xs.tolist(), ys.tolist(), heights.tolist()))
    return field, np.eye(3), np.zeros(3), "height field, bilinear, and level beyond its edges"


def _sphere(m: Any, i: int) -> GeomShape:
    return Sphere(float(m.geom_size[i][0])), np.eye(3), np.zeros(3), "sphere"


def _elongated(kind: type[Capsule] | type[Cylinder]) -> Callable[[Any, int], GeomShape]:
    def made(m: Any, i: int) -> GeomShape:
        radius, half = (float(x) for x in m.geom_size[i][:2])
        return kind(radius, 2.0 * half), np.eye(3), np.zeros(3), kind.__name__.lower()

    return made


def _box(m: Any, i: int) -> GeomShape:
    x, y, z = (2.0 * float(s) for s in m.geom_size[i])
    return Box((x, y, z)), np.eye(3), np.zeros(3), "box"


def _ellipsoid(m: Any, i: int) -> GeomShape:
    turns = np.linspace(0.0, 2.0 * np.pi, 49)
    a, b = np.meshgrid(turns, turns[:25])
    ball = np.stack([np.cos(a) * np.sin(b), np.sin(a) * np.sin(b), np.cos(b)], axis=-1).reshape(-1, 3)
    return _bounding_shape(ball * m.geom_size[i], "ellipsoid")


def _mesh(m: Any, i: int) -> GeomShape:
    k = m.geom_dataid[i]
    start = m.mesh_vertadr[k]
    return _bounding_shape(np.asarray(m.mesh_vert[start : start + m.mesh_vertnum[k]], float), "mesh")


def _bounding_shape(points: Array, what: str) -> GeomShape:
    shape, turn, middle = bounding_primitive(points)
    return shape, turn, middle, f"{what}: taken as a {type(shape).__name__.lower()} around it"


# By MuJoCo's mjtGeom.
SHAPE_MAKERS: dict[int, Callable[[Any, int], GeomShape | ReportLine]] = {
    0: _plane,
    1: _height_field,
    2: _sphere,
    3: _elongated(Capsule),
    4: _ellipsoid,
    5: _elongated(Cylinder),
    6: _box,
    7: _mesh,
}


def _unused(m: Any, shapes: int) -> Iterator[ReportLine]:
    """Yield report lines for the contact settings of geoms and pairs, which are not used."""
    if shapes:
        text = "contype, conaffinity, condim, friction, margin, gap, priority, solmix, solref and solimp are not used: "
        yield ReportLine(
            "geoms", text + "give contacts() stiffness, damping and friction, and the links that touch", "note"
        )
    for what, field in (("surfacevel", "geom_surfacevel"), ("adhesion", "geom_adhesion")):
        if np.any(getattr(m, field, 0.0)):
            yield ReportLine("geoms", f"{what} is not used", "warning")
    if m.npair:
        yield ReportLine(
            f"{m.npair} contact pairs", "not used: contacts() has every shape on the floor alone", "warning"
        )
    if m.nexclude:
        yield ReportLine(
            f"{m.nexclude} excluded pairs", "not used: contacts() has every shape on the floor alone", "note"
        )
    if m.nflex:
        yield ReportLine(f"{m.nflex} flexes", "their shapes are not used", "warning")
