"""Reader and writer of MBDyn's files of modal bodies (.fem).

As the manual describes them: groups of numbers, each below a line of its own that begins with "** RECORD GROUP".

     1  revision, nodes, modes (normal, attached, constraint, rejected)      8  shapes, six numbers a node
     2  labels of the nodes       3, 4  modal displacements and velocities   9, 10  modal mass and stiffness
     5, 6, 7  x, y, z of the nodes                                          11  masses of the nodes, six each

The masses of the nodes define how inertia changes as the body bends; shapes are about the frame of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ModelError, ReadError, brief
from bellcrank.files import check_last_line, checked_finite, read_bytes, read_lines, report_damaged, write_text
from bellcrank.structures.beam import Array
from bellcrank.structures.matrices import moments_from_nodes
from bellcrank.structures.modes import Moments
from bellcrank.structures.reduction import Reduction, check_interfaces, eigenmodes

GROUP_NAMES = {
    2: "FINITE ELEMENT NODE LIST", 3: "INITIAL MODAL DISPLACEMENTS", 4: "INITIAL MODAL VELOCITIES",
    5: "NODAL X COORDINATES", 6: "NODAL Y COORDINATES", 7: "NODAL Z COORDINATES", 8: "MODE SHAPES",
    9: "MODAL MASS MATRIX", 10: "MODAL STIFFNESS MATRIX", 11: "DIAGONAL OF LUMPED MASS MATRIX",
}  # fmt: skip
REQUIRED_GROUPS = (1, 2, 5, 6, 7, 8, 9, 10, 11)


@explain_argument_errors
def read_fem(path: str | os.PathLike[str], interfaces: Mapping[str, int]) -> Moments:
    """Read a flexible body from MBDyn's .fem file; Builder.flexible places it in a mechanism.

    Parameters
    ----------
    path : path
        The file.
    interfaces : mapping of str to int
        {name: label of a node}; the first is the reference.

    Returns
    -------
    Moments
        The body.

    Raises
    ------
    ReadError, ModelError
        If the file cannot be read, or an interface is not in it.
    """
    where, lines = read_lines(path, "fem file")
    check_interfaces(where, interfaces, "label of a node")
    with report_damaged(where):
        moments = checked_finite(where, _read(where, lines, interfaces))
    check_last_line(where, read_bytes(path, "fem file")[2])
    return moments


def _read(where: str, lines: list[str], interfaces: Mapping[str, int]) -> Moments:
    groups = _groups(where, lines)
    n, m = _checked(where, groups)
    labels = groups[2].astype(int).tolist()
    missing = {name: label for name, label in interfaces.items() if label not in labels}
    if missing:
        raise ModelError(f"{where}: has no node {brief(missing)}; its labels are {brief(labels)}.")
    shapes = groups[8].reshape(m, 6 * n).T
    K, M = (groups[g].reshape(m, m) for g in (10, 9))
    square, mixed = eigenmodes((K + K.T) / 2, (M + M.T) / 2)
    if square[0] <= 0.0:
        raise ModelError(f"{where}: a mode has no stiffness. Rigid motions belong to the joint: leave them out.")
    places = np.stack([groups[5], groups[6], groups[7]], axis=-1)
    reduction = Reduction(shapes @ mixed, np.sqrt(square), np.zeros(m), np.zeros((m, 3)))
    interface_nodes = {name: labels.index(label) for name, label in interfaces.items()}
    return moments_from_nodes(places, groups[11].reshape(n, 6), reduction, interface_nodes)


@explain_argument_errors
def write_fem(path: str | os.PathLike[str], structure: Moments) -> None:
    """Write a flexible body for MBDyn's modal joint; labels count from 1 in the order of the nodes.

    Parameters
    ----------
    path : path
        The file.
    structure : Moments
        The body.

    Raises
    ------
    ModelError
        If the masses of its nodes are not known.
    """
    n, m = len(structure.grid), len(structure.omega)
    if not structure.lumped.any():
        raise ModelError("write_fem: the structure has no masses of its nodes, which such a file needs.")
    mass = np.diag(np.einsum("kkii->k", structure.D))
    shapes = np.concatenate([structure.shapes, structure.turns], axis=1)
    groups = {
        2: np.arange(1, n + 1)[None], 3: np.zeros((1, m)), 4: np.zeros((1, m)),
        5: structure.grid[:, :1].T, 6: structure.grid[:, 1:2].T, 7: structure.grid[:, 2:].T,
        8: np.moveaxis(shapes, 2, 0).reshape(m * n, 6),
        9: mass, 10: mass * structure.omega**2, 11: structure.lumped,
    }  # fmt: skip
    lines = ["** RECORD GROUP 1, HEADER", "** REVISION, NODES, NORMAL, ATTACHED, CONSTRAINT, REJECTED MODES"]
    lines.append(f"REV0 {n} {m} 0 0 0")
    for group, rows in groups.items():
        lines += ["**", f"** RECORD GROUP {group}, {GROUP_NAMES[group]}"]
        lines += [" ".join(f"{int(x)}" if group == 2 else f"{x:.17g}" for x in row) for row in rows]
    write_text(Path(path), "\n".join([*lines, "**", ""]), "Call write_fem()")


def _checked(where: str, groups: Mapping[int, Array]) -> tuple[int, int]:
    """Return the numbers of nodes and modes, after checking that every group has the corresponding size."""
    lost = [str(g) for g in REQUIRED_GROUPS if g not in groups]
    if lost:
        raise ReadError(f"{where}: has no record group {', '.join(lost)}: it was cut short, or is not a .fem file.")
    n, m = _sizes(where, groups[1])
    sizes = {2: n, 5: n, 6: n, 7: n, 8: 6 * n * m, 9: m * m, 10: m * m, 11: 6 * n}
    for group, expected in sizes.items():
        if len(groups[group]) != expected:
            raise ReadError(
                f"{where}: record group {group} has {len(groups[group])} numbers; expected {expected} for {n} nodes "
                f"and {m} modes. It was cut short, or its header is wrong."
            )
    return n, m


def _groups(where: str, lines: list[str]) -> dict[int, Array]:
    texts: dict[int, list[str]] = {}
    current_words: list[str] = []
    for line in lines:
        head = re.match(r"\*\*\s*RECORD GROUP\s+(\d+)", line)
        if head:
            current_words = texts.setdefault(int(head[1]), [])
        elif not line.startswith("*"):
            current_words += line.split()
    numbers = {}
    for group, words in texts.items():
        fields = [w for w in words if not re.fullmatch(r"(?i)rev\d+", w)]
        try:
            numbers[group] = np.array(fields, dtype=float)
        except ValueError as error:
            raise ReadError(f"{where}: record group {group} holds something that is not a number: {error}.") from None
    return numbers


def _sizes(where: str, head: Array) -> tuple[int, int]:
    if len(head) < 5 or np.any(head != np.rint(head)):
        raise ReadError(f"{where}: record group 1 has {head.tolist()}; expected nodes, and four counts of modes.")
    n, normal, attached, constraint, rejected = (int(x) for x in head[-5:])
    m = normal + attached + constraint - rejected
    if n < 1 or m < 1:
        raise ReadError(f"{where}: has {n} nodes and {m} modes; expected one or more of each.")
    return n, m
