"""Collision shapes in frames of a mechanism, and the bounding primitive of a mesh.

The primitive is the box, sphere, cylinder or capsule of least volume around points.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.forces.shapes import Box, Capsule, Cylinder, Shape, Sphere
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array, Frame, Report, ReportLine, matrix, triple

ROUND_END_TOLERANCE = 0.01  # share of the radius by which points of a mesh may stick out of a round end


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
