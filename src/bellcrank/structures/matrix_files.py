"""bc.read_matrix: a dense matrix from a file of a finite-element program; and the readers of .mtx files.

Matrix Market: real, coordinate or array, general or symmetric. Source: R. F. Boisvert, R. Pozo and K. A. Remington, The
Matrix Market exchange formats, NISTIR 5935, 1996; as finite-element programs and scipy write them.

Abaqus (*MATRIX GENERATE with *MATRIX OUTPUT): each line has node, displacement, node, displacement and value; a
symmetric matrix is given by one half.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ReadError, brief
from bellcrank.files import check_last_line, read_bytes, report_damaged

Array = np.ndarray[Any, Any]
LAYOUTS, FIELDS, SYMMETRIES = ("coordinate", "array"), ("real", "integer", "double"), ("general", "symmetric")
# Largest number of elements of a dense matrix, whatever the size of the file.
MAX_ELEMENTS = 2e8
FIELDS_PER_LINE = 5  # of Abaqus' files


def matrix_market(where: str, lines: Sequence[str]) -> Array:
    """Return the matrix in `lines`, dense; `where` is for errors."""
    layout, symmetry = _head(where, lines)
    numbers = parse_numbers(where, [line for line in lines[1:] if line.strip() and not line.startswith("%")])
    width = 3 if layout == "coordinate" else 2
    if len(numbers) < width or not all(0 < x < np.inf and x == np.floor(x) for x in numbers[:2]):
        raise ReadError(f"{where}: has no sizes; expected {width} whole numbers after the comments.")
    _check_dense(where, numbers[0], numbers[1])
    entries = numbers[width:]
    if not np.isfinite(entries).all():
        raise ReadError(f"{where}: holds values that are not finite; expected numbers.")
    if width == 3:
        check_count(where, 3 * numbers[2], len(entries))
    sizes = [int(x) for x in numbers[:width]]
    if symmetry == "symmetric" and sizes[0] != sizes[1]:
        raise ReadError(f"{where}: is {sizes[0]} x {sizes[1]} and symmetric; expected a square.")
    return _coordinates(where, sizes, entries, symmetry) if width == 3 else _array(where, sizes, entries, symmetry)


def _head(where: str, lines: Sequence[str]) -> tuple[str, str]:
    """Return layout and symmetry from the first line."""
    head = lines[0].lower().split() if lines else []
    if len(head) != 5 or head[0] != "%%matrixmarket" or head[1] != "matrix":
        raise ReadError(f'{where}: begins with {brief(list(lines[:1]))}; expected "%%MatrixMarket matrix ...".')
    layout, field, symmetry = head[2:]
    for given, known in ((layout, LAYOUTS), (field, FIELDS), (symmetry, SYMMETRIES)):
        if given not in known:
            raise ReadError(f"{where}: is {brief(given)}; expected {' or '.join(known)}.")
    return layout, symmetry


def parse_numbers(where: str, lines: list[str]) -> Array:
    """Return all numbers in `lines`; `where` is for errors."""
    try:
        return np.array(" ".join(lines).split(), dtype=float)
    except ValueError as error:
        raise ReadError(f"{where}: holds something that is not a number: {str(error)[:200]}.") from None


def _coordinates(where: str, sizes: list[int], values: Array, symmetry: str) -> Array:
    rows, columns, entries = sizes
    i, j, x = values.reshape(entries, 3).T
    whole = (i == np.floor(i)) & (j == np.floor(j))
    if not (whole & (i >= 1) & (j >= 1) & (i <= rows) & (j <= columns)).all():
        raise ReadError(f"{where}: an entry lies outside of {rows} x {columns}. Indices count from one.")
    i, j = i.astype(int) - 1, j.astype(int) - 1
    if symmetry == "symmetric" and (i < j).any() and (i > j).any():
        raise ReadError(
            f"{where}: is symmetric and has entries on both sides of the diagonal, which would count twice; expected "
            'one half, or "general".'
        )
    A = np.zeros((rows, columns))
    np.add.at(A, (i, j), x)
    if symmetry == "symmetric":
        off = i != j
        np.add.at(A, (j[off], i[off]), x[off])
    return A


def _array(where: str, sizes: list[int], values: Array, symmetry: str) -> Array:
    """Return a matrix stored by columns; a symmetric one from the diagonal down."""
    rows, columns = sizes
    if symmetry == "general":
        check_count(where, rows * columns, len(values))
        return values.reshape(columns, rows).T.copy()
    check_count(where, rows * (rows + 1) // 2, len(values))
    A = np.zeros((rows, rows))
    A.T[np.triu_indices(rows)] = values
    return np.asarray(A + np.tril(A, -1).T)


def check_count(where: str, expected: float, count: int) -> None:
    """Raise an error if `count`, a count of numbers, is not `expected`; `where` is for errors."""
    if count != expected:
        what = "it was cut short" if count < expected else "its sizes are wrong"
        raise ReadError(f"{where}: {count} numbers where its sizes say {expected:.15g}: {what}. Write it again.")


def _check_dense(where: str, rows: float, columns: float) -> None:
    if float(rows) * float(columns) > MAX_ELEMENTS:
        raise ReadError(f"{where}: is {rows:g} x {columns:g}, too large to be made dense. Condense it first.")


def abaqus_matrix(where: str, lines: Sequence[str]) -> Array:
    """Return the matrix in `lines`, with nodes in the order of their labels; `where` is for errors.

    Each node has three displacements or, if there are rotations, six.
    """
    rows = [line for line in lines if line.strip() and not line.startswith("*")]
    short = next((i for i, line in enumerate(rows) if len(line.rstrip(" ,").split(",")) != FIELDS_PER_LINE), None)
    if short is not None or not rows:
        got = f'"{rows[short].strip()}"' if short is not None else "nothing"
        raise ReadError(
            f"{where}: holds {got}; expected node, displacement, node, displacement, value in every line, as in "
            "Abaqus' FORMAT=MATRIX INPUT. An incomplete last line means that the file was cut short: write it again."
        )
    table = parse_numbers(where, [line.replace(",", " ") for line in rows]).reshape(-1, FIELDS_PER_LINE)
    labels, each = np.unique(table[:, [0, 2]]), table[:, [1, 3]]
    if labels.min() < 1 or each.min() < 1 or each.max() > 6 or np.any(table[:, :4] != np.rint(table[:, :4])):
        raise ReadError(
            f"{where}: has nodes from {labels.min():g} and displacements {each.min():g} to {each.max():g}; expected "
            "labels from 1, and 1 to 6. Internal variables of elements have none: condense them, or leave them out."
        )
    width = 3 if each.max() <= 3 else 6
    n = width * len(labels)
    _check_dense(where, n, n)
    i, j = (width * np.searchsorted(labels, table[:, k]) + table[:, k + 1].astype(int) - 1 for k in (0, 2))
    A = np.zeros((n, n))
    A[i, j] = table[:, 4]
    halves = not np.any((i != j) & (A[j, i] != 0.0))
    return np.asarray(A + np.triu(A, 1).T + np.tril(A, -1).T) if halves else A


@explain_argument_errors
def read_matrix(path: str | os.PathLike[str], name: str | None = None) -> Array:
    """Read the matrix in a file; its format is recognised by the content.

    Parameters
    ----------
    path : path
        Matrix Market (.mtx), Nastran's OUTPUT4 (.op4, formatted or not) or Abaqus (*MATRIX OUTPUT, .mtx).
    name : str, optional
        Name of a matrix in an OUTPUT4 file; not needed if there is only one.

    Returns
    -------
    ndarray, shape (rows, columns)
        The matrix, dense. Abaqus' nodes are in the order of their labels, with three or six displacements each.

    Raises
    ------
    ReadError
        If the file cannot be read.
    """
    where, file, raw = read_bytes(path, "matrix file")
    with report_damaged(where):
        A = _read(where, file, raw, name)
    if b"\0" not in raw:
        check_last_line(where, raw)
    return A


def _read(where: str, file: Path, raw: bytes, name: str | None) -> Array:
    from bellcrank.structures.nastran_op4 import binary_op4, op4

    if file.suffix.lower() == ".op4" and b"\0" in raw:
        return binary_op4(where, raw, name)
    if b"\0" in raw:
        raise ReadError(f"{where}: is binary; expected text, or Nastran's OUTPUT4 in a file that ends in .op4.")
    lines = raw.decode("ascii", errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        return matrix_market(where, lines)
    if file.suffix.lower() == ".op4":
        return op4(where, lines, name)
    if first.startswith("*") or "," in first:
        return abaqus_matrix(where, lines)
    return matrix_market(where, lines)
