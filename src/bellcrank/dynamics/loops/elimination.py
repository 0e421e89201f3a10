"""Solution of C x = r for dependent unknowns in terms of the others, with a predetermined pivot order.

The order is a list of pivots (row, column): the columns are the dependent unknowns, all others are independent. It is
chosen numerically (partition.py); here it is followed, for any scalar type, and zeros cost nothing. If loops do not
share joints, their rows do not share columns, and each loop is solved by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar import Scalar

Pivots = Sequence[tuple[int, int]]
Line = dict[Any, Scalar]  # by index of an unknown, or by the name of a right-hand side


@dataclass(frozen=True)
class Solved:
    """Each dependent unknown as a combination of the independent ones and of the right-hand sides."""

    lines: Mapping[int, Line]
    pivots: list[Scalar]  # the divisors


def solved(rows: Sequence[Mapping[int, Scalar]], order: Pivots, right: Sequence[Mapping[str, Scalar]]) -> Solved:
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
    work: dict[int, Line] = {k: dict(rows[k]) | dict(right[k]) for k, _ in order}
    used: list[Scalar] = []
    inverse: dict[int, Scalar] = {}
    left = [k for k, _ in order]
    for k, c in order:
        left.remove(k)
        mine = work[k]
        used.append(mine[c])
        inverse[c] = 1.0 / mine[c]
        for other in left:
            line = work[other]
            if c in line:
                factor = line.pop(c) * inverse[c]
                for key, x in mine.items():
                    if key != c:
                        line[key] = line[key] - factor * x if key in line else -(factor * x)
    lines: dict[int, Line] = {}
    for k, c in reversed(order):
        total: Line = {}
        for key, x in work[k].items():
            if key == c:
                continue
            if key in lines:
                for inner, y in lines[key].items():
                    total[inner] = total[inner] - x * y if inner in total else -(x * y)
            else:
                total[key] = total[key] + x if key in total else x
        lines[c] = {key: x * inverse[c] for key, x in total.items()}
    return Solved(lines, used)
