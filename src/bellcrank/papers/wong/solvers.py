"""Two systolic solvers of A x = b for symmetric positive definite A, cell by cell (wong1991, section 4.5).

    feed_forward(A, b)       K. Jainandunsing's LU, 4 n cycles: the b row is eliminated with the rest, beside it goes
                             the identity, and the last row that comes out is x. n (n + 1)/2 + n cells.
    back_substitution(A, b)  factors and y = L^-1 b on a triangular mesh, then U x = y in a pipeline: 3 n - 2 and
                             4 n - 3 cycles, as the thesis quotes P. S. Liu and T. Y. Young.

A and b hold any scalars: floats, fractions, graph nodes. The thesis has the cells of the first (4.30), and of the
second only the cycles: how they come about here (n - 1 to load y, 2 n - 1 to solve, n - 1 to unload x) is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.errors import InputError
from bellcrank.papers.wong.systolic import Array, Cell, Place, When, Words
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class Solved:
    x: list[Scalar]
    cycles: int
    cells: int
    first: int  # the cycle after which the first element that leaves is known outside


# -- feed-forward


def turning() -> Cell:
    """On the diagonal: the pivot row comes from the north and goes east."""
    sent: Words = {}
    while True:
        got = yield sent
        sent = {"east": got["north"]} if "north" in got else {}


def rotating(row: int) -> Cell:
    """4.30: element `row` of what comes from the north is eliminated with what comes from the west."""
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
    """The processor below the last one: it keeps what comes."""
    while True:
        got = yield {}
        if "north" in got:
            into.append(got["north"])


def feed_forward(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> Solved:
    """Rows 1..n of [A^T 1] enter from the north, each a cycle after the one before, and [-b^T 0] after them."""
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


# -- factors, then back-substitution


@dataclass
class Held:
    """What a cell of the mesh has in the end, read when the factorisation is over."""

    value: Scalar
    at: int = 0  # the cycle in which it was done


def below(held: Held, column: int) -> Cell:
    """Cell (i, j) under the diagonal: a_ij - sum of l_ik a_jk; then d_j comes down, and l_ij = a_ij/d_j goes east."""
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
    """Cell (j, j): row j turns south here, its l goes on east to b_j, with the y that came down in between."""
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
    """Cell (i, i + 1): y_i = b_i - sum of l_ik y_k, and every y goes south."""
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
    """Cell i of the pipeline: y_i stays, the x_k that pass are taken off, x_i = y_i/u_ii follows them east; then all
    move west, out at the end where y came in."""
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
    """U (unscaled rows), y, cycles and cells."""
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
    """x with U x = y, and the cycles: y comes in at the end of the pipeline, U from the side."""
    n = len(y)
    place = {i: (1, n - i) for i in range(1, n + 1)}  # cell n is where things come in and go out
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
    U, y, factor, cells = factorised(A, b)
    x, solve = substituted(U, y)
    return Solved(x, factor + solve, cells + len(y), factor + 3 * len(y) - 2)


def _size(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> int:
    n = len(b)
    if n < 1 or len(A) != n or any(len(row) != n for row in A):
        raise InputError(f"a system of {len(A)} rows and {n} right-hand sides; expected a square matrix and as many.")
    return n
