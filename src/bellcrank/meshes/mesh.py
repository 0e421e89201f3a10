"""A surface of triangles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DEEPEST = 60  # nodes in nodes
PLACES, LARGEST = 5_000, 20_000_000  # nodes of a scene, and triangles in all of them


@dataclass(frozen=True, eq=False)
class Mesh:
    corners: Array  # (n, 3), m
    triangles: Array  # (k, 3), which corners; counter-clockwise from outside
    colour: tuple[float, float, float] | None = None  # where the file says one for all of it

    def moved(self, matrix: Array) -> Mesh:
        """By a 4x4 matrix; one that mirrors turns the triangles round."""
        corners = self.corners @ matrix[:3, :3].T + matrix[:3, 3]
        turned = self.triangles[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else self.triangles
        return Mesh(corners, turned, self.colour)


class Scene:
    """What the nodes of a file place. A few nodes that hold each other twice are more than any computer holds."""

    def __init__(self) -> None:
        self.parts = list[Mesh]()
        self.places = self.triangles = 0

    def enter(self, deep: int) -> None:
        """A node, so many nodes deep."""
        self.places += 1
        if deep > DEEPEST or self.places > PLACES:
            raise ValueError(f"nodes within nodes without end, or more than {PLACES} of them")

    def add(self, part: Mesh) -> None:
        self.triangles += len(part.triangles)
        if self.triangles > LARGEST:
            raise ValueError(f"more than {LARGEST} triangles")
        self.parts.append(part)


def joined(parts: Sequence[Mesh]) -> Mesh:
    """Several as one; its colour is that of the largest part."""
    if not parts:
        return Mesh(np.zeros((0, 3)), np.zeros((0, 3), int))
    offsets = np.cumsum([0, *(len(p.corners) for p in parts)])
    triangles = [p.triangles + o for p, o in zip(parts, offsets, strict=False)]
    largest = max(parts, key=lambda p: len(p.triangles))
    return Mesh(np.concatenate([p.corners for p in parts]), np.concatenate(triangles), largest.colour)


def sorted_out(corners: Array, cells: int) -> tuple[int, Array]:
    """How many cells of a grid have corners in them, and the number of each corner's cell; at most 2^20 along it."""
    low = corners.min(axis=0)
    size = max(float((corners.max(axis=0) - low).max()), 1e-300) / (cells - 1)
    x = np.rint((corners - low) / size).astype(np.int64)
    _, index = np.unique((x[:, 0] << 42) | (x[:, 1] << 21) | x[:, 2], return_inverse=True)
    index = index.reshape(-1)
    return int(index.max()) + 1, index


def middles(corners: Array, n: int, index: Array) -> Array:
    """The middle of the corners of each of n cells."""
    counts = np.bincount(index, minlength=n)[:, None]
    found: Array = np.stack([np.bincount(index, corners[:, k], n) for k in range(3)], -1) / counts
    return found
