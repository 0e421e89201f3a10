"""Feed-forward systolic solvers of A x = b, cell by cell (wong1991, section 4.5).

    feed_forward(A, b)           Jainandunsing's LU with linear rotations, 4 n cycles
    qr_feed_forward(A, b)        the same array with trigonometric rotations: any nonsingular A, 4 n cycles
    cholesky_feed_forward(A, b)  hyperbolic rotations: symmetric positive definite A, 3 n + 1 cycles

All eliminate the row b with the others, and the last row that leaves the array is x (4.29). They have n (n + 1)/2 + n
cells. LU needs pivots that are not small, because the array cannot exchange rows. A and b hold any scalars: floats,
fractions, graph nodes; QR and Cholesky need square roots.

The thesis describes the cells of the first solver (4.30). It states that QR needs the same array with other rotations,
and names the Cholesky variant; these arrangements are derived here:

* QR. Trigonometric rotations also scale the last row, by the product k of the cosines of the column b. Its cells
  multiply k on the way down, in the place of the element that they eliminate, and the last one divides by k.
* Cholesky. With D the diagonal and T the part of A above it, V = D^-1/2 (D + T) and W = D^-1/2 T, the matrix is
  A = V^T V - W^T W. Hyperbolic rotations of row r of V with the rows of W above it turn [V D^-1/2; W D^-1/2] into
  [R R^-T; 0 ?], where R^T R = A. All rows of V enter in the same cycle. The column b keeps linear rotations: a
  hyperbolic one exists only for elements smaller than the pivot.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.papers.wong.array_cells import (
    HYPERBOLIC,
    TRIGONOMETRIC,
    rotating_cell,
    run_cycle,
    scaled_cell,
    scaling_cell,
    turning_cell,
)
from bellcrank.papers.wong.systolic_array import (
    Cell,
    GridPosition,
    OperationCounter,
    SystolicArray,
    SystolicSolution,
    WordEvent,
    check_symmetric,
    checked_size,
    collecting_cell,
)
from bellcrank.scalar import Scalar


def feed_forward(
    A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], counter: OperationCounter | None = None
) -> SystolicSolution:
    """Solve `A` x = `b` by Jainandunsing's LU.

    Parameters
    ----------
    A
        Matrix whose leading principal minors are not zero.
    b
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    """
    n = checked_size(A, b)
    cells = {(r, i): rotating_cell(r) for r in range(1, n + 1) for i in range(r + 1, n + 2)}
    return _square_array(A, b, cells, counter)


def qr_feed_forward(
    A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], counter: OperationCounter | None = None
) -> SystolicSolution:
    """Solve `A` x = `b` with trigonometric rotations.

    Parameters
    ----------
    A
        Nonsingular matrix.
    b
        Right-hand side.
    counter
        Number of operations so far, as for `SystolicArray`.
    """
    n = checked_size(A, b)
    cells = {(r, i): rotating_cell(r, TRIGONOMETRIC) for r in range(1, n + 1) for i in range(r + 1, n + 1)}
    cells |= {(r, n + 1): scaled_cell(r, n) for r in range(1, n + 1)}
    return _square_array(A, b, cells, counter)


def _square_array(
    A: Sequence[Sequence[Scalar]],
    b: Sequence[Scalar],
    rotating: dict[GridPosition, Cell],
    counter: OperationCounter | None,
) -> SystolicSolution:
    """Feed rows 1..n of [A^T 1] from the north, each one cycle after the one before, followed by [-b^T 0]."""
    n = len(b)
    rows = [[*(A[j][i] for j in range(n)), *(int(i == j) for j in range(n))] for i in range(n)]
    rows.append([*(-x for x in b), *(0 for _ in range(n))])
    inputs: dict[WordEvent, Scalar] = {
        (1 + j + i, (1, 1 + i), "north"): word for i, row in enumerate(rows) for j, word in enumerate(row)
    }
    cells = {(r, r): turning_cell() for r in range(1, n + 1)} | rotating
    return _collected(cells, inputs, (n + 1, n + 1), n, counter)


def cholesky_feed_forward(
    A: Sequence[Sequence[Scalar]], b: Sequence[Scalar], counter: OperationCounter | None = None
) -> SystolicSolution:
    """Solve `A` x = `b` with hyperbolic rotations.

    Cell (r, n - i) eliminates element (i, r) of W with row r of V, which enters at cell (r, n - r).

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
    rows = range(1, n + 1)
    cells = {(r, n - r): scaling_cell(r) for r in rows}
    cells |= {(r, n - i): rotating_cell(r, HYPERBOLIC) for r in rows for i in range(1, r)}
    cells |= {(r, n): rotating_cell(r) for r in rows}
    inputs: dict[WordEvent, Scalar] = {}
    for r in rows:
        entering = [*(0 if j < r else A[r - 1][j - 1] for j in rows), *(int(j == r) for j in rows)]
        inputs |= {(e, (r, n - r), "north"): word for e, word in enumerate(entering, 1)}
    last_row = [*(-x for x in b), *(0 for _ in rows)]
    inputs |= {(e + 1, (1, n), "north"): word for e, word in enumerate(last_row, 1)}
    return _collected(cells, inputs, (n + 1, n), n, counter)


def _collected(
    cells: dict[GridPosition, Cell],
    inputs: dict[WordEvent, Scalar],
    host: GridPosition,
    n: int,
    counter: OperationCounter | None,
) -> SystolicSolution:
    """Run an array until 2 n words have arrived at the `host` below the last cell; the last n are x."""
    received: list[Scalar] = []
    array, first = SystolicArray(cells | {host: collecting_cell(received)}, inputs, counter=counter), 0
    while len(received) < 2 * n:
        run_cycle(array)
        first = first or (array.cycles - 1 if len(received) > n else 0)
    return SystolicSolution(received[n:], array.cycles, len(cells), first, array.busy)
