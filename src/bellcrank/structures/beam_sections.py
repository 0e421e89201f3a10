"""Beams in a structure: polygonal beams, the sections along a beam, and the loads through them.

A polygonal beam consists of straight pieces from corner to corner, welded there. Each piece is a Beam (beam.py) rotated
into place; adjacent pieces share the displacements of the corner between them. Its matrices are for bc.flexible.

A section has its motion in the modes, and loads. These come from the nodal forces of the element that ends there (or
that it lies in), K_e d: for loads at the nodes they are in equilibrium to the last digit, even if the beam tapers.
Between the nodes they are linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.outline import BeamSlice
from bellcrank.model.parts import matrix, triple
from bellcrank.structures.beam import Array, Beam
from bellcrank.structures.section import Material, Profile, Section

ROUND_SIDES = 12  # sides of round sections
MAX_DRAWN_SLICES = 40  # slices of a piece that are drawn


@dataclass(frozen=True)
class BeamPiece:
    """A beam in a structure: its start, its x, y and z axes as columns of R, and its first node."""

    beam: Beam
    R: Array
    start: Array
    first: int = 0


def straight_piece(beam: Beam) -> BeamPiece:
    """Return `beam` as a piece along x from the origin."""
    return BeamPiece(beam, np.eye(3), np.zeros(3))


def drawn_slices(piece: BeamPiece, shapes: Array) -> list[BeamSlice]:
    """Return slices of the `piece` from its start to its end.

    Parameters
    ----------
    piece
        The beam.
    shapes
        Displacements of the whole structure, six per node x modes.
    """
    n = piece.beam.elements
    drawn_elements = {*range(0, n, -(-n // MAX_DRAWN_SLICES)), n}
    return [section_slice(piece, shapes, k / n) for k in sorted(drawn_elements)]


def section_slice(piece: BeamPiece, shapes: Array, s: float) -> BeamSlice:
    """Return the section at the part `s` of the `piece`'s length; the caller sets its body and coordinates.

    `shapes` are displacements of the whole structure, six per node x modes.
    """
    beam, R = piece.beam, piece.R
    e = min(max(math.ceil(s * beam.elements - 1e-9) - 1, 0), beam.elements - 1)
    node = piece.first + e
    along = np.kron(np.eye(4), R.T)
    d = along @ shapes[6 * node : 6 * node + 12]
    inside = s * beam.elements - e
    shift, turn, _ = beam.functions(e, inside)
    forces = beam.stiffness(e) @ d
    loads = (1 - inside) * -forces[:6] + inside * forces[6:]
    point = piece.start + R[:, 0] * s * beam.length
    return BeamSlice(
        "", triple(point), matrix(R), *section_outline(beam, s), (),
        tuple(map(triple, (R @ shift @ d).T)), tuple(map(triple, (R @ turn @ d).T)),
        tuple(tuple(map(float, row)) for row in loads.T),
    )  # fmt: skip


def section_outline(
    beam: Beam, s: float
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float, float], ...], bool]:
    """Return the corners and stress fibres of the section of `beam` at the part `s`, and whether it is round."""
    section = beam.at(s)
    if isinstance(section, Section) and section.shape in ("circle", "tube"):
        angles = [2 * math.pi * (k + 0.5) / ROUND_SIDES for k in range(ROUND_SIDES)]
        r = section.dimensions[0] / 2
        corners = [(r * math.cos(a), r * math.sin(a)) for a in angles]
        I = section.numbers.Iy
        return tuple(corners), tuple((1 / section.numbers.area, z / I, -y / I) for y, z in corners), True
    if isinstance(section, Section) and section.shape in ("rectangle", "box"):
        w, h = section.dimensions[0] / 2, section.dimensions[1] / 2
        corners, n = _rectangle(w, h), section.numbers
        return tuple(corners), tuple((1 / n.area, z / n.Iy, -y / n.Iz) for y, z in corners), False
    # A section without a shape: a rectangle with the same radii of gyration, or a slender one.
    if isinstance(section, Profile):
        area, Iy, Iz = section.rhoA, section.rhoIy, section.rhoIz
    else:
        area, Iy, Iz = section.numbers.area, section.numbers.Iy, section.numbers.Iz
    w, h = (math.sqrt(3 * I / area) if I > 0.0 else beam.length / 100 for I in (Iz, Iy))
    return tuple(_rectangle(w, h)), (), False


def _rectangle(w: float, h: float) -> list[tuple[float, float]]:
    """Return a rectangle of half width w and half height h, with the centres of its sides, where colours change."""
    return [(-w, -h), (0.0, -h), (w, -h), (w, 0.0), (w, h), (0.0, h), (-w, h), (-w, 0.0)]


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
