"""Faddeev's algorithm on a systolic array, cell by cell (wong1991, section 4.5).

Elimination turns [A b; -1 0] into [U y; 0 x]. The thesis prints 3 n cycles and "almost twice the number of cpus", here
n (n + 1), and no cells; this arrangement is derived here. Row k of [-1 0] first meets row k of U, so that row r of the
array has r cells for it. On a bus they receive the pivot row together, and x is complete after 3 n cycles. With words
that move from neighbour to neighbour only, x_1 is complete after 3 n cycles, and x_n after 4 n - 1.

Pivots must not be small, because the array cannot exchange rows. A and b hold any scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.papers.wong.array_cells import rotating_cell, run_cycle, turning_cell
from bellcrank.papers.wong.systolic_array import (
    Cell,
    CellSide,
    GridPosition,
    OperationCounter,
    SystolicArray,
    SystolicSolution,
    WordEvent,
    checked_size,
)
from bellcrank.scalar import Scalar


def faddeev(
    A: Sequence[Sequence[Scalar]],
    b: Sequence[Scalar],
    counter: OperationCounter | None = None,
    bus: bool = True,
) -> SystolicSolution:
    """Solve `A` x = `b` by Faddeev's algorithm: columns 1..n of [A; -1] enter, then [b; 0].

    Parameters
    ----------
    A
        Matrix whose leading principal minors are not zero.
    b
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    bus
        If True, the pivot row reaches all cells of -1 in a row at once; else it moves from neighbour to neighbour.
    """
    n = checked_size(A, b)
    array = SystolicArray(_cells(n, bus), _inputs(A, b, bus), _wires(n) if bus else {}, counter)
    x: dict[int, tuple[int, Scalar]] = {}  # cycle and value of the words that leave below the cells of -1
    passed = dict.fromkeys(range(1, n + 1), 0)
    while len(x) < n:
        run_cycle(array)
        for k in passed:
            word = array.outputs.get((array.cycles, (n, n + k), "south"))
            passed[k] += word is not None
            if passed[k] > n and k not in x:
                x[k] = array.cycles, word
    return SystolicSolution([x[k][1] for k in passed], array.cycles, len(array.cells), x[1][0], array.busy)


def _cells(n: int, bus: bool) -> dict[GridPosition, Cell]:
    rows = range(1, n + 1)
    cells = {(r, i): rotating_cell(r, is_last=bus and i == n) for r in rows for i in range(r + 1, n + 1)}
    cells |= {(r, n + k): rotating_cell(r, is_last=bus or k == r) for r in rows for k in range(1, r + 1)}
    cells |= {(r, r): turning_cell(["east"] * (r < n or not bus) + ["bus"] * bus) for r in rows}
    return cells


def _wires(n: int) -> dict[CellSide, list[CellSide]]:
    """Return the buses: from a diagonal cell to all cells of -1 in its row."""
    return {((r, r), "bus"): [((r, n + k), "west") for k in range(1, r + 1)] for r in range(1, n + 1)}


def _inputs(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], bus: bool) -> dict[WordEvent, Scalar]:
    """Feed columns of [A b] from the north, and row k of [-1 0] to cell (k, n + k) when its pivot row arrives."""
    n, inputs = len(b), dict[WordEvent, Scalar]()
    for e in range(1, n + 2):
        column = [row[e - 1] for row in A] if e <= n else b
        inputs |= {(e + i, (1, 1 + i), "north"): word for i, word in enumerate(column)}
        for k in range(1, n + 1):
            first_cycle = e + (2 * k - 1 if bus else n + 2 * k - 2)
            inputs[first_cycle, (k, n + k), "north"] = -int(e == k)
    return inputs
