"""Reader and writer of Wallrapp's standard input data (SID), the exchange format of SIMPACK, NEWEUL-M2 and others.

They contain the coefficients of our kinetic energy (docs/flexible.md) under other names, so nothing is lost:

    mdCM  h + A_k n_k           Ct  A_k + E_kl n_l          Me  M_kl           Gr_k   2 (tr B_k 1 - B_k^T)
    J     I + I1_k n_k          Cr  C0_k + C1_kl n_l        Ke, De             Oe_k   -I1_k / 2 - I2_kl n_l
    phi   shift_k + second_kl n_l, psi  turn_k, of every node

J has the elements 11 22 33 12 13 23, Oe those of w1^2 w2^2 w3^2 w1w2 w2w3 w1w3. Stiffening by a preload (ksigma) is not
supported, and terms of a higher order are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ModelError, ReadError, brief
from bellcrank.files import checked_finite, read_lines, report_damaged, write_text
from bellcrank.model.flexible_body import inertia_of, vee
from bellcrank.structures import sid_text
from bellcrank.structures.beam import Array
from bellcrank.structures.modes import Moments, cross_matrix
from bellcrank.structures.reduction import Reduction, check_interfaces, eigenmodes
from bellcrank.structures.sid_text import SidBlock, TaylorMatrix, fortran_number, read_taylor, whole_entry

J_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
OE_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))
OE_TWICE = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])  # Oe has a product of two different speeds once
ROUNDING_TOLERANCE = 1e-9  # part of the diagonal; a smaller coupling of two modes is rounding
NODE_BLOCKS = {"origin", "phi", "psi"}  # blocks of a node
NodeTaylors = tuple[TaylorMatrix, TaylorMatrix, TaylorMatrix]
DAMPING_COUPLING_TOLERANCE = 1e-6  # part of the damping; a larger coupling is not modal damping


@explain_argument_errors
def read_sid(path: str | os.PathLike[str], interfaces: Mapping[str, int]) -> Moments:
    """Read a flexible body from a file of standard input data (.SID_FEM); Builder.flexible places it in a mechanism.

    Parameters
    ----------
    path : path
        The file.
    interfaces : mapping of str to int
        {name: number of a node}; the first is the reference.

    Returns
    -------
    Moments
        The body.

    Raises
    ------
    ReadError, ModelError
        If the file cannot be read, or an interface is not in it.
    """
    where, lines = read_lines(path, "SID file")
    with report_damaged(where):
        return checked_finite(where, _read(where, lines, interfaces))


def _read(where: str, lines: list[str], interfaces: Mapping[str, int]) -> Moments:
    modal = sid_text.parse_blocks(where, lines).find(where, "part").find(where, "modal")
    head = modal.find(where, "refmod")
    mass = sid_text.finite_number(f"{where}: mass", head.words.get("mass", "nothing"))
    m = whole_entry(where, head, "nelastq")
    if mass <= 0.0 or m < 1:
        raise ReadError(f"{where}: has a mass of {mass:g} kg and {m} modes; expected more than 0 of both.")
    shapes = {"mdCM": (3, 1), "J": (6, 1), "Ct": (m, 3), "Cr": (m, 3), "Me": (m, m), "Gr": (3, 3 * m), "Oe": (m, 6)}
    matrices = {name: read_taylor(where, modal.find(where, name), shape, m) for name, shape in shapes.items()}
    matrices |= {name: read_taylor(where, modal.find(where, name), (m, m), m) for name in ("Ke", "De", "ksigma")}
    if matrices["ksigma"].m0.any():
        raise ReadError(f"{where}: ksigma is not 0: it is under a preload, which a body here does not have.")
    nodes, others = _nodes(where, modal.find(where, "frame"), m, interfaces)
    return _moments(where, mass, matrices, nodes, others)


def _nodes(
    where: str, frame: SidBlock, m: int, interfaces: Mapping[str, int]
) -> tuple[dict[str, NodeTaylors], list[NodeTaylors]]:
    """Return origin, phi and psi of each interface, and of the other nodes."""
    check_interfaces(where, interfaces, "number of a node")
    known = {b.value: b for b in frame.blocks if b.name.lower() == "node"}
    missing = {name: n for name, n in interfaces.items() if str(n) not in known}
    if missing:
        raise ModelError(f"{where}: has no node {brief(missing)}; it has {brief(list(known))}.")
    interface_nodes = {name: _node(where, known[str(n)], m) for name, n in interfaces.items()}
    interface_numbers = {str(n) for n in interfaces.values()}
    others = (b for n, b in known.items() if n not in interface_numbers)
    complete = [b for b in others if {x.name.lower() for x in b.blocks} >= NODE_BLOCKS]
    return interface_nodes, [_node(where, b, m) for b in complete]


def _node(where: str, node: SidBlock, m: int) -> NodeTaylors:
    sizes = {"origin": 1, "phi": m, "psi": m}
    origin, phi, psi = (read_taylor(where, node.find(where, x), (3, c), m) for x, c in sizes.items())
    return origin, phi, psi


def _moments(
    where: str,
    mass: float,
    matrices: Mapping[str, TaylorMatrix],
    nodes: Mapping[str, NodeTaylors],
    others: list[NodeTaylors],
) -> Moments:
    """Return the body in our form; `others` are nodes to which nothing is joined, used for drawing."""
    m = len(matrices["Me"].m0)
    omega, X = _modes(where, matrices["Ke"].m0, matrices["Me"].m0)
    M = X.T @ matrices["Me"].m0 @ X
    damping = X.T @ matrices["De"].m0 @ X
    coupling, largest = np.abs(damping - np.diag(np.diag(damping))).max(), max(np.abs(damping).max(), 1e-300)
    if coupling > DAMPING_COUPLING_TOLERANCE * largest:
        raise ReadError(f"{where}: its damping couples modes; expected modal or Rayleigh damping.")
    A, C0 = X.T @ matrices["Ct"].m0, X.T @ matrices["Cr"].m0
    E = _mix_both(X, matrices["Ct"].m1)
    E = (E + np.swapaxes(E, 0, 1)) / 2
    B = np.einsum("kij,kl->lij", _first_moments(matrices["Gr"].m0, m), X)
    # Gr defines B to rounding; angular momentum defines it exactly
    B = B + np.stack([-cross_matrix(x / 2) for x in C0 - vee(B)])
    S = _second_moments(_mix_both(X, -matrices["Oe"].m1 / OE_TWICE))
    C1 = _mix_both(X, matrices["Cr"].m1)
    odd, even = (C1 - np.swapaxes(C1, 0, 1)) / 2, (C1 + np.swapaxes(C1, 0, 1)) / 2
    D = M[:, :, None, None] * np.eye(3) / 3 + _antisymmetric(-odd)
    F = S - M[:, :, None, None] * np.eye(3) / 3 + _antisymmetric(even)
    places = {name: origin.m0[:, 0] for name, (origin, _, _) in nodes.items()}
    ends = {
        name: (X.T @ phi.m0.T, X.T @ psi.m0.T, np.einsum("ikj,kl,jm->lmi", phi.m1, X, X))
        for name, (_, phi, psi) in nodes.items()
    }
    drawn = [*nodes.values(), *others]
    grid = np.array([origin.m0[:, 0] for origin, _, _ in drawn])
    shift, turn = (np.stack([node[i].m0 @ X for node in drawn]) for i in (1, 2))
    rows = np.concatenate([shift, turn], axis=1).reshape(6 * len(grid), m)
    reduction = Reduction(rows / np.sqrt(np.diag(M)), omega, np.zeros(m), A**2 / mass / np.diag(M)[:, None])
    inertia = _symmetric_matrix(matrices["J"].m0[:, 0], _inertia_order(matrices["J"], B, X))
    com = matrices["mdCM"].m0[:, 0] / mass
    blank = np.zeros((len(grid), 6))
    modal_damping = np.diag(damping)
    return Moments(
        mass, com, inertia, omega, A, B, D, E, F, ends, places, reduction, grid, shift, turn, blank, (), modal_damping
    )


def _modes(where: str, K: Array, M: Array) -> tuple[Array, Array]:
    """Return the frequencies, and the combination of modes that has them: the modes themselves if uncoupled."""
    K, M = (K + K.T) / 2, (M + M.T) / 2
    if np.any(np.diag(M) <= 0.0) or not (_is_diagonal(K) and _is_diagonal(M)):
        square, X = eigenmodes(K, M)
    else:
        square, X = np.diag(K) / np.diag(M), np.eye(len(K))
    if square.min() <= 0.0:
        raise ReadError(f"{where}: a mode has no stiffness. Rigid motions belong to the joint: leave them out.")
    return np.sqrt(square), X


def _is_diagonal(X: Array) -> bool:
    """Return whether only rounding lies beside the diagonal."""
    size = np.sqrt(np.abs(np.diag(X)))
    return bool(np.all(np.abs(X - np.diag(np.diag(X))) <= ROUNDING_TOLERANCE * np.outer(size, size)))


def _mix_both(X: Array, terms: Array) -> Array:
    """Return the terms (k, l, ...) of two modes in the combined modes X."""
    return np.asarray(np.einsum("kl...,km,ln->mn...", terms, X, X))


def _first_moments(Gr: Array, m: int) -> Array:
    """Return B_k from 2 (tr B 1 - B^T)."""
    blocks = (Gr[:, 3 * k : 3 * k + 3] for k in range(m))
    return np.array([np.trace(G) / 4 * np.eye(3) - G.T / 2 for G in blocks])


def _antisymmetric(v: Array) -> Array:
    """Return antisymmetric matrices X with vee(X) = v."""
    X = np.zeros((*v.shape[:-1], 3, 3))
    for i, (a, b) in enumerate(((1, 2), (2, 0), (0, 1))):
        X[..., a, b], X[..., b, a] = v[..., i] / 2, -v[..., i] / 2
    return X


def _second_moments(I2: Array) -> Array:
    """Return S from the six elements of tr(S) 1 - S in the order of Oe, symmetric in the two modes."""
    I = np.zeros((*I2.shape[:2], 3, 3))
    for e, (a, b) in enumerate(OE_ORDER):
        I[..., a, b] = I[..., b, a] = I2[..., e]
    I = (I + np.swapaxes(I, 0, 1)) / 2
    return np.asarray(np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) / 2 - I)


def _inertia_order(J: TaylorMatrix, B: Array, X: Array) -> tuple[tuple[int, int], ...]:
    """Return the order of the elements of J: some files swap 23 and 13, which J's change with the modes reveals."""
    S = B + np.swapaxes(B, -1, -2)
    slopes = inertia_of(S)
    given = X.T @ J.m1[:, :, 0].T
    off = [float(np.abs(given - np.stack([slopes[:, a, b] for a, b in o], axis=-1)).max()) for o in (J_ORDER, OE_ORDER)]
    return J_ORDER if off[0] <= off[1] else OE_ORDER


def _symmetric_matrix(six: Array, order: tuple[tuple[int, int], ...]) -> Array:
    I = np.zeros((3, 3))
    for x, (a, b) in zip(six, order, strict=True):
        I[a, b] = I[b, a] = x
    return I


@explain_argument_errors
def write_sid(path: str | os.PathLike[str], structure: Moments, damping: float = 0.0) -> None:
    """Write a flexible body as standard input data; its nodes count from 1 in the order of its interfaces.

    Parameters
    ----------
    path : path
        The file.
    structure : Moments
        The body.
    damping : float
        Damping of each mode, as a part of critical.
    """
    s, m = structure, len(structure.omega)
    M = np.einsum("klii->kl", s.D)
    S1, S2 = s.B + np.swapaxes(s.B, -1, -2), s.D + (s.F + np.swapaxes(s.F, -1, -2)) / 2
    I1, I2 = inertia_of(S1), inertia_of(S2)
    I2 = (I2 + np.swapaxes(I2, 0, 1)) / 2
    C1 = vee(np.swapaxes(s.D, 0, 1)) + vee(s.F)
    Gr = np.hstack([2 * (np.trace(B) * np.eye(3) - B.T) for B in s.B])
    Ge = np.hstack([C1[:, k] - C1[k] for k in range(m)])
    zeros = np.zeros((m, m, m))
    modal_damping = np.diag(M) * 2 * damping * s.omega + (s.damping if len(s.damping) else 0.0)
    lines = [f"{len(s.nodes):5d}{m:5d}    :No. nodes, No. modes: written by Bellcrank", " part", "      new modal ="]
    lines += ["           refmod", f"                mass = {fortran_number(s.mass)}", f"                nelastq = {m}"]
    lines += [
        f"                ielastq ({k + 1:4d}) = mode {k + 1}: {f:.6g} Hz" for k, f in enumerate(s.omega / 2 / np.pi)
    ]
    lines += ["           end refmod", "           frame"]
    for n, (place, (shift, turn, second)) in enumerate(zip(s.places.values(), s.nodes.values(), strict=True), 1):
        lines += [f"                new node = {n}", "                     rframe = body ref"]
        turns = np.stack([cross_matrix(t) for t in turn], axis=1)
        for name, m0, m1 in (
            ("origin", place[:, None], shift.T[:, :, None]),
            ("phi", shift.T, np.einsum("kli->ikl", second)),
            ("psi", turn.T, np.zeros((3, m, m))),
            ("AP", np.eye(3), turns),
        ):
            lines += sid_text.block_lines(name, m0, m1, 21)
        lines.append("                end node")
    lines.append("           end frame")
    six = np.stack([I1[:, a, b] for a, b in J_ORDER])[:, :, None]
    for name, m0, m1 in (
        ("mdCM", s.mass * s.com[:, None], s.A.T[:, :, None]),
        ("J", np.array([[s.inertia[a, b]] for a, b in J_ORDER]), six),
        ("Ct", s.A, s.E),
        ("Cr", vee(s.B), C1),
        ("Me", M, zeros),
        ("Gr", Gr, np.zeros((3, m, 3 * m))),
        ("Ge", Ge, np.zeros((m, m, 3 * m))),
        ("Oe", -np.stack([I1[:, a, b] for a, b in OE_ORDER], -1) * OE_TWICE / 2,
         -np.stack([I2[..., a, b] for a, b in OE_ORDER], -1) * OE_TWICE),
        ("ksigma", np.zeros((m, m)), zeros),
        ("Ke", np.diag(np.diag(M) * s.omega**2), zeros),
        ("De", np.diag(modal_damping), zeros),
    ):  # fmt: skip
        lines += sid_text.block_lines(name, m0, m1, 11)
    write_text(Path(path), "\n".join([*lines, "      end modal", " end part", ""]), "Call write_sid()")
