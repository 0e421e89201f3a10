"""Polygonal beams: straight pieces from corner to corner, welded there, as matrices for bc.flexible.

Each piece is a Beam (beam.py) rotated into place; adjacent pieces share the displacements of the corner between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.structures.beam import Array, Beam
from bellcrank.structures.beam_sections import BeamPiece
from bellcrank.structures.section import Material, Profile, Section


@dataclass(frozen=True)
class PolygonalBeam:
    """Stiffness and mass with six displacements per node, positions of the nodes, and the node of each corner."""

    K: Array
    M: Array
    nodes: Array
    corners: tuple[int, ...]
    pieces: tuple[BeamPiece, ...]


def polygonal_beam(
    corners: Any,
    section: Callable[[float], Section | Profile],
    material: Material | None = None,
    longest: float = 0.3,
    side: Sequence[float] = (0.0, 1.0, 0.0),
    theory: str = "timoshenko",
) -> PolygonalBeam:
    """Return a beam along a polygon as stiffness and mass matrices.

    Parameters
    ----------
    corners : array_like, shape (n, 3)
        Positions of the corners, m.
    section : callable
        Section or Profile at the part 0..1 of the whole length.
    material : Material, optional
        Material of the sections.
    longest : float
        Length of the longest element allowed, m.
    side : sequence of 3 floats
        Direction of the sections' y axis, across all of the pieces.
    theory : {"timoshenko", "euler"}
        As in Beam.
    """
    places = np.asarray(corners, dtype=float)
    if places.ndim != 2 or places.shape[1] != 3 or len(places) < 2 or not np.all(np.isfinite(places)):
        raise ModelError(f"crooked beam: corners has the shape {places.shape}; expected positions, (two or more, 3).")
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    if not np.all(lengths > 0.0):
        raise ModelError(f"crooked beam: corners {int(np.argmin(lengths))} and the next coincide; take one out.")
    counts = np.ceil(lengths / longest - 1e-9).astype(int)
    distances = np.concatenate([[0.0], np.cumsum(lengths)])
    nodes, n = [places[:1]], 6 * (int(counts.sum()) + 1)
    K, M, first, pieces = np.zeros((n, n)), np.zeros((n, n)), 0, []
    for i, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        along = _piece_section(section, distances[i] / distances[-1], length / distances[-1])
        piece = Beam(float(length), along, material, int(count), theory)
        R = _axes(places[i + 1] - places[i], side)
        rows = slice(6 * first, 6 * (first + int(count) + 1))
        T = np.kron(np.eye(2 * (int(count) + 1)), R)
        K[rows, rows] += T @ piece.matrices[0] @ T.T
        M[rows, rows] += T @ piece.matrices[1] @ T.T
        nodes.append(places[i] + piece.nodes[1:] @ R.T)
        pieces.append(BeamPiece(piece, R, places[i], first))
        first += int(count)
    at_corners = tuple(int(c) for c in np.concatenate([[0], np.cumsum(counts)]))
    return PolygonalBeam(K, M, np.vstack(nodes), at_corners, tuple(pieces))


def _piece_section(section: Callable[[float], Any], start: float, part: float) -> Callable[[float], Any]:
    return lambda s: section(start + part * s)


def _axes(along: Array, side: Sequence[float]) -> Array:
    """Return columns: x along the piece, y to the side, and z."""
    x = along / np.linalg.norm(along)
    y = np.asarray(side, dtype=float) - (np.asarray(side) @ x) * x
    if not np.linalg.norm(y) > 1e-6:
        raise ModelError(f"crooked beam: side is {tuple(side)}, along one of its pieces; expected a direction across.")
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])
