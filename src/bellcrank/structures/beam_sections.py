"""Sections along a beam: their motion in the modes, and the loads through them.

Loads through a section come from the nodal forces of the element that ends there (or that it lies in), K_e d: for loads
at the nodes these are in equilibrium to the last digit, even if the beam tapers. Between the nodes they are linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bellcrank.model.outline import BeamSlice
from bellcrank.model.parts import matrix, triple
from bellcrank.structures.beam import Array, Beam
from bellcrank.structures.section import Profile, Section

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
    return [section_slice(piece, shapes, k / n) for k in range(0, n + 1, -(-n // MAX_DRAWN_SLICES))] + (
        [section_slice(piece, shapes, 1.0)] if n % -(-n // MAX_DRAWN_SLICES) else []
    )


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
