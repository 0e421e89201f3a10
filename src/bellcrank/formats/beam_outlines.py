"""Shapes and section loads of beams (model/outline.py), in the world at the zero configuration.

There are three kinds: beams with modes, structures made of beams, and chains of rigid pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bellcrank.errors import ModelError, brief
from bellcrank.formats.beam_bodies import PlacedBeam
from bellcrank.model.outline import LOAD_NAMES, BeamSlice, NamedSection, Outline, Skin
from bellcrank.model.parts import Array, matrix, triple
from bellcrank.structures.beam_sections import BeamPiece, drawn_slices, section_outline, section_slice
from bellcrank.structures.modes import Moments
from bellcrank.structures.skin import neighbour_lines

NO_MOTION = (0.0, 0.0, 0.0)


def modal_outline(
    name: str, moments: Moments, R: Array, start: Array, joint: str, sections: Mapping[str, float]
) -> Outline | None:
    """Return the outline of a body with modes, or None if there is nothing to draw: a single node.

    Parameters
    ----------
    name
        Name of the body.
    moments
        Its integrals and shapes.
    R, start
        Axes of the structure as columns, and its origin, in the world.
    joint
        The joint whose coordinates are the modes.
    sections
        {name: part of the length}.
    """
    modes = len(moments.omega)
    coordinates = tuple(f"{joint}.mode{k + 1}" for k in range(modes))
    bodies = (name, *(f"{name}.{node}" for node in moments.nodes))
    if not moments.pieces:
        if sections:
            raise ModelError(
                f'flexible "{name}": sections is {brief(sections)}, but matrices do not contain cross-sections; '
                "expected a structure of beams."
            )
        skin = _skin(name, moments, coordinates)
        return Outline(name, bodies, (), (), skin.seen_from(name, R, start)) if skin.cells else None

    def placed(s: BeamSlice) -> BeamSlice:
        return replace(s.seen_from(name, R, start), coordinates=coordinates)

    shapes = moments.displacements
    slices = tuple(placed(s) for piece in moments.pieces for s in drawn_slices(piece, shapes))
    requested_sections = tuple(
        NamedSection(x, placed(section_slice(*_piece_at(moments.pieces, shapes, s)))) for x, s in sections.items()
    )
    return Outline(name, bodies, slices, requested_sections)


def _skin(name: str, moments: Moments, coordinates: tuple[str, ...]) -> Skin:
    """Return the nodes that lines or faces are drawn between."""
    cells = moments.cells if len(moments.cells) else neighbour_lines(moments.grid)
    used, indices = np.unique(cells, return_inverse=True)
    points = tuple(map(triple, moments.grid[used].tolist()))
    shift = tuple(tuple(map(triple, x.T.tolist())) for x in moments.shapes[used])
    return Skin(name, points, coordinates, shift, tuple(map(tuple, indices.reshape(cells.shape).tolist())))


def _piece_at(pieces: tuple[BeamPiece, ...], shapes: Array, s: float) -> tuple[BeamPiece, Array, float]:
    """Return the piece at the part s of the whole length, the shapes, and the part of that piece."""
    ends = np.cumsum([piece.beam.length for piece in pieces])
    i = min(int(np.searchsorted(ends, s * ends[-1] - 1e-12)), len(pieces) - 1)
    length = pieces[i].beam.length
    return pieces[i], shapes, float(np.clip((s * ends[-1] - ends[i] + length) / length, 0.0, 1.0))


def chain_outline(p: PlacedBeam, pieces: list[str], bodies: list[str], sections: Mapping[str, float]) -> Outline:
    """Return the outline of a chain of rigid pieces.

    Parameters
    ----------
    p
        The beam.
    pieces
        Names of the rigid pieces, in order.
    bodies
        Names of all bodies of the chain.
    sections
        {name: part of the length}.
    """
    n = p.beam.elements
    positions = [0.0, *((i + 0.5) / n for i in range(n)), 1.0]
    bodies_at = [pieces[0], *pieces[1:], pieces[-1]]
    slices = tuple(_rigid_slice(p, s, body) for s, body in zip(positions, bodies_at, strict=True))

    def piece(s: float) -> str:
        return pieces[min(int(s * n + 0.5), n)]

    requested_sections = tuple(NamedSection(name, _rigid_slice(p, s, piece(s))) for name, s in sections.items())
    return Outline(p.name, tuple(bodies), slices, requested_sections)


def _rigid_slice(p: PlacedBeam, s: float, body: str) -> BeamSlice:
    """Return a rigid slice; its loads are linear between the two nearest elastic joints."""
    n = p.beam.elements
    i = int(np.clip(np.floor(s * n + 0.5), 1, max(n - 1, 1)))  # the joint before
    share = (s * n + 0.5 - i) if n > 1 else 0.0
    names, rows = [], []
    for joint, weight in ((i, 1.0 - share), (i + 1, share)):
        for motion in p.motions if weight else ():
            row = np.zeros(6)
            row[p.order.index(motion)] = weight * p.joint_stiffness(joint, motion)
            names.append(f"{p.name}.{joint}.{motion}")
            rows.append(tuple(row.tolist()))
    still = (NO_MOTION,) * len(names)
    assert len(p.order) == len(LOAD_NAMES)
    return BeamSlice(
        body, triple(p.point_at(s * p.beam.length)), matrix(p.R), *section_outline(p.beam, s),
        tuple(names), still, still, tuple(rows),
    )  # fmt: skip
