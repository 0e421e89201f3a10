"""Beams in the Builder: as one body with modes, or for large deflections as a chain of rigid pieces; their outlines.

The chain has elastic joints in the middle of every element, each with the stiffness of the element there against one of
the six ways to deform. Between the joints lie pieces of full length, at the ends half pieces. Rotations of the pieces
are then those of the beam at their centres, and the error falls with the square of the element length. Joint angles
compose, so a piece's attitude is exact for any deflection of the whole beam; only the angles within one element must be
small.

An outline (model/outline.py) has shapes and section loads in the world at the zero configuration. There are three
kinds: beams with modes, structures made of beams, and chains of rigid pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import ModelError, brief, check_known
from bellcrank.formats.flexible_bodies import BEAM_MOTIONS
from bellcrank.formats.number_checks import number, vector
from bellcrank.model.flexible_body import Modal, ModalNode, modal_fields
from bellcrank.model.outline import LOAD_NAMES, BeamSlice, NamedSection, Outline, Skin
from bellcrank.model.parts import Array, matrix, triple
from bellcrank.parameters import nominal
from bellcrank.quoting import name_problem
from bellcrank.structures.beam import Beam
from bellcrank.structures.beam_sections import BeamPiece, drawn_slices, section_outline, section_slice
from bellcrank.structures.modes import Moments
from bellcrank.structures.skin import neighbour_lines

DEFAULT_NODES = {"end": 1.0}
PlacedModal = tuple[Modal, Array]  # a body with modes, and the start of its beam
NO_MOTION = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class PlacedBeam:
    """A beam in the world: its start, and its x, y and z axes as columns of R."""

    name: str
    beam: Beam
    start: Array
    R: Array
    motions: tuple[str, ...]
    nodes: Mapping[str, float]  # name: part of the length

    def point_at(self, x: float) -> Array:
        """Return the point `x` metres along the beam."""
        return np.asarray(self.start + self.R[:, 0] * x)

    @property
    def order(self) -> tuple[str, ...]:
        """All motions, in the order of the loads of a section."""
        return tuple(BEAM_MOTIONS)

    def joint_stiffness(self, i: int, motion: str) -> float:
        """Return the stiffness of elastic joint `i` (from 1) of a chain against `motion`."""
        n = self.beam.elements
        stiffness = getattr(self.beam.profile((i - 0.5) / n), BEAM_MOTIONS[motion][2])
        return float(stiffness * n / self.beam.length)


def place_beam(
    name: str, beam: Beam, start: Any, axis: Any, side: Any, motions: Sequence[str], nodes: Mapping[str, float] | None
) -> PlacedBeam:
    """Check the arguments of a beam and return it placed in the world.

    Parameters
    ----------
    name
        Name of the body.
    beam
        Section, material, length and elements.
    start
        Position of the start, m.
    axis
        Direction from start to end.
    side
        Direction of the section's y axis.
    motions
        Names of the ways in which it can deform.
    nodes
        {name: part of the length}.
    """
    where = f'beam "{name}"'
    x = np.array(vector(axis, where, "axis"), dtype=float)
    y = np.array(vector(side, where, "side"), dtype=float)
    if not np.linalg.norm(x) > 0.0:
        raise ModelError(f"{where}: axis is {tuple(axis)}; expected the direction from its start to its end.")
    x = x / np.linalg.norm(x)
    y = y - (y @ x) * x
    if not np.linalg.norm(y) > 1e-6:
        raise ModelError(
            f"{where}: side is {tuple(side)}, along its axis; expected the direction of its section's width (y), "
            "across the axis."
        )
    y = y / np.linalg.norm(y)
    motions = sequence_elements(motions) or []
    for motion in motions:
        check_known("motion", motion, BEAM_MOTIONS, where, ModelError)
    if not motions:
        raise ModelError(
            f"{where}: no motions, so that it is rigid. Give some of {', '.join(BEAM_MOTIONS)}, or use body()."
        )
    checked_nodes = _checked_nodes(nodes, where)
    R = np.column_stack([x, y, np.cross(x, y)])
    ordered_motions = tuple(m for m in BEAM_MOTIONS if m in motions)
    place = np.array(vector(start, where, "start"), dtype=float)
    return PlacedBeam(name, beam, place, R, ordered_motions, checked_nodes)


def _checked_nodes(nodes: Mapping[str, float] | None, where: str) -> dict[str, float]:
    """Return the checked nodes of a beam, {name: part of the length}."""
    parts = _checked_parts(where, "node", DEFAULT_NODES if nodes is None else nodes, start=False)
    if not parts:
        raise ModelError(f"{where}: no nodes; expected at least one, such as {DEFAULT_NODES}.")
    for node, s in parts.items():
        if twin := next((other for other, place in parts.items() if other != node and place == s), None):
            raise ModelError(f'{where}: nodes "{node}" and "{twin}" are both at {s:g}. Remove one of them.')
    return parts


def checked_sections(where: str, given: Any, nodes: Any) -> dict[str, float]:
    """Return the checked sections {name: part of the length}.

    Parameters
    ----------
    where
        Subject of error messages.
    given
        The user's argument, or None.
    nodes
        Names of nodes, which sections must not have.
    """
    sections = _checked_parts(where, "section", {} if given is None else given, start=True)
    for name in sections:
        if name in nodes:
            raise ModelError(f'{where}: a node is called "{name}" already; give the section another name.')
    return sections


def _checked_parts(where: str, what: str, given: Any, start: bool) -> dict[str, float]:
    """Return checked places on a beam {name: part of the length}, which may be 0 if `start`; `what` is their kind."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{where}: {what}s is {brief(given)}; expected {{name: part of the length}}.")
    for name, s in given.items():
        if not name or name_problem(name):
            raise ModelError(f"{where}: the {what} {name_problem(name) or 'has an empty name'}.")
        part = number(s, where, f'{what} "{name}"')
        if not 0.0 <= part <= 1.0 or (part == 0.0 and not start):
            expected = "0 to 1" if start else "above 0 and up to 1"
            raise ModelError(f'{where}: {what} "{name}" is at {s:g}; expected the part of its length, {expected}.')
    return {name: float(s) for name, s in given.items()}


def add_chain(builder: Any, p: PlacedBeam, beta: float) -> list[str]:
    """Add the bodies and joints of a beam for large deflections.

    Parameters
    ----------
    builder
        Builder to add to.
    p
        The beam.
    beta
        Damping of each joint over its stiffness, s.

    Returns
    -------
    list of str
        Names of the rigid pieces.
    """
    n = p.beam.elements
    h = p.beam.length / n
    edges = [0.0, *(h * (i + 0.5) for i in range(n)), p.beam.length]
    for i, (a, b) in enumerate(pairwise(edges)):
        mass, com, inertia = _piece_inertia(p, a, b)
        builder.body(_piece_name(p, i), mass, com, inertia)
        if i:
            _add_elastic_joints(builder, p, i, a, beta)
    for node, s in p.nodes.items():
        x = s * p.beam.length
        builder.body(f"{p.name}.{node}")
        i = min(int(np.searchsorted(edges, x, side="left")) - 1, n)
        builder.joint(f"{p.name}.{node}", "fixed", _piece_name(p, i), f"{p.name}.{node}", point=p.point_at(x))
    return [_piece_name(p, i) for i in range(n + 1)]


def checked_damping(where: str, ratio: Any, rayleigh: Any) -> tuple[float, float, float]:
    """Return a damping ratio and Rayleigh's two coefficients, checked: none may be negative.

    Parameters
    ----------
    where
        Subject of error messages.
    ratio
        Part of critical damping.
    rayleigh
        Pair (alpha, beta), 1/s and s.
    """
    coefficients = sequence_elements(rayleigh)
    if coefficients is None or len(coefficients) != 2:
        raise ModelError(f"{where}: rayleigh is {brief(rayleigh)}; expected two numbers, (alpha, beta).")
    checked = []
    for what, x in (("damping", ratio), ("rayleigh", coefficients[0]), ("rayleigh", coefficients[1])):
        checked.append(float(nominal(number(x, where, what))))
        if checked[-1] < 0.0:
            raise ModelError(
                f"{where}: {what} is {checked[-1]:g}, which would add energy to the system; expected 0 or more."
            )
    return checked[0], checked[1], checked[2]


def place_modal(
    name: str, R: Array, start: Array, moments: Moments, ratio: float, rayleigh: Sequence[float]
) -> PlacedModal:
    """Return a body with modes in world axes, relative to the start of its beam, and that start.

    Parameters
    ----------
    name
        Name of the body.
    R, start
        Axes of the structure as columns, and its origin, in the world.
    moments
        Integrals over the mass, in axes of the structure.
    ratio
        Part of critical damping of each mode, added to Rayleigh damping.
    rayleigh
        Pair (alpha, beta), 1/s and s.
    """
    alpha, beta = rayleigh
    inertia = np.einsum("kkii->k", moments.D)
    stiffness = inertia * moments.omega**2
    damping = inertia * (2.0 * ratio * moments.omega + alpha) + beta * stiffness
    if len(moments.damping):
        damping = damping + moments.damping
    nodes = tuple(
        ModalNode(
            f"{name}.{node}",
            tuple(map(triple, (shift @ R.T).tolist())),
            tuple(map(triple, (turn @ R.T).tolist())),
            tuple(tuple(map(triple, row)) for row in (second @ R.T).tolist()),
        )
        for node, (shift, turn, second) in moments.nodes.items()
    )
    integrals = modal_fields(moments.A, moments.B, moments.D, moments.E, moments.F)
    modal = Modal(name, tuple(stiffness.tolist()), tuple(damping.tolist()), **integrals, nodes=nodes)
    return modal.seen_from(name, R, np.zeros(3)), start


def _piece_name(p: PlacedBeam, i: int) -> str:
    return p.name if i == 0 else f"{p.name}.{i}"


def _add_elastic_joints(builder: Any, p: PlacedBeam, i: int, x: float, beta: float) -> None:
    """Add the joints between pieces i - 1 and i, with a massless body between successive joints.

    Successive rotations about two bending axes leave a small twist. Every other element has its joints in reverse
    order, so that these twists cancel instead of adding up.
    """
    parent = _piece_name(p, i - 1)
    motions = p.motions if i % 2 else p.motions[::-1]
    for motion in motions:
        kind, axis, _ = BEAM_MOTIONS[motion]
        child = _piece_name(p, i) if motion == motions[-1] else f"{p.name}.{i}.{motion}"
        if child != _piece_name(p, i):
            builder.body(child)
        k = p.joint_stiffness(i, motion)
        builder.joint(
            *(f"{p.name}.{i}.{motion}", kind, parent, child),
            point=p.point_at(x), axis=p.R[:, axis], stiffness=k, damping=beta * k,
        )  # fmt: skip
        parent = child


def _piece_inertia(p: PlacedBeam, a: float, b: float) -> tuple[float, Array, Array]:
    """Return mass, centre of mass and central inertia, in the world, of the beam between a and b."""
    slices = list(_slices(p.beam, a, b))
    mass = sum(length * profile.rhoA for _, length, profile in slices)
    x0 = sum(x * length * profile.rhoA for x, length, profile in slices) / mass
    I = np.zeros(3)
    for x, length, profile in slices:
        across = profile.rhoA * (x - x0) ** 2
        I += length * (p.beam.slice_inertia(profile) + np.array([0.0, across, across]))
    return mass, p.point_at(x0), p.R @ np.diag(I) @ p.R.T


def _slices(beam: Beam, a: float, b: float) -> Iterator[tuple[float, float, Any]]:
    for node, weight in zip(*np.polynomial.legendre.leggauss(4), strict=True):
        x = a + (b - a) * (node + 1) / 2
        yield x, weight * (b - a) / 2, beam.profile(x / beam.length)


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
    cuts = {name: section_slice(*_piece_at(moments.pieces, shapes, s)) for name, s in sections.items()}
    requested_sections = tuple(NamedSection(name, placed(cut)) for name, cut in cuts.items())
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
