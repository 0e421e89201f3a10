"""Collision shapes of a URDF or MJCF file as contact shapes (forces/shapes.py), each in a frame of the mechanism.

Boxes, cylinders, capsules and spheres are taken as they are. A mesh becomes the primitive of least volume around its
points, along its own axes, which the report lists; a mesh that is missing or too large is reported and left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import ReadError, unknown
from bellcrank.forces.contact import Contact
from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere, Terrain
from bellcrank.formats.contents import contents
from bellcrank.formats.markup import Element, parse
from bellcrank.formats.numbers import Angles
from bellcrank.formats.primitives import around
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array, Frame, Line, Report, matrix, triple

ORIGIN = (0.0, 0.0, 0.0)


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
            if name not in links:
                raise ReadError(f'collisions of "{self.mechanism.name}": {unknown("link with a shape", name, links)}')
        kept = {f: s for f, s in self.shapes.items() if not only or f.rpartition(".collision")[0] in only}
        ground = self.mechanism.ground
        own = {f: s for f, s in kept.items() if self.mechanism.frames[f].body != ground}
        floors = self._floors() if floor is None else {ground: floor}
        return [
            Contact(f if len(floors) == 1 else f"{f} on {place}", place, f, below, shape, **numbers)
            for f, shape in own.items()
            for place, below in floors.items()
        ]

    def _floors(self) -> dict[str, Shape]:
        ground = self.mechanism.ground
        fixed = {f: s for f, s in self.shapes.items() if self.mechanism.frames[f].body == ground}
        return {f: s for f, s in fixed.items() if isinstance(s, Plane | Terrain)} or {ground: Plane()}


@explained
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
    root = parse(contents(file), file.name)
    if root.tag == "mujoco":
        from bellcrank.formats.mjcf_shapes import geoms

        return Collisions(*geoms(file, mechanism))
    if root.tag != "robot":
        raise ReadError(f"{file}: the root element is <{root.tag}>; expected <robot> (URDF) or <mujoco> (MJCF).")
    frames, shapes, lines = dict(mechanism.frames), {}, []
    for link in root.each("link"):
        name = link.need("name", "the link's name")
        if name not in mechanism.frames:
            lines.append(Line(f'link "{name}"', "is not in the mechanism: its shapes are left out", "warning"))
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
    """Return (shape, rotation, point, description), or the reason why there is none."""
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


def _found(name: str, file: Path) -> Path | None:
    """Return the path of a mesh beside the file, or in the package that contains it."""
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
        raise ReadError(f"{path.name} is not a known mesh format (.stl, .obj, .dae).")
    if len(found) < 2 or not np.isfinite(found).all():
        raise ReadError(f"{path.name} has no points, or some are not finite numbers.")
    return found


def _stl(data: bytes) -> Array:
    count = struct.unpack("<I", data[80:84])[0] if len(data) >= 84 else 0
    if len(data) == 84 + 50 * count and count:
        rows = np.frombuffer(data, offset=84, dtype=np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")]))
        return np.asarray(rows["p"].reshape(-1, 3), float)
    lines = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
    return np.array(lines, dtype=float) if lines else np.zeros((0, 3))
