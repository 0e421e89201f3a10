"""Solution of C x = r for dependent unknowns in terms of the others, with a predetermined pivot order.

The order is a list of pivots (row, column): the columns are the dependent unknowns, all others are independent. It is
chosen numerically (coordinate_partitioning.py); here it is followed, for any scalar type, and zeros cost nothing. If
loops do not share joints, their rows do not share columns, and each loop is solved by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar import Scalar

Pivots = Sequence[tuple[int, int]]
LinearForm = dict[Any, Scalar]  # by index of an unknown, or by the name of a right-hand side


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
