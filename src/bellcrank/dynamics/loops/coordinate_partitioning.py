"""Coordinate partitioning: choice of pivots of C, and elimination in their order.

A pivot is (row, column): the columns are the dependent unknowns, all others are independent. Pivots are chosen by
numerical values, well-conditioned first and then sparse. The elimination, which solves C x = r for the dependent
unknowns, follows their order for any scalar type, and zeros cost nothing. If loops do not share joints, their rows do
not share columns, and each loop is solved by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]
MAX_ELIMINATION_FACTOR = 20.0  # a factor of elimination above this loses digits
PIVOT_SIZE_RATIO = 0.3  # a pivot may be this much smaller than the largest, if that saves work
Pivots = Sequence[tuple[int, int]]
LinearForm = dict[Any, Scalar]  # by index of an unknown, or by the name of a right-hand side


def choose_pivots(C: Array, pattern: Array | None = None, rank: LoopRank | None = None) -> list[tuple[int, int]]:
    """Return (row, column) in the order of elimination.

    Complete pivoting is used, but among pivots of nearly the same size the one with the least fill-in (Markowitz) goes
    first. Rows are scaled to unit length, or, if some of them can be left out (rank), by their usual size.

    Parameters
    ----------
    C
        Constraint Jacobian in one configuration.
    pattern
        True where C is not always zero.
    rank
        Rank of the loop equations.
    """
    A = np.array(C, float)
    some = rank is not None and bool(rank.groups)
    scale = np.array(rank.scale)[:, None] if rank and some else np.linalg.norm(A, axis=1, keepdims=True)
    A /= np.where(scale > 0, scale, 1.0)
    pattern_left = np.array(pattern if pattern is not None else A != 0.0, bool)
    wanted = min(A.shape) if rank is None else rank.rank
    rows, columns = list(range(A.shape[0])), list(range(A.shape[1]))
    order: list[tuple[int, int]] = []
    for _ in range(wanted):
        candidates = np.abs(A[np.ix_(rows, columns)])
        largest = candidates.max(initial=0.0)
        if largest < 1e-14:
            break
        filled = pattern_left[np.ix_(rows, columns)]
        cost = np.outer(filled.sum(axis=1) - 1, filled.sum(axis=0) - 1).astype(float)
        cost[candidates < PIVOT_SIZE_RATIO * largest] = np.inf
        best = np.flatnonzero(cost.ravel() == cost.min())
        best_flat = best[np.argmax(candidates.ravel()[best])]
        i, j = np.unravel_index(best_flat, candidates.shape)
        r, c = rows[i], columns[j]
        order.append((r, c))
        rows.remove(r)
        columns.remove(c)
        factor = A[rows, c] / A[r, c]
        A[np.ix_(rows, columns)] -= np.outer(factor, A[r, columns])
        pattern_left[np.ix_(rows, columns)] |= np.outer(pattern_left[rows, c], pattern_left[r, columns])
    return order


def largest_null_space_element(C: Array, dependent: Sequence[int]) -> float:
    """Return the largest element of E: the motion of a dependent coordinate for a unit of an independent one.

    Parameters
    ----------
    C
        Constraint Jacobian; it may have redundant rows.
    dependent
        Dependent columns.
    """
    free = [k for k in range(C.shape[1]) if k not in dependent]
    E, _, rank, _ = np.linalg.lstsq(C[:, list(dependent)], C[:, free], rcond=1e-13)
    return float(np.abs(E).max(initial=0.0)) if rank == len(dependent) else np.inf


def least_pivot(C: Array, order: Sequence[tuple[int, int]]) -> float:
    """Return the smallest pivot of an elimination of `C` in this `order`."""
    rows, columns = [k for k, _ in order], [k for _, k in order]
    A = np.array(C[rows][:, columns], float)
    smallest = np.inf
    for k in range(len(A)):
        smallest = min(smallest, abs(A[k, k]))
        if smallest < 1e-300:
            return 0.0
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    return float(smallest)


def is_stable(C: Array, order: Sequence[tuple[int, int]]) -> bool:
    """Return True if elimination of `C` in this `order` is stable: no row is subtracted with a large factor."""
    rows, columns = [k for k, _ in order], [k for _, k in order]
    A = np.array(C[rows][:, columns], float)
    A /= np.maximum(np.linalg.norm(C[rows], axis=1, keepdims=True), 1e-300)
    for k in range(len(A) - 1):
        if abs(A[k, k]) < 1e-12 or np.abs(A[k + 1 :, k]).max() > MAX_ELIMINATION_FACTOR * abs(A[k, k]):
            return False
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    return True


@dataclass(frozen=True)
class EliminationResult:
    """Each dependent unknown as a combination of the independent ones and of the right-hand sides."""

    lines: Mapping[int, LinearForm]
    pivots: list[Scalar]  # the divisors


def eliminate_unknowns(
    rows: Sequence[Mapping[int, Scalar]], order: Pivots, right: Sequence[Mapping[str, Scalar]]
) -> EliminationResult:
    """Solve for the dependent unknowns. A resulting line has -E for columns of C, and the names of right-hand sides.

    Parameters
    ----------
    rows
        Rows of C.
    order
        Pivots (row, column).
    right
        Right-hand sides of each row, by name.
    """
    work: dict[int, LinearForm] = {k: dict(rows[k]) | dict(right[k]) for k, _ in order}
    pivot_values: list[Scalar] = []
    inverse: dict[int, Scalar] = {}
    remaining_rows = [k for k, _ in order]
    for k, c in order:
        remaining_rows.remove(k)
        pivot_row = work[k]
        pivot_values.append(pivot_row[c])
        inverse[c] = 1.0 / pivot_row[c]
        for other in remaining_rows:
            line = work[other]
            if c in line:
                factor = line.pop(c) * inverse[c]
                for key, x in pivot_row.items():
                    if key != c:
                        line[key] = line[key] - factor * x if key in line else -(factor * x)
    lines: dict[int, LinearForm] = {}
    for k, c in reversed(order):
        total: LinearForm = {}
        for key, x in work[k].items():
            if key == c:
                continue
            if key in lines:
                for inner, y in lines[key].items():
                    total[inner] = total[inner] - x * y if inner in total else -(x * y)
            else:
                total[key] = total[key] + x if key in total else x
        lines[c] = {key: x * inverse[c] for key, x in total.items()}
    return EliminationResult(lines, pivot_values)
