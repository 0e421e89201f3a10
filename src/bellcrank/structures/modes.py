"""Reduction of a beam to the modes of a body: shapes, their effect on its inertia, and the motion of its nodes.

Everything is an integral of the finite elements' own shape functions over their own Gauss points. The four ways in
which a straight beam deforms (stretch, twist, bending along y and along z) are uncoupled and are reduced separately, so
that no mode mixes two of them and zeros stay zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.structures.beam import GAUSS_POINTS, Array, Beam
from bellcrank.structures.beam_sections import BeamPiece, straight_piece
from bellcrank.structures.reduction import Reduction, check_selection, check_units, frequencies, reduce_structure

# Displacements of a node by the motion that they belong to (formats/beam_bodies.py).
DIRECTIONS_BY_MOTION = {"stretch": (0,), "twist": (3,), "bend_z": (1, 5), "bend_y": (2, 4)}


@dataclass(frozen=True)
class Moments:
    """Integrals over the mass, as in model/flexible_body.py.

    Modes are scaled so that a coordinate, in metres, is the largest displacement of a node or, if that is more, the
    largest rotation times the beam's length.
    """

    mass: float
    com: Array
    inertia: Array  # about the origin
    omega: Array
    A: Array
    B: Array
    D: Array
    E: Array
    F: Array
    nodes: Mapping[str, tuple[Array, Array, Array]]  # shift, turn (modes x 3) and second (modes x modes x 3)
    places: Mapping[str, Array]  # positions of the nodes
    reduction: Reduction
    grid: Array  # positions of all nodes of the finite elements, n x 3
    shapes: Array  # their displacements in the modes, n x 3 x modes
    turns: Array  # their rotations in the modes, n x 3 x modes
    lumped: Array  # mass of each node along x y z and its inertia about them, n x 6
    pieces: tuple[BeamPiece, ...] = ()  # the beams that it consists of, if known
    damping: Array = field(default_factory=lambda: np.zeros(0))  # of each coordinate, if a file has it; N s/m
    cells: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=int))  # lines or faces to draw, by nodes

    @property
    def displacements(self) -> Array:
        """Displacements and rotations of all nodes in the modes, six rows per node."""
        return np.concatenate([self.shapes, self.turns], axis=1).reshape(6 * len(self.grid), -1)

    def __str__(self) -> str:
        return str(self.reduction)


def beam_modes(
    beam: Beam, motions: Sequence[str], nodes: Mapping[str, float], modes: int, attached: bool, below: float
) -> Moments:
    """Reduce a beam to modes.

    Parameters
    ----------
    beam
        The beam.
    motions
        Names of the ways in which it can deform.
    nodes
        {name: part of the length}.
    modes
        Number of the lowest modes, of all kinds together.
    attached
        Also use the static shapes of loads at the nodes.
    below
        Keep only shapes with frequencies below this, Hz.
    """
    node_indices = {name: _node(beam, name, s) for name, s in nodes.items()}
    groups = [group for motion, group in DIRECTIONS_BY_MOTION.items() if motion in motions]
    if not groups:
        raise ModelError(
            f"beam: motions are {', '.join(motions)}; expected also some of {', '.join(DIRECTIONS_BY_MOTION)}."
        )
    reduction = _selected_modes(beam, groups, list(node_indices.values()), modes, attached, below)
    check_units(reduction.omega, beam.length)
    size = np.abs(reduction.shapes.reshape(-1, 6, len(reduction.omega))) * ([[1.0]] * 3 + [[beam.length]] * 3)
    return _integrate_moments(beam, reduction.shapes / size.max(axis=(0, 1)), node_indices, reduction)


def _node(beam: Beam, name: str, s: float) -> int:
    n = round(s * beam.elements)
    if abs(n - s * beam.elements) > 1e-9:
        raise ModelError(
            f'beam: node "{name}" is at {s:g} of the length, inside one of {beam.elements} elements; expected a place '
            "between two. Choose another number of elements."
        )
    return n


def _selected_modes(
    beam: Beam,
    groups: Sequence[tuple[int, ...]],
    interface_nodes: Sequence[int],
    modes: int,
    attached: bool,
    below: float,
) -> Reduction:
    check_selection("beam", modes, below)
    parts = _group_reductions(beam, groups, interface_nodes, modes, attached)
    if not parts:
        raise ModelError("beam: no modes and no shapes of loads are kept; ask for modes=1 or more.")
    omega = np.concatenate([part.omega for _, part in parts])
    order = [k for k in np.argsort(omega, kind="stable") if omega[k] <= 2 * np.pi * below]
    if not order:
        raise ModelError(f"beam: its lowest frequency is {omega.min() / 2 / np.pi:.4g} Hz, and below is {below:g}.")
    shapes = np.hstack([s for s, _ in parts])[:, order]
    residual = np.concatenate([part.residual for _, part in parts])[order]
    M, rigid = beam.matrices[1], np.tile(np.eye(3, 6), beam.elements + 1).T
    return Reduction(shapes, omega[order], residual, (shapes.T @ M @ rigid) ** 2 / np.diag(rigid.T @ M @ rigid))


def _group_reductions(
    beam: Beam, groups: Sequence[tuple[int, ...]], interface_nodes: Sequence[int], modes: int, attached: bool
) -> list[tuple[Array, Reduction]]:
    """Return the shapes of each group of coupled directions, as displacements of the whole beam."""
    K, M = beam.matrices
    every = range(beam.elements + 1)
    group_rows = [np.array([6 * node + d for node in every for d in group]) for group in groups]
    held_rows = [
        [node * len(g) + d for node in {0, *(interface_nodes if attached else ())} for d in range(len(g))]
        for g in groups
    ]
    group_frequencies = [
        frequencies(K[np.ix_(o, o)], M[np.ix_(o, o)], h) for o, h in zip(group_rows, held_rows, strict=True)
    ]
    if modes > sum(map(len, group_frequencies)):
        raise ModelError(
            f"beam: modes is {modes}; its {beam.elements} elements have {sum(map(len, group_frequencies))}."
        )
    lowest = sorted((w, i) for i, omegas in enumerate(group_frequencies) for w in omegas)[:modes]
    reductions = []
    for i, (rows, g) in enumerate(zip(group_rows, groups, strict=True)):
        n = sum(k == i for _, k in lowest)
        interface = [node * len(g) + d for node in interface_nodes for d in range(len(g))] if attached else []
        if not n and not interface:
            continue
        part = reduce_structure(K[np.ix_(rows, rows)], M[np.ix_(rows, rows)], range(len(g)), interface, n)
        shapes = np.zeros((len(K), len(part.omega)))
        shapes[rows] = part.shapes
        reductions.append((shapes, part))
    return reductions


def _integrate_moments(beam: Beam, shapes: Array, interface_nodes: Mapping[str, int], reduction: Reduction) -> Moments:
    m = shapes.shape[1]
    mass, h, S2 = 0.0, np.zeros(3), np.zeros((3, 3))
    A, B, D = np.zeros((m, 3)), np.zeros((m, 3, 3)), np.zeros((m, m, 3, 3))
    E, F = np.zeros((m, m, 3)), np.zeros((m, m, 3, 3))
    bowed = np.zeros((beam.elements + 1, m, m))  # integral of the products of slopes up to each node
    after = _mass_after(beam)
    for s in beam.stations:
        d = shapes[6 * s.element : 6 * s.element + 12]
        phi, psi = s.shift @ d, s.turn @ d  # 3 x modes
        r = np.array([s.x, 0.0, 0.0])
        dm = s.length * s.profile.rhoA
        moments = s.length * beam.slice_inertia(s.profile)
        J = np.diag(moments.sum() / 2 - moments)  # second moments of the slice
        turns = np.stack([cross_matrix(p) for p in psi.T])
        mass, h, S2 = mass + dm, h + dm * r, S2 + dm * np.outer(r, r) + J
        A += dm * phi.T
        B += dm * np.einsum("i,jk->kij", r, phi) + J @ np.swapaxes(turns, 1, 2)
        D += dm * np.einsum("ik,jl->klij", phi, phi) + np.einsum("kia,ab,ljb->klij", turns, J, turns)
        both = np.einsum("kab,lbc->klac", turns, turns)
        F += np.einsum("ab,klcb->klac", J, (both + np.swapaxes(both, 0, 1)) / 2)
        # Bending pulls everything beyond it towards the start.
        slopes = np.stack([(s.strain[1] + s.turn[2]) @ d, (s.strain[2] - s.turn[1]) @ d])
        bow = s.length * slopes.T @ slopes
        beyond, first = after[s.element] + _mass_to_element_end(beam, s.element, s.x)
        E[:, :, 0] -= beyond * bow
        F[:, :, 0, 0] -= first * bow
        bowed[s.element + 1 :] += bow
    nodes = {}
    for name, n in interface_nodes.items():
        second = np.zeros((m, m, 3))
        second[:, :, 0] = -bowed[n]
        nodes[name] = shapes[6 * n : 6 * n + 3].T, shapes[6 * n + 3 : 6 * n + 6].T, second
    I = np.trace(S2) * np.eye(3) - S2
    places = {name: beam.nodes[n] for name, n in interface_nodes.items()}
    grid = beam.nodes, *split_shapes(shapes, 6), lumped_masses(beam.matrices[1], 6)
    return Moments(
        mass, h / mass, I, reduction.omega, A, B, D, E, F, nodes, places, reduction, *grid, (straight_piece(beam),)
    )  # fmt: skip


def split_shapes(shapes: Array, each: int) -> tuple[Array, Array]:
    """Return displacements and rotations of nodes, n x 3 x modes, from `shapes` with `each` (3 or 6) rows per node."""
    by_node = shapes.reshape(-1, each, shapes.shape[1])
    return by_node[:, :3], by_node[:, 3:] if each == 6 else np.zeros_like(by_node)


def lumped_masses(M: Any, each: int) -> Array:
    """Return the lumped masses of the nodes: row sums of `M` along x, y and z, and its diagonal for rotations.

    `each` is the number of displacements per node, 3 or 6.
    """
    n = M.shape[0] // each
    masses = np.zeros((n, 6))
    for d in range(3):
        masses[:, d] = np.asarray(M[d::each, :][:, d::each].sum(axis=1)).ravel()
    if each == 6:
        masses[:, 3:] = np.asarray(M.diagonal()).reshape(n, 6)[:, 3:]
    return masses


def _mass_after(beam: Beam) -> Array:
    """Return mass and its first moment of all elements after each element."""
    element_moments = np.zeros((beam.elements + 1, 2))
    for s in beam.stations:
        element_moments[s.element] += s.length * s.profile.rhoA * np.array([1.0, s.x])
    return np.cumsum(element_moments[::-1], axis=0)[::-1][1:]


def _mass_to_element_end(beam: Beam, element: int, x: float) -> Array:
    """Return mass and its first moment from x, which lies in the element, to the end of the element."""
    remaining = (element + 1) * beam.length / beam.elements - x
    points = [(x + remaining * (g + 1) / 2, weight * remaining / 2) for g, weight in zip(*GAUSS_POINTS, strict=True)]
    masses = (w * beam.profile(place / beam.length).rhoA * np.array([1.0, place]) for place, w in points)
    return sum(masses, np.zeros(2))


def cross_matrix(p: Any) -> Array:
    """Return the matrix of the cross product with `p`."""
    x, y, z = p
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
