"""Crooked beams: straight ones from corner to corner, welded there, as matrices for bc.flexible.

Each piece is a Beam (beam.py) turned to where it lies; pieces share the displacements of the corners between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.structures.beam import Array, Beam
from bellcrank.structures.section import Material, Profile, Section
from bellcrank.structures.slices import Piece


@dataclass(frozen=True)
class Crooked:
    """Stiffness and mass with six displacements a node, places of the nodes, and which node each corner is."""

    K: Array
    M: Array
    nodes: Array
    corners: tuple[int, ...]
    pieces: tuple[Piece, ...]


def crooked(
    corners: Any,
    section: Callable[[float], Section | Profile],
    material: Material | None = None,
    longest: float = 0.3,
    side: Sequence[float] = (0.0, 1.0, 0.0),
    theory: str = "timoshenko",
) -> Crooked:
    """corners: places, (n, 3). section: at the part 0..1 of the whole way along them. longest: of an element, in
    metres. side: direction of the sections' y, across all of the pieces.
    """
    places = np.asarray(corners, dtype=float)
    if places.ndim != 2 or places.shape[1] != 3 or len(places) < 2 or not np.all(np.isfinite(places)):
        raise ModelError(f"crooked beam: corners has the shape {places.shape}; expected places, (two or more, 3).")
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    if not np.all(lengths > 0.0):
        raise ModelError(f"crooked beam: corners {int(np.argmin(lengths))} and the next are one place; take one out.")
    counts = np.ceil(lengths / longest - 1e-9).astype(int)
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    nodes, n = [places[:1]], 6 * (int(counts.sum()) + 1)
    K, M, first, pieces = np.zeros((n, n)), np.zeros((n, n)), 0, []
    for i, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        along = _along(section, at[i] / at[-1], length / at[-1])
        piece = Beam(float(length), along, material, int(count), theory)
        R = _axes(places[i + 1] - places[i], side)
        own = slice(6 * first, 6 * (first + int(count) + 1))
        T = np.kron(np.eye(2 * (int(count) + 1)), R)
        K[own, own] += T @ piece.matrices[0] @ T.T
        M[own, own] += T @ piece.matrices[1] @ T.T
        nodes.append(places[i] + piece.nodes[1:] @ R.T)
        pieces.append(Piece(piece, R, places[i], first))
        first += int(count)
    at_corners = tuple(int(c) for c in np.concatenate([[0], np.cumsum(counts)]))
    return Crooked(K, M, np.vstack(nodes), at_corners, tuple(pieces))


def _along(section: Callable[[float], Any], start: float, part: float) -> Callable[[float], Any]:
    return lambda s: section(start + part * s)


def _axes(along: Array, side: Sequence[float]) -> Array:
    """Columns: x along the piece, y to the side, z."""
    x = along / np.linalg.norm(along)
    y = np.asarray(side, dtype=float) - (np.asarray(side) @ x) * x
    if not np.linalg.norm(y) > 1e-6:
        raise ModelError(f"crooked beam: side is {tuple(side)}, along one of its pieces; expected a direction across.")
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])
