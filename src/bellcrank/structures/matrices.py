"""Flexible bodies from the matrices of any finite-element program.

Quantities that the matrices define exactly are taken from them: mass, centre, inertia, and the coupling of the modes
with the body's frame and with each other. Terms that depend on the deformation need the location of the mass of each
displacement. Nodes of solid elements (three displacements) define it exactly; for nodes with rotations (six) the mass
is lumped to them. K and M contain no second-order effects of bending: such a body has no geometric stiffening.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ModelError, brief, warn
from bellcrank.lazy_import import optional_import
from bellcrank.model.flexible_body import vee
from bellcrank.quoting import name_problem
from bellcrank.scalar import array_argument
from bellcrank.structures import skin
from bellcrank.structures.beam import Array
from bellcrank.structures.modes import Moments, cross_matrix, lumped_masses, split_shapes
from bellcrank.structures.reduction import (
    Reduction,
    check_interfaces,
    check_selection,
    check_units,
    checked_supports,
    is_sparse,
    reduce_structure,
)

Interfaces = Mapping[str, int | Sequence[int]]
# Rotations of an interface are defined if its nodes spread by more than this part of the body's size.
MIN_SPREAD = 1e-6
ALL_DIRECTIONS = (0, 1, 2, 3, 4, 5)  # displacements of a node
GROUND_FORCE_TOLERANCE = 1e-5  # part of the terms of a row; a smaller force is due to the digits of a file
# Mass over the box around a solid body, kg/m^3: osmium, and a thousandth of air. Mass over the cube of its length: a
# wire whose diameter is a ten-millionth of its length.
MAX_DENSITY, MIN_DENSITY, MIN_MASS_PER_CUBE = 23_000.0, 1e-3, 1e-10
ROUNDING_FORCE = 1e-11  # part of the largest stiffness; a smaller force is rounding


@explain_argument_errors
def flexible(
    K: Any,
    M: Any,
    nodes: Any,
    interfaces: Interfaces,
    modes: int = 8,
    below: float = np.inf,
    directions: Sequence[int] = ALL_DIRECTIONS,
    supports: Mapping[str, Sequence[int]] | None = None,
    loads: Mapping[str, float] | None = None,
) -> Moments:
    """Return a flexible body from stiffness and mass matrices; Builder.flexible places it in a mechanism.

    Parameters
    ----------
    K, M : array or scipy.sparse matrix, square
        Stiffness and mass, with three (x y z) or six (and rotations about them) displacements for each node in order.
    nodes : array_like, shape (n, 3)
        Positions of the nodes, m.
    interfaces : mapping of str to int or sequence of int
        {name: node, or several that move as one rigid piece}. The first is the reference, which the body's frame moves
        with.
    modes : int
        Number of modes with all interfaces held, in addition to the static shapes of the interfaces.
    below : float
        Keep only shapes with frequencies below this, Hz.
    directions : sequence of int
        Displacements that interfaces have (0 1 2 along x y z, 3 4 5 rotations); (0, 2, 4) for a body that stays in its
        plane.
    supports : mapping of str to sequence of int, optional
        {interface: directions held}, six in all. Modes are then chosen, and `below` applied, for the structure on these
        supports, which fewer of them describe.
    loads : mapping of str to float, optional
        {interface: kg}, masses carried while modes are chosen.

    Returns
    -------
    Moments
        The reduced structure.

    Raises
    ------
    ModelError
        If an argument is invalid, or the matrices are not those of a free structure.
    """
    K, M, places, each = _checked(K, M, nodes, modes, below)
    pieces = _interface_nodes(places, interfaces, each)
    T = _interface_map(places, pieces, each, is_sparse(K))
    kept_columns = _kept_columns(directions, len(pieces), each, T.shape[1])
    T = T[:, kept_columns]
    m = 6 + len(set(directions)) * (len(pieces) - 1)  # rows of interfaces, which come first
    tied_M = T.T @ M @ T
    translation = T.T @ _translation(places, each)
    supported = None
    if supports is not None or loads:
        rigid = _rigid_motions(places, pieces, each)[kept_columns]
        interface_indices = {
            name: {int(c) % 6: i for i, c in enumerate(kept_columns[:m]) if c // 6 == k}
            for k, name in enumerate(pieces)
        }
        held = supports or {next(iter(pieces)): ALL_DIRECTIONS}
        supported = checked_supports(tied_M, rigid, interface_indices, held, loads or {})
    reduction = reduce_structure(T.T @ K @ T, tied_M, range(6), range(6, m), modes, translation, supported, below)
    _check_free(K, places, each)
    shapes = T @ reduction.shapes
    interface_shapes = np.zeros((6 * len(pieces), shapes.shape[1]))
    interface_shapes[kept_columns[:m]] = reduction.shapes[:m]
    ends = {name: interface_shapes[6 * i : 6 * i + 6] for i, name in enumerate(pieces)}
    size = float(np.linalg.norm(np.ptp(places, axis=0)))
    check_units(reduction.omega, size)
    largest = np.abs(shapes.reshape(len(places), each, -1))[:, :3].max(axis=(0, 1))
    turned = np.max([np.abs(e[3:]).max(axis=0) for e in ends.values()], axis=0) * size
    scale = np.maximum(largest, turned)
    middle = {name: places[list(members)].mean(axis=0) for name, members in pieces.items()}
    body = _moments(M, places, each, shapes / scale, {k: e / scale for k, e in ends.items()}, middle, reduction)
    _warn_implausible_mass(body.mass, places, each == 3)
    return replace(body, cells=skin.neighbour_lines(places, skin.coupled_nodes(K, each)))


def _checked(K: Any, M: Any, nodes: Any, modes: Any, below: Any) -> tuple[Any, Any, Array, int]:
    """Return the matrices, the positions of the nodes, and the number of displacements of each."""
    places = array_argument("flexible: nodes", nodes, error=ModelError)
    if places.ndim != 2 or places.shape[1] != 3 or not np.all(np.isfinite(places)):
        raise ModelError(f"flexible: nodes has the shape {places.shape}; expected the positions of nodes, (n, 3).")
    given = {"flexible: K": K, "flexible: M": M}
    K, M = (A if is_sparse(A) else array_argument(name, A, error=ModelError) for name, A in given.items())
    each = K.shape[0] / max(1, len(places)) if K.ndim == 2 else 0.0
    if K.shape != M.shape or each not in (3.0, 6.0):
        raise ModelError(
            f"flexible: K is {K.shape}, M {M.shape}, and there are {len(places)} nodes; expected 3 or 6 rows per node."
        )
    check_selection("flexible", modes, below)
    return K, M, places, int(each)


def _warn_implausible_mass(mass: float, places: Array, solid: bool) -> None:
    """Warn if the `mass` (kg) is implausible for nodes at `places`; `solid` if the nodes fill the body."""
    sides = np.ptp(places, axis=0)
    size, volume = float(np.linalg.norm(sides)), float(np.prod(sides))
    spelled = " x ".join(f"{x:.3g}" for x in sides)
    why = ""
    if solid and volume > 0.0 and mass > MAX_DENSITY * volume:
        why = "denser than any material"
    elif (solid and mass < MIN_DENSITY * volume) or mass < MIN_MASS_PER_CUBE * size**3:
        why = "emptier than a thousandth of air, or a wire that cannot be seen"
    if why:
        warn(
            f"flexible: {mass:.3g} kg with nodes in a box of {spelled} m: {why}. Expected kg, N/m and metres: many "
            "programs have tonnes, N/mm and millimetres. Nodes times 1e-3, K and M times 1e3 would correct that (rows "
            "and columns of rotations once more by 1e-3 each)."
        )


def moments_from_nodes(
    places: Array, masses: Array, reduction: Reduction, interface_nodes: Mapping[str, int]
) -> Moments:
    """Return the body that another program has reduced to modes, with lumped masses of nodes.

    Parameters
    ----------
    places
        Positions of the nodes, n x 3, m.
    masses
        Mass and inertia of each node along and about x y z, n x 6.
    reduction
        The modes.
    interface_nodes
        Node of each interface.
    """
    shapes = reduction.shapes.reshape(len(places), 6, -1)
    size = float(np.linalg.norm(np.ptp(places, axis=0)))
    turned = np.abs(shapes[list(interface_nodes.values()), 3:]).max(axis=(0, 1)) * size
    scale = np.maximum(np.abs(shapes[:, :3]).max(axis=(0, 1)), turned)
    M = np.diag(masses.ravel())
    ends, middle = ({name: x[n] for name, n in interface_nodes.items()} for x in (shapes / scale, places))
    body = _moments(M, places, 6, reduction.shapes / scale, ends, middle, reduction)
    # The other program's own reduction defines the modal mass matrix exactly.
    exact = np.diag(1 / scale**2)
    D = body.D + (exact - np.einsum("klii->kl", body.D))[:, :, None, None] * np.eye(3) / 3
    return replace(body, D=D)


def _interface_nodes(places: Array, interfaces: Interfaces, each: int) -> dict[str, tuple[int, ...]]:
    check_interfaces("flexible", interfaces, "node, or several")
    pieces: dict[str, tuple[int, ...]] = {}
    for name, given in interfaces.items():
        if why := "has an empty name" if name == "" else name_problem(name):
            raise ModelError(f"flexible: the interface {why}.")
        nodes = tuple(given) if isinstance(given, Iterable) else (given,)
        lost = [n for n in nodes if not isinstance(n, (int, np.integer)) or not 0 <= n < len(places)]
        if lost or not nodes:
            raise ModelError(
                f'flexible: interface "{name}" is at {brief(given)}; expected nodes, 0 to {len(places) - 1}.'
            )
        spread = np.linalg.svd(places[list(nodes)] - places[list(nodes)].mean(axis=0), compute_uv=False)
        if each == 3 and (len(nodes) < 3 or spread[1] <= MIN_SPREAD * np.ptp(places)):
            raise ModelError(
                f'flexible: interface "{name}" has {len(nodes)} nodes in a line; nodes without turns need three or '
                "more that span a plane, to say how it turns."
            )
        pieces[name] = tuple(int(n) for n in nodes)
    taken = [n for nodes in pieces.values() for n in nodes]
    if len(set(taken)) < len(taken):
        raise ModelError("flexible: two interfaces share a node, so neither could move alone. Remove it from one.")
    return pieces


def _interface_map(places: Array, pieces: Mapping[str, Sequence[int]], each: int, thin: bool = False) -> Any:
    """Return the map from displacements of interfaces and other nodes to those of all nodes; scipy.sparse if thin."""
    held = {n for nodes in pieces.values() for n in nodes}
    free = [each * n + d for n in range(len(places)) if n not in held for d in range(each)]
    first = 6 * len(pieces)
    entries = [(row, first + k, 1.0) for k, row in enumerate(free)]
    for i, nodes in enumerate(pieces.values()):
        middle = places[list(nodes)].mean(axis=0)
        for n in nodes:
            block = np.vstack([np.hstack([np.eye(3), -cross_matrix(places[n] - middle)]), np.eye(3, 6, 3)])[:each]
            entries += [(each * n + d, 6 * i + k, float(block[d, k])) for d, k in np.argwhere(block)]
    rows, columns, values = (np.array(x) for x in zip(*entries, strict=True))
    shape = each * len(places), first + len(free)
    if thin:
        library = optional_import("scipy.sparse", "flexible", "a sparse structure")
        return library.csc_matrix((values, (rows, columns)), shape=shape)
    T = np.zeros(shape)
    T[rows, columns] = values
    return T


def _rigid_motions(places: Array, pieces: Mapping[str, Sequence[int]], each: int) -> Array:
    """Return the six rigid motions, about the origin, as displacements of interfaces and other nodes."""
    held = {n for nodes in pieces.values() for n in nodes}
    places_and_rows = [(places[list(nodes)].mean(axis=0), 6) for nodes in pieces.values()]
    places_and_rows += [(place, each) for n, place in enumerate(places) if n not in held]
    zero, one = np.zeros((3, 3)), np.eye(3)
    return np.vstack([np.block([[one, -cross_matrix(p)], [zero, one]])[:rows] for p, rows in places_and_rows])


def _check_free(K: Any, places: Array, each: int) -> None:
    """Raise an error if a rigid motion takes a force: a support left in K would hold the body to its own frame."""
    size = float(np.linalg.norm(np.ptp(places, axis=0))) or 1.0
    rigid = _rigid_motions(places - places.mean(axis=0), {}, each) / ([1.0] * 3 + [size] * 3)
    force, terms = np.abs(K @ rigid), abs(K) @ np.abs(rigid)  # per row, as stiffness may differ with direction
    noise = ROUNDING_FORCE * float(abs(K).max())
    share = np.divide(force, terms, out=np.zeros_like(force), where=(terms > 0.0) & (force > noise))
    row, worst = (int(i) for i in np.unravel_index(np.argmax(share), share.shape))
    if share[row, worst] > GROUND_FORCE_TOLERANCE:
        way = ("translation along ", "rotation about ")[worst // 3] + "xyz"[worst % 3]
        raise ModelError(
            f"flexible: the stiffness matrix holds the body to the ground: a rigid motion ({way}) needs a "
            f"force of {force[row, worst]:.3g} N/m at node {row // each}. Expected the matrix of a free structure: "
            "take its supports out there; here joints hold it."
        )


def _kept_columns(directions: Sequence[int], pieces: int, each: int, n: int) -> Array:
    """Return columns of `_interface_map`: all of the reference, and the `directions` of other interfaces and nodes."""
    if not len(directions) or any(not isinstance(d, int | np.integer) or d not in ALL_DIRECTIONS for d in directions):
        raise ModelError(f"flexible: directions are {brief(directions)}; expected some of 0 to 5.")
    node_columns = np.arange(6 * pieces, n)
    wanted = [6 * i + d for i in range(pieces) for d in ALL_DIRECTIONS if i == 0 or d in directions]
    is_kept = np.isin((node_columns - 6 * pieces) % each, list(directions))
    return np.concatenate([np.array(wanted), node_columns[is_kept]])


def _translation(places: Array, each: int) -> Array:
    return np.tile(np.eye(3, each), len(places)).T


def _moments(
    M: Array,
    places: Array,
    each: int,
    shapes: Array,
    ends: Mapping[str, Array],
    middle: Mapping[str, Array],
    reduction: Reduction,
) -> Moments:
    m = shapes.shape[1]
    move = _translation(places, each)
    turn = np.vstack([np.vstack([-cross_matrix(p), np.eye(3)])[:each] for p in places])
    rigid = np.hstack([move, turn]).T @ (M @ np.hstack([move, turn]))
    mass = float(rigid[0, 0])
    com = np.array([rigid[1, 5], rigid[2, 3], rigid[0, 4]]) / mass
    # The product of mass with x is also used for y and z: exact if M is the same along all three.
    phi = shapes.reshape(len(places), each, m)[:, :3]  # node, direction, mode
    B = np.einsum("ni,njk->kij", places, _mass_times(M, phi, each))
    D = np.einsum("nik,njl->klij", phi, _mass_times(M, phi, each))
    # M defines momentum, angular momentum and the modal mass matrix exactly.
    A, L = (move.T @ (M @ shapes)).T, (turn.T @ (M @ shapes)).T
    B = B + np.stack([-cross_matrix(x) for x in (L - vee(B)) / 2])
    exact = shapes.T @ (M @ shapes)
    D = D + (exact - np.einsum("klii->kl", D))[:, :, None, None] * np.eye(3) / 3
    nodes = {name: (e[:3].T, e[3:].T, np.zeros((m, m, 3))) for name, e in ends.items()}
    E, F = np.zeros((m, m, 3)), np.zeros((m, m, 3, 3))
    grid = places, *split_shapes(shapes, each), lumped_masses(M, each)
    return Moments(mass, com, rigid[3:, 3:], reduction.omega, A, B, D, E, F, nodes, middle, reduction, *grid)


def _mass_times(M: Any, phi: Array, each: int) -> Array:
    """Return mass times displacements (node, direction, mode), lumped to the nodes if these have rotations."""
    along = M[0::each, :][:, 0::each]
    flat = phi.reshape(len(phi), -1)
    product = along @ flat if each == 3 else np.asarray(along.sum(axis=1)).reshape(-1, 1) * flat
    return np.asarray(product).reshape(phi.shape)
