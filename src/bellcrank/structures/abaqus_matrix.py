"""Reader of matrices that Abaqus writes (*MATRIX GENERATE with *MATRIX OUTPUT).

Each line has node, displacement, node, displacement and value; a symmetric matrix is given by one half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.structures.matrix_market import MAX_ELEMENTS, Array, parse_numbers

FIELDS_PER_LINE = 5


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
    if float(n) * n > MAX_ELEMENTS:
        raise ReadError(f"{where}: is {n} x {n}, too large to be made dense. Condense it first.")
    i, j = (width * np.searchsorted(labels, table[:, k]) + table[:, k + 1].astype(int) - 1 for k in (0, 2))
    A = np.zeros((n, n))
    A[i, j] = table[:, 4]
    halves = not np.any((i != j) & (A[j, i] != 0.0))
    return np.asarray(A + np.triu(A, 1).T + np.tril(A, -1).T) if halves else A
