"""Reader of Matrix Market files: real, coordinate or array, general or symmetric.

Source: R. F. Boisvert, R. Pozo and K. A. Remington, The Matrix Market exchange formats, NISTIR 5935, 1996; as
finite-element programs and scipy write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.errors import ReadError, brief

Array = np.ndarray[Any, Any]
LAYOUTS, FIELDS, SYMMETRIES = ("coordinate", "array"), ("real", "integer", "double"), ("general", "symmetric")
# Largest number of elements of a dense matrix, whatever the size of the file.
MAX_ELEMENTS = 2e8


def matrix_market(where: str, lines: Sequence[str]) -> Array:
    """Return the matrix in `lines`, dense; `where` is for errors."""
    layout, symmetry = _head(where, lines)
    numbers = parse_numbers(where, [line for line in lines[1:] if line.strip() and not line.startswith("%")])
    width = 3 if layout == "coordinate" else 2
    if len(numbers) < width or not all(0 < x < np.inf and x == np.floor(x) for x in numbers[:2]):
        raise ReadError(f"{where}: has no sizes; expected {width} whole numbers after the comments.")
    if float(numbers[0]) * float(numbers[1]) > MAX_ELEMENTS:
        raise ReadError(f"{where}: is {numbers[0]:g} x {numbers[1]:g}, too large to be made dense. Condense it first.")
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
