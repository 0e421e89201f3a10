"""Bounding primitives: the box, sphere, cylinder or capsule of least volume around points."""

from __future__ import annotations

import math

import numpy as np

from bellcrank.forces.shapes import Box, Capsule, Cylinder, Shape, Sphere
from bellcrank.model.parts import Array

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
