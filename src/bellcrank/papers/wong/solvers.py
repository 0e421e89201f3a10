"""Two systolic solvers of A x = b for symmetric positive definite A, cell by cell (wong1991, section 4.5).

    feed_forward(A, b)       K. Jainandunsing's LU, 4 n cycles: the row b is eliminated with the others, the identity
                             is appended, and the last row that leaves the array is x. n (n + 1)/2 + n cells.
    back_substitution(A, b)  factors and y = L^-1 b on a triangular mesh, then U x = y in a pipeline: 3 n - 2 and
                             4 n - 3 cycles, as the thesis quotes P. S. Liu and T. Y. Young.

A and b hold any scalars: floats, fractions, graph nodes. The thesis describes the cells of the first solver (4.30), and
only the cycle counts of the second. Their derivation here (n - 1 cycles to load y, 2 n - 1 to solve, n - 1 to unload x)
is not from the thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.errors import InputError
from bellcrank.papers.wong.systolic import Array, Cell, Place, When, Words
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class Solved:
    """Solution with its cycles and cells."""

    x: list[Scalar]
    cycles: int
    cells: int
    first: int  # cycle after which the first element is available outside the array


# -- feed-forward


def turning() -> Cell:
    """Yield the words of a diagonal cell: the pivot row comes from the north and leaves to the east."""
    sent: Words = {}
    while True:
        got = yield sent
        sent = {"east": got["north"]} if "north" in got else {}


def rotating(row: int) -> Cell:
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


def collecting(into: list[Scalar]) -> Cell:
    """Yield the words of the cell below the last one, which stores its input in the list `into`."""
    while True:
        got = yield {}
        if "north" in got:
            into.append(got["north"])


def feed_forward(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> Solved:
    """Solve `A` x = `b` by feed-forward elimination.

    Rows 1..n of [A^T 1] enter from the north, each one cycle after the one before, followed by [-b^T 0].
    """
    n = _size(A, b)
    came: list[Scalar] = []
    cells: dict[Place, Cell] = {(r, r): turning() for r in range(1, n + 1)}
    cells |= {(r, i): rotating(r) for r in range(1, n + 1) for i in range(r + 1, n + 2)}
    host = {(n + 1, n + 1): collecting(came)}
    rows = [[*(A[j][i] for j in range(n)), *(int(i == j) for j in range(n))] for i in range(n)]
    rows.append([*(-x for x in b), *(0 for _ in range(n))])
    fed: dict[When, Scalar] = {
        (1 + j + i, (1, 1 + i), "north"): word for i, row in enumerate(rows) for j, word in enumerate(row)
    }
    array, first = Array(cells | host, fed), 0
    while len(came) < 2 * n:
        array.cycle()
        first = first or (array.cycles - 1 if len(came) > n else 0)
    return Solved(came[n:], array.cycles, len(cells), first)


# -- factorisation and back-substitution


@dataclass
class Held:
    """Value stored in a cell, read when the factorisation is complete."""

    value: Scalar
    at: int = 0  # cycle in which the value was final


def below(held: Held, column: int) -> Cell:
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
            held.at, k = cycle, k + 1


def diagonal(held: Held, column: int) -> Cell:
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
            held.at, k = cycle, k + 1


def beside(held: Held, row: int) -> Cell:
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
            held.at = cycle
        elif k == row:
            sent = {"south": held.value}
            held.at, k = held.at or cycle, k + 1


def solving(i: int, n: int, held: Held) -> Cell:
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
    cycle, passed, done, sent = 0, 0, False, Words()
    y: Scalar = 0.0
    seen = n
    while True:
        got = yield sent
        cycle += 1
        sent = {}
        if cycle <= n and "west" in got:
            if passed < i - 1:
                sent, passed = {"east": got["west"]}, passed + 1
            else:
                y = got["west"]
        elif seen > i and "west" in got:
            y, seen = y - got["north"] * got["west"], seen - 1
            sent = {"east": got["west"]}
            continue
        if seen == i and not done and "north" in got:
            held.value, held.at, done = y / got["north"], cycle, True
            sent = {"east": held.value}
        if cycle >= 3 * n - 2:
            if "east" in got:
                held.value, held.at = got["east"], cycle
            sent = {"west": held.value}


def factorised(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> tuple[list[list[Scalar]], list[Scalar], int, int]:
    """Factorise `A` and transform `b` on the triangular mesh; return U (unscaled rows), y, cycles and cells."""
    n = _size(A, b)
    a = {(i, j): Held(A[i - 1][j - 1]) for i in range(1, n + 1) for j in range(1, i + 1)}
    y = {i: Held(b[i - 1]) for i in range(1, n + 1)}
    cells = {(i, j): below(h, j) if i > j else diagonal(h, j) for (i, j), h in a.items()}
    cells |= {(i, i + 1): beside(h, i) for i, h in y.items()}
    array = Array(cells, {})
    everything = [*a.values(), *y.values()]
    while not all(h.at for h in everything) or max(h.at for h in everything) >= array.cycles:
        array.cycle()
    U = [[a[max(i, j), min(i, j)].value for j in range(1, n + 1)] for i in range(1, n + 1)]
    return U, [y[i].value for i in range(1, n + 1)], max(h.at for h in everything), len(cells)


def substituted(U: Sequence[Sequence[Scalar]], y: Sequence[Scalar]) -> tuple[list[Scalar], int]:
    """Solve `U` x = `y` in the pipeline; return x and the cycles.

    The vector y enters at the end of the pipeline, U from the side.
    """
    n = len(y)
    place = {i: (1, n - i) for i in range(1, n + 1)}  # words enter and leave at cell n
    held = {i: Held(0.0) for i in range(1, n + 1)}
    fed: dict[When, Scalar] = {(k, place[n], "west"): y[k - 1] for k in range(1, n + 1)}
    for i in range(1, n + 1):
        for k in range(i, n + 1):
            fed[n + 2 * n - k - i, place[i], "north"] = U[i - 1][k - 1]
    array = Array({place[i]: solving(i, n, h) for i, h in held.items()}, fed)
    x: list[Scalar] = []
    while len(x) < n:
        array.cycle()
        if array.cycles >= 3 * n - 2:
            x.append(held[n].value)
    return x[::-1], array.cycles


def back_substitution(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> Solved:
    """Solve `A` x = `b` by factorisation and back-substitution."""
    U, y, factor, cells = factorised(A, b)
    x, solve = substituted(U, y)
    return Solved(x, factor + solve, cells + len(y), factor + 3 * len(y) - 2)


def _size(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> int:
    n = len(b)
    if n < 1 or len(A) != n or any(len(row) != n for row in A):
        raise InputError(
            f"a system of {len(A)} rows and {n} right-hand sides; expected a square matrix with as many rows."
        )
    return n
