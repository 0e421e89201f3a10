"""Factorisation and back-substitution on systolic arrays (wong1991, section 4.5), cell by cell.

The thesis quotes P. S. Liu and T. Y. Young: 3 n - 2 cycles factorise a symmetric positive definite A and compute
y = L^-1 b on a triangular mesh, and a pipeline solves U x = y in 4 n - 3 cycles. It describes no cells. Their
derivation here (n - 1 cycles to load y, 2 n - 1 to solve, n - 1 to unload x) is not from the thesis. A and b hold any
scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.papers.wong.systolic_array import (
    Cell,
    CellValue,
    OperationCounter,
    SystolicArray,
    SystolicSolution,
    WordEvent,
    Words,
    check_symmetric,
    checked_size,
)
from bellcrank.scalar import Scalar


def factor_cell(held: CellValue, column: int) -> Cell:
    """Yield the words of cell (i, j) below the diagonal.

    It computes a_ij - sum of l_ik a_jk; then d_j comes from the north, and l_ij = a_ij/d_j leaves to the east.

    Parameters
    ----------
    held
        Value of the cell.
    column
        Column j.
    """
    k, cycle, sent = 1, 0, Words()
    while True:
        got = yield sent
        cycle += 1
        sent = {}
        if k < column and "west" in got:
            (l, a), other = got["west"], got["north"]
            held.value = held.value - l * other
            sent = {"east": (l, a), "south": other}
            k += 1
        elif k == column and "north" in got:
            d = got["north"]
            sent = {"east": (held.value / d, held.value), "south": d}
            held.final_cycle, k = cycle, k + 1


def diagonal_cell(held: CellValue, column: int) -> Cell:
    """Yield the words of cell (j, j): row j turns south, and its l continues east to b_j with the y from the north.

    Parameters
    ----------
    held
        Value of the cell.
    column
        Column j.
    """
    k, cycle, waiting, sent = 1, 0, list[Scalar](), Words()
    while True:
        got = yield sent
        cycle += 1
        sent = {}
        if "north" in got:
            waiting.append(got["north"])
        if k < column and "west" in got:
            l, a = got["west"]
            held.value = held.value - l * a
            sent = {"south": a, "east": (l, waiting.pop(0))}
            k += 1
        elif k == column:
            sent = {"south": held.value}
            held.final_cycle, k = cycle, k + 1


def right_side_cell(held: CellValue, row: int) -> Cell:
    """Yield the words of cell (i, i + 1): y_i = b_i - sum of l_ik y_k, and every y leaves to the south.

    Parameters
    ----------
    held
        Value of the cell.
    row
        Row i.
    """
    k, cycle, sent = 1, 0, Words()
    while True:
        got = yield sent
        cycle += 1
        sent = {}
        if k < row and "west" in got:
            l, y = got["west"]
            held.value = held.value - l * y
            sent = {"south": y}
            k += 1
            held.final_cycle = cycle
        elif k == row:
            sent = {"south": held.value}
            held.final_cycle, k = held.final_cycle or cycle, k + 1


def pipeline_cell(i: int, n: int, held: CellValue) -> Cell:
    """Yield the words of cell i of the pipeline.

    The cell keeps y_i and subtracts the terms of the x_k that pass; x_i = y_i/u_ii follows them east. Then all x move
    west and leave at the end where y entered.

    Parameters
    ----------
    i
        Index of the cell.
    n
        Number of cells.
    held
        Value of the cell.
    """
    cycle, passed_count, is_solved, sent = 0, 0, False, Words()
    y: Scalar = 0.0
    next_index = n
    while True:
        got = yield sent
        cycle += 1
        sent = {}
        if cycle <= n and "west" in got:
            if passed_count < i - 1:
                sent, passed_count = {"east": got["west"]}, passed_count + 1
            else:
                y = got["west"]
        elif next_index > i and "west" in got:
            y, next_index = y - got["north"] * got["west"], next_index - 1
            sent = {"east": got["west"]}
            continue
        if next_index == i and not is_solved and "north" in got:
            held.value, held.final_cycle, is_solved = y / got["north"], cycle, True
            sent = {"east": held.value}
        if cycle >= 3 * n - 2:
            if "east" in got:
                held.value, held.final_cycle = got["east"], cycle
            sent = {"west": held.value}


def factorise(
    A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], counter: OperationCounter | None = None
) -> tuple[list[list[Scalar]], list[Scalar], int, SystolicArray]:
    """Factorise `A` and transform `b` on the triangular mesh; return U (unscaled rows), y, cycles and the array.

    Parameters
    ----------
    A
        Symmetric positive definite matrix.
    b
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    """
    n = checked_size(A, b)
    check_symmetric(A)
    a = {(i, j): CellValue(A[i - 1][j - 1]) for i in range(1, n + 1) for j in range(1, i + 1)}
    y = {i: CellValue(b[i - 1]) for i in range(1, n + 1)}
    cells = {(i, j): factor_cell(h, j) if i > j else diagonal_cell(h, j) for (i, j), h in a.items()}
    cells |= {(i, i + 1): right_side_cell(h, i) for i, h in y.items()}
    array = SystolicArray(cells, {}, counter=counter)
    cell_values = [*a.values(), *y.values()]
    while not all(h.final_cycle for h in cell_values) or max(h.final_cycle for h in cell_values) >= array.cycles:
        array.cycle()
    U = [[a[max(i, j), min(i, j)].value for j in range(1, n + 1)] for i in range(1, n + 1)]
    return U, [y[i].value for i in range(1, n + 1)], max(h.final_cycle for h in cell_values), array


def substitute_back(
    U: Sequence[Sequence[Scalar]], y: Sequence[Scalar], counter: OperationCounter | None = None
) -> tuple[list[Scalar], SystolicArray]:
    """Solve `U` x = `y` in the pipeline; return x and the array.

    The vector y enters at the end of the pipeline, U from the side.

    Parameters
    ----------
    U
        Upper triangular matrix.
    y
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    """
    n = len(y)
    positions = {i: (1, n - i) for i in range(1, n + 1)}  # words enter and leave at cell n
    cell_values = {i: CellValue(0.0) for i in range(1, n + 1)}
    inputs: dict[WordEvent, Scalar] = {(k, positions[n], "west"): y[k - 1] for k in range(1, n + 1)}
    for i in range(1, n + 1):
        for k in range(i, n + 1):
            inputs[n + 2 * n - k - i, positions[i], "north"] = U[i - 1][k - 1]
    cells = {positions[i]: pipeline_cell(i, n, h) for i, h in cell_values.items()}
    array = SystolicArray(cells, inputs, counter=counter)
    x: list[Scalar] = []
    while len(x) < n:
        array.cycle()
        if array.cycles >= 3 * n - 2:
            x.append(cell_values[n].value)
    return x[::-1], array


def back_substitution(
    A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], counter: OperationCounter | None = None
) -> SystolicSolution:
    """Solve `A` x = `b` by factorisation and back-substitution.

    Parameters
    ----------
    A
        Symmetric positive definite matrix.
    b
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    """
    U, y, factor_cycles, mesh = factorise(A, b, counter)
    x, pipeline = substitute_back(U, y, counter)
    cycles, cells = factor_cycles + pipeline.cycles, len(mesh.cells) + len(pipeline.cells)
    return SystolicSolution(x, cycles, cells, factor_cycles + 3 * len(y) - 2, mesh.busy + pipeline.busy)
