"""Wallrapp's standard input data as text: blocks "NAME ... end NAME" of polynomials of the modal coordinates.

    order nrow ncol nq nqn structure         structure: 0 nothing, 1 diagonal, 2 symmetric, 3 any, 4 ones
    m0(i, j)  m1(i, k, j)                    M(q) = m0 + sum q_k m1[:, k, :]; entries that are not written are 0

O. Wallrapp, Standardization of flexible body modeling in multibody system codes, Mech. Struct. Mach. 22 (3), 1994.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bellcrank.errors import ReadError, brief
from bellcrank.structures.beam import Array

HEAD_KEYS = ("order", "nrow", "ncol", "nq", "nqn", "structure")
ENTRY = re.compile(r"(m[01n])\s*\(([\s\d,]+)\)$", re.IGNORECASE)
MAX_ENTRIES = 100_000  # entries of a polynomial


@dataclass(frozen=True)
class TaylorMatrix:
    """A polynomial of first order in the modal coordinates."""

    m0: Array  # rows x columns
    m1: Array  # rows x coordinates x columns


@dataclass
class SidBlock:
    """A block with entries KEY = VALUE and inner blocks."""

    name: str
    value: str = ""
    words: dict[str, str] = field(default_factory=dict)  # KEY = VALUE
    blocks: list[SidBlock] = field(default_factory=list)

    def find(self, where: str, name: str) -> SidBlock:
        """Return the inner block `name`; `where` is for errors."""
        matches = [b for b in self.blocks if b.name.lower() == name.lower()]
        if not matches:
            raise ReadError(f'{where}: block "{self.name}" has no "{name}": it was cut short, or is not a SID file.')
        return matches[0]


def parse_blocks(where: str, lines: Sequence[str]) -> SidBlock:
    """Return the outermost block of a file's `lines`, of which the first is a title; `where` is for errors."""
    top = SidBlock("file")
    stack = [top]
    for i, line in enumerate(lines[1:], 2):
        key, _, value = (x.strip() for x in line.partition("="))
        if not key:
            continue
        if key.lower().startswith("end "):
            name = key[4:].strip()
            if len(stack) == 1 or stack[-1].name.lower() != name.lower():
                raise ReadError(f'{where}: line {i} is "{brief(key)}"; expected "end {stack[-1].name}".')
            stack.pop()
        elif key.lower().startswith("new ") or not line.count("="):
            block = SidBlock(key.removeprefix("new ").strip(), value)
            stack[-1].blocks.append(block)
            stack.append(block)
        else:
            stack[-1].words[" ".join(key.split())] = value
    if len(stack) > 1:
        raise ReadError(f'{where}: ends inside of "{stack[-1].name}": it was cut short. Write it again.')
    return top


def finite_number(where: str, text: str) -> float:
    """Return the finite number that `text` contains; `where` is for errors."""
    try:
        number = float(text.replace("D", "E").replace("d", "e"))
    except ValueError:
        raise ReadError(f"{where}: {brief(text)} is not a number.") from None
    if not np.isfinite(number):
        raise ReadError(f"{where}: {brief(text)} is not finite.")
    return number


def whole_entry(where: str, block: SidBlock, key: str) -> int:
    """Return the entry `key` of `block` as an integer; `where` is for errors."""
    words = {k.lower(): v for k, v in block.words.items()}
    number = finite_number(f'{where}: "{key}" of "{block.name}"', words.get(key.lower(), "nothing"))
    if number != int(number) or not 0 <= number <= MAX_ENTRIES:
        raise ReadError(f'{where}: "{key}" of "{block.name}" is {number:g}; expected a whole number.')
    return int(number)


def read_taylor(where: str, block: SidBlock, shape: tuple[int, int], modes: int) -> TaylorMatrix:
    """Return the polynomial in a block.

    Parameters
    ----------
    where
        Subject of error messages.
    block
        The block.
    shape
        Required number of rows and columns.
    modes
        Required number of modal coordinates.
    """
    _, rows, columns, q, _, structure = (whole_entry(where, block, key) for key in HEAD_KEYS)
    if (rows, columns) != shape or q != modes:
        raise ReadError(
            f'{where}: "{block.name}" is {rows} x {columns} with {q} coordinates; expected {shape[0]} x {shape[1]} '
            f"with {modes}."
        )
    m0, m1 = np.zeros(shape), np.zeros((rows, modes, columns))
    if structure == 4:
        m0 = np.eye(rows, columns)
    for key, value in block.words.items():
        entry = ENTRY.match(key)
        if entry is None:
            continue
        indices = tuple(int(x) - 1 for x in entry[2].split(","))
        target = {"m0": m0, "m1": m1}.get(entry[1].lower())
        if target is None:
            raise ReadError(f'{where}: "{block.name}" has terms of a higher order ({key}); expected m0 and m1.')
        if len(indices) != target.ndim or any(not 0 <= i < n for i, n in zip(indices, target.shape, strict=True)):
            raise ReadError(f'{where}: {key} of "{block.name}" is outside of {target.shape}.')
        target[indices] = finite_number(f'{where}: {key} of "{block.name}"', value)
    if structure == 2 and not np.array_equal(m0, m0.T):
        m0 = np.where(m0 == 0.0, m0.T, m0)  # only one half is in the file
    return TaylorMatrix(m0, m1)


def block_lines(name: str, m0: Array, m1: Array, indent: int) -> list[str]:
    """Return the lines of a block.

    Parameters
    ----------
    name
        Name of the block.
    m0
        Constant term, rows x columns.
    m1
        Linear term, rows x coordinates x columns.
    indent
        Number of leading blanks.
    """
    pad, inner = " " * indent, " " * (indent + 4)
    rows, q, columns = m1.shape
    structure = 3 if m0.any() or m1.any() else 0
    order = 1 if m1.any() else 0
    values: Mapping[str, int] = dict(zip(HEAD_KEYS, (order, rows, columns, q, 0, structure), strict=True))
    lines = [f"{pad}{name}", *(f"{inner}{key:<22}= {value:4d}" for key, value in values.items())]
    for i, j in np.argwhere(m0):
        lines.append(f"{inner}{f'm0({i + 1:3d},{j + 1:3d})':<22}= {fortran_number(m0[i, j])}")
    for i, k, j in np.argwhere(m1):
        lines.append(f"{inner}{f'm1({i + 1:3d},{k + 1:3d},{j + 1:3d})':<22}= {fortran_number(m1[i, k, j])}")
    return [*lines, f"{pad}end {name}"]


def fortran_number(x: float) -> str:
    """Return `x` with a Fortran exponent."""
    return f"{x:.16E}".replace("E", "D")
