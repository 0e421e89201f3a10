"""Two systolic solvers of A x = b for symmetric positive definite A, cell by cell (wong1991, section 4.5).

    feed_forward(A, b)       K. Jainandunsing's LU, 4 n cycles: the row b is eliminated with the others, the identity
                             is appended, and the last row that leaves the array is x. n (n + 1)/2 + n cells.
    back_substitution(A, b)  factors and y = L^-1 b on a triangular mesh, then U x = y in a pipeline: 3 n - 2 and
                             4 n - 3 cycles, as the thesis quotes P. S. Liu and T. Y. Young.

A and b hold any scalars: floats, fractions, graph nodes. The thesis describes the cells of the first solver (4.30), and
only the cycle counts of the second. Their derivation here (n - 1 cycles to load y, 2 n - 1 to solve, n - 1 to unload x)
is not from the thesis.

In every cycle each cell receives the words that its neighbours sent in the cycle before, computes, and sends words to
them. A cell has no access to the memory of other cells. A cell is a generator that receives the words of one cycle by
the side they came from, and yields those it sends:

    def doubling() -> Cell:
        sent: Words = {}
        while True:
            got = yield sent
            sent = {"east": 2 * got["west"]} if "west" in got else {}

Words are scalars of any kind, or small tuples of them. Words that leave the grid are stored in `outputs`, by cycle,
cell and side.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.scalar import Scalar

GridPosition = tuple[int, int]  # row, column
Words = dict[str, Any]  # by side
Cell = Generator[Words, Words, None]
WordEvent = tuple[int, GridPosition, str]  # cycle (the first is 1), cell and side

OPPOSITE_SIDES = {"north": "south", "south": "north", "east": "west", "west": "east"}
SIDE_OFFSETS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


class SystolicArray:
    """Grid of cells with their inputs from outside.

    Parameters
    ----------
    cells
        Generator of each cell.
    fed
        Words that enter from outside the grid.
    """

    def __init__(self, cells: Mapping[GridPosition, Cell], fed: Mapping[WordEvent, Any]) -> None:
        """Start all `cells`; `fed` are the words that enter from outside the grid."""
        self.cells = dict(cells)
        self.cycles = 0
        self.outputs: dict[WordEvent, Any] = {}
        self._pending: dict[GridPosition, Words] = {}
        self._inputs: dict[int, list[tuple[GridPosition, str, Any]]] = {}
        for (cycle, place, side), word in fed.items():
            self._inputs.setdefault(cycle, []).append((place, side, word))
        for cell in self.cells.values():
            next(cell)

    def cycle(self) -> None:
        """Run one cycle."""
        self.cycles += 1
        received, self._pending = self._pending, {}
        for place, side, word in self._inputs.get(self.cycles, ()):
            received.setdefault(place, {})[side] = word
        for place, cell in self.cells.items():
            for side, word in cell.send(received.get(place, {})).items():
                self._deliver(place, side, word)

    def run(self, cycles: int) -> None:
        """Run a number of `cycles`."""
        for _ in range(cycles):
            self.cycle()

    def _deliver(self, place: GridPosition, side: str, word: Any) -> None:
        down, right = SIDE_OFFSETS[side]
        target = (place[0] + down, place[1] + right)
        if target in self.cells:
            self._pending.setdefault(target, {})[OPPOSITE_SIDES[side]] = word
        else:
            self.outputs[self.cycles, place, side] = word


@dataclass(frozen=True)
class SystolicSolution:
    """Solution with its cycles and cells."""

    x: list[Scalar]
    cycles: int
    cells: int
    first_cycle: int  # cycle after which the first element is available outside the array


# -- feed-forward


def turning_cell() -> Cell:
    """Yield the words of a diagonal cell: the pivot row comes from the north and leaves to the east."""
    sent: Words = {}
    while True:
        got = yield sent
        sent = {"east": got["north"]} if "north" in got else {}


def rotating_cell(row: int) -> Cell:
    """Yield the words of a cell that eliminates element `row` of the north vector with the west vector (4.30)."""
    alpha: Scalar = 0
    i, sent = 0, Words()
    while True:
        got = yield sent
        if not got:
            sent = {}
            continue
        i, x, y = i + 1, got["west"], got["north"]
        if i < row:
            sent = {"east": 0, "south": 0}
        elif i == row:
            alpha = -(y / x)
            sent = {"east": x, "south": 0}
        else:
            sent = {"east": x, "south": y + alpha * x}


def collecting_cell(into: list[Scalar]) -> Cell:
    """Yield the words of the cell below the last one, which stores its input in the list `into`."""
    while True:
        got = yield {}
        if "north" in got:
            into.append(got["north"])


def feed_forward(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> SystolicSolution:
    """Solve `A` x = `b` by feed-forward elimination.

    Rows 1..n of [A^T 1] enter from the north, each one cycle after the one before, followed by [-b^T 0].
    """
    n = _size(A, b)
    received: list[Scalar] = []
    cells: dict[GridPosition, Cell] = {(r, r): turning_cell() for r in range(1, n + 1)}
    cells |= {(r, i): rotating_cell(r) for r in range(1, n + 1) for i in range(r + 1, n + 2)}
    host = {(n + 1, n + 1): collecting_cell(received)}
    rows = [[*(A[j][i] for j in range(n)), *(int(i == j) for j in range(n))] for i in range(n)]
    rows.append([*(-x for x in b), *(0 for _ in range(n))])
    inputs: dict[WordEvent, Scalar] = {
        (1 + j + i, (1, 1 + i), "north"): word for i, row in enumerate(rows) for j, word in enumerate(row)
    }
    array, first = SystolicArray(cells | host, inputs), 0
    while len(received) < 2 * n:
        array.cycle()
        first = first or (array.cycles - 1 if len(received) > n else 0)
    return SystolicSolution(received[n:], array.cycles, len(cells), first)


# -- factorisation and back-substitution


@dataclass
class CellValue:
    """Value stored in a cell, read when the factorisation is complete."""

    value: Scalar
    final_cycle: int = 0  # cycle in which the value was final


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


def factorise(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[list[list[Scalar]], list[Scalar], int, int]:
    """Factorise `A` and transform `b` on the triangular mesh; return U (unscaled rows), y, cycles and cells."""
    n = _size(A, b)
    a = {(i, j): CellValue(A[i - 1][j - 1]) for i in range(1, n + 1) for j in range(1, i + 1)}
    y = {i: CellValue(b[i - 1]) for i in range(1, n + 1)}
    cells = {(i, j): factor_cell(h, j) if i > j else diagonal_cell(h, j) for (i, j), h in a.items()}
    cells |= {(i, i + 1): right_side_cell(h, i) for i, h in y.items()}
    array = SystolicArray(cells, {})
    cell_values = [*a.values(), *y.values()]
    while not all(h.final_cycle for h in cell_values) or max(h.final_cycle for h in cell_values) >= array.cycles:
        array.cycle()
    U = [[a[max(i, j), min(i, j)].value for j in range(1, n + 1)] for i in range(1, n + 1)]
    return U, [y[i].value for i in range(1, n + 1)], max(h.final_cycle for h in cell_values), len(cells)


def substitute_back(U: Sequence[Sequence[Scalar]], y: Sequence[Scalar]) -> tuple[list[Scalar], int]:
    """Solve `U` x = `y` in the pipeline; return x and the cycles.

    The vector y enters at the end of the pipeline, U from the side.
    """
    n = len(y)
    positions = {i: (1, n - i) for i in range(1, n + 1)}  # words enter and leave at cell n
    cell_values = {i: CellValue(0.0) for i in range(1, n + 1)}
    inputs: dict[WordEvent, Scalar] = {(k, positions[n], "west"): y[k - 1] for k in range(1, n + 1)}
    for i in range(1, n + 1):
        for k in range(i, n + 1):
            inputs[n + 2 * n - k - i, positions[i], "north"] = U[i - 1][k - 1]
    array = SystolicArray({positions[i]: pipeline_cell(i, n, h) for i, h in cell_values.items()}, inputs)
    x: list[Scalar] = []
    while len(x) < n:
        array.cycle()
        if array.cycles >= 3 * n - 2:
            x.append(cell_values[n].value)
    return x[::-1], array.cycles


def back_substitution(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> SystolicSolution:
    """Solve `A` x = `b` by factorisation and back-substitution."""
    U, y, factor, cells = factorise(A, b)
    x, solve = substitute_back(U, y)
    return SystolicSolution(x, factor + solve, cells + len(y), factor + 3 * len(y) - 2)


def _size(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> int:
    n = len(b)
    if n < 1 or len(A) != n or any(len(row) != n for row in A):
        raise InputError(
            f"a system of {len(A)} rows and {n} right-hand sides; expected a square matrix with as many rows."
        )
    return n
