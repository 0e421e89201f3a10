"""The collision shapes of a robot file, as shapes that touch (forces/shapes.py), each in a frame of the mechanism.

Boxes, cylinders, capsules and spheres are taken as they are. A mesh becomes the primitive of the least volume around
its points, along its own axes, and the report says which; one that is missing or too large is named and left out.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import ReadError, unknown
from bellcrank.forces.contact import Contact
from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere
from bellcrank.formats.contents import contents
from bellcrank.formats.markup import Element, parse
from bellcrank.formats.numbers import Angles
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array, Frame, Line, Report, matrix, triple

ORIGIN = (0.0, 0.0, 0.0)
ROUND = 0.01  # part of the radius by which points of a mesh may stick out of a round end


@dataclass(frozen=True, eq=False)
class Collisions:
    """The mechanism with a frame for each shape, the shapes by frame, and what became of every element."""

    mechanism: Mechanism
    shapes: dict[str, Shape]
    report: Report

    def contacts(self, only: Sequence[str] = (), floor: Shape | None = None, **numbers: Any) -> list[Contact]:
        """Each shape on the floor of the ground (a Plane unless told): of all links, or of those that are named."""
        links = {frame.rpartition(".collision")[0] for frame in self.shapes}
        for name in only:
            if name not in links:
                raise ReadError(f'collisions of "{self.mechanism.name}": {unknown("link with a shape", name, links)}')
        kept = {f: s for f, s in self.shapes.items() if not only or f.rpartition(".collision")[0] in only}
        below, ground = Plane() if floor is None else floor, self.mechanism.ground
        own = {f: s for f, s in kept.items() if self.mechanism.frames[f].body != ground}
        return [Contact(f, ground, f, below, shape, **numbers) for f, shape in own.items()]


@explained
def collisions(path: str | Path, mechanism: Mechanism) -> Collisions:
    """The shapes in the <collision> elements of a URDF file that `mechanism` was read from."""
    file = Path(path)
    root = parse(contents(file), file.name)
    frames, shapes, lines = dict(mechanism.frames), {}, []
    for link in root.each("link"):
        name = link.need("name", "the link's name")
        if name not in mechanism.frames:
            continue
        for k, e in enumerate(link.each("collision")):
            made = _shape(e, file)
            if isinstance(made, str):
                lines.append(Line(f'collision of "{name}"', made, "warning"))
                continue
            shape, R, p, said = made
            at = mechanism.frames[name]
            frame = f"{name}.collision{k}"
            turn = np.asarray(at.rotation, float)
            frames[frame] = Frame(frame, at.body, matrix(turn @ R), triple(np.asarray(at.point, float) + turn @ p))
            shapes[frame] = shape
            lines.append(Line(f'collision of "{name}"', said, "note" if said.startswith("mesh") else "ok"))
    return Collisions(replace(mechanism, frames=frames), shapes, Report(file.name, tuple(lines)))


def _shape(e: Element, file: Path) -> tuple[Shape, Array, Array, str] | str:
    """(shape, rotation, point, what it was), or why there is none."""
    R, p = _origin(e)
    geometry = e.require("geometry")
    if (box := geometry.only("box")) is not None:
        return Box(box.vector("size", ORIGIN)), R, p, "box"
    if (ball := geometry.only("sphere")) is not None:
        return Sphere(ball.number("radius")), R, p, "sphere"
    for tag, kind in (("cylinder", Cylinder), ("capsule", Capsule)):
        if (one := geometry.only(tag)) is not None:
            return kind(one.number("radius"), one.number("length")), R, p, tag
    mesh = geometry.only("mesh")
    if mesh is None:
        return "has no shape that is known: left out"
    name = mesh.need("filename", "the mesh's file")
    found = _found(name, file)
    if found is None:
        return f"mesh {name} is not there: left out. Give the file its meshes, or the link a primitive"
    try:
        points = _points(found) * np.array(mesh.vector("scale", (1.0, 1.0, 1.0)))
    except ReadError as error:
        return f"mesh: {error} Left out."
    shape, turn, middle = around(points)
    return shape, R @ turn, p + R @ middle, f"mesh {found.name}: taken as a {type(shape).__name__.lower()} around it"


def _origin(e: Element) -> tuple[Array, Array]:
    o = e.only("origin")
    if o is None:
        return np.eye(3), np.zeros(3)
    return Angles().rpy(*o.vector("rpy", ORIGIN)), np.array(o.vector("xyz", ORIGIN))


def around(points: Array) -> tuple[Shape, Array, Array]:
    """The primitive of the least volume around points: (shape, rotation, middle)."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, np.maximum(high - low, 1e-6)
    away = points - middle
    radius = max(float(np.linalg.norm(away, axis=1).max()), 1e-6)
    found: list[tuple[float, Shape, Array]] = [
        (float(np.prod(size)), Box((float(size[0]), float(size[1]), float(size[2]))), np.eye(3)),
        (4 / 3 * math.pi * radius**3, Sphere(radius), np.eye(3)),
    ]
    for k in range(3):
        turn = np.eye(3)[:, [(k + 1) % 3, (k + 2) % 3, k]]  # z along axis k
        across = max(float(np.linalg.norm(np.delete(away, k, axis=1), axis=1).max()), 1e-6)
        length = float(size[k])
        found.append((math.pi * across**2 * length, Cylinder(across, length), turn))
        straight = length - 2 * across
        if straight > 0.0:
            volume = math.pi * across**2 * straight + 4 / 3 * math.pi * across**3
            ends = np.abs(away[:, k]) - straight / 2  # what is in the corners must be inside the round ends
            side = np.linalg.norm(np.delete(away, k, axis=1), axis=1)
            if (np.hypot(np.maximum(ends, 0.0), side) <= across * (1 + ROUND)).all():
                found.append((volume, Capsule(across, straight), turn))
    _, shape, turn = min(found, key=lambda x: x[0])
    return shape, turn, middle


def _found(name: str, file: Path) -> Path | None:
    """A mesh beside the file, or in the package that carries it."""
    inner = re.sub(r"^(package|model)://", "", name)
    inner = re.sub(r"^file://", "", inner)
    for folder in [file.parent, *file.resolve().parents]:
        for tail in (inner, inner.partition("/")[2]):
            if tail and (folder / tail).is_file():
                return folder / tail
    return None


def _points(path: Path) -> Array:
    data, kind = contents(path), path.suffix.lower()
    found: Array
    if kind == ".stl":
        found = _stl(data)
    elif kind == ".obj":
        rows = re.findall(rb"^v\s+(\S+)\s+(\S+)\s+(\S+)", data, re.MULTILINE)
        found = np.array(rows, dtype=float) if rows else np.zeros((0, 3))
    elif kind == ".dae":
        arrays = re.findall(rb"<float_array[^>]*position[^>]*>([^<]*)<", data, re.IGNORECASE)
        found = np.array(b" ".join(arrays).split(), dtype=float)
        found = found[: len(found) // 3 * 3].reshape(-1, 3)
    else:
        raise ReadError(f"{path.name} is no mesh that is known (.stl, .obj, .dae).")
    if len(found) < 2 or not np.isfinite(found).all():
        raise ReadError(f"{path.name} has no points, or some that are no numbers.")
    return found


def _stl(data: bytes) -> Array:
    count = struct.unpack("<I", data[80:84])[0] if len(data) >= 84 else 0
    if len(data) == 84 + 50 * count and count:
        rows = np.frombuffer(data, offset=84, dtype=np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")]))
        return np.asarray(rows["p"].reshape(-1, 3), float)
    lines = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
    return np.array(lines, dtype=float) if lines else np.zeros((0, 3))
