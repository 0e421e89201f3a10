"""Which coordinates depend on which: pivots of C by numbers, well-conditioned first and sparse among those."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
STRONG = 0.3  # a pivot may be this much smaller than the largest, if that saves work


def pivots(C: Array, pattern: Array | None = None, rank: int | None = None) -> tuple[list[tuple[int, int]], float]:
    """(row, column) in the order of elimination, and the smallest pivot against the largest.

    C is one configuration's; pattern says where C is not always zero. Complete pivoting, but among pivots of nearly
    the same size the one that fills in least (Markowitz) goes first.
    """
    A = np.array(C, float)
    scale = np.linalg.norm(A, axis=1, keepdims=True)
    A /= np.where(scale > 0, scale, 1.0)
    there = np.array(pattern if pattern is not None else A != 0.0, bool)
    wanted = min(A.shape) if rank is None else rank
    rows, columns = list(range(A.shape[0])), list(range(A.shape[1]))
    order: list[tuple[int, int]] = []
    sizes: list[float] = []
    for _ in range(wanted):
        part = np.abs(A[np.ix_(rows, columns)])
        largest = part.max(initial=0.0)
        if largest < 1e-14:
            break
        filled = there[np.ix_(rows, columns)]
        cost = np.outer(filled.sum(axis=1) - 1, filled.sum(axis=0) - 1).astype(float)
        cost[part < STRONG * largest] = np.inf
        best = np.flatnonzero(cost.ravel() == cost.min())
        at = best[np.argmax(part.ravel()[best])]
        i, j = np.unravel_index(at, part.shape)
        r, c = rows[i], columns[j]
        order.append((r, c))
        sizes.append(float(part[i, j]))
        rows.remove(r)
        columns.remove(c)
        factor = A[rows, c] / A[r, c]
        A[np.ix_(rows, columns)] -= np.outer(factor, A[r, columns])
        there[np.ix_(rows, columns)] |= np.outer(there[rows, c], there[r, columns])
    return order, (min(sizes) / max(sizes) if sizes else 1.0)
