"""Table of the systolic solvers of section 4.5: cycles, cells, utilisation, and the systems that they solve.

Operations are counted when a solver runs on symbols, so that multiplications by the constants 0 and 1 do not count. A
cell that does at least one operation in a cycle is busy in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph import Tape
from bellcrank.papers.wong.array_cells import HYPERBOLIC, LINEAR, TRIGONOMETRIC, Rotation
from bellcrank.papers.wong.back_substitution import back_substitution
from bellcrank.papers.wong.faddeev_array import faddeev
from bellcrank.papers.wong.feed_forward_arrays import cholesky_feed_forward, feed_forward, qr_feed_forward
from bellcrank.papers.wong.systolic_array import SystolicSolution
from bellcrank.text_table import Table

SIZES = (2, 4, 8, 16)
USE_SIZE = 8
SMALL_PIVOT = 1e-9  # element (1, 1) of a general matrix whose other elements are about 1
BACKWARD_ERROR = 1e-12  # |A x - b| / (|A| |x| + |b|) of a solution that is correct to rounding, with a margin


@dataclass(frozen=True)
class Solver:
    """Systolic solver with the numbers that the thesis prints.

    Parameters
    ----------
    name
        Name in the tables.
    solve
        Function of A, b and a counter of operations.
    cycles
        Printed number of cycles; empty if there is none.
    rotation
        Rotation of its cells; None if they do not rotate.
    """

    name: str
    solve: Callable[..., SystolicSolution]
    cycles: str = ""
    rotation: Rotation | None = LINEAR


SOLVERS = {
    "lu": Solver("LU (Jainandunsing)", feed_forward, "4 n"),
    "qr": Solver("QR", qr_feed_forward, "", TRIGONOMETRIC),
    "cholesky": Solver("Cholesky", cholesky_feed_forward, "", HYPERBOLIC),
    "faddeev": Solver("Faddeev, with a bus", faddeev, "3 n"),
    "faddeev_neighbours": Solver("Faddeev, neighbours only", partial(faddeev, bus=False)),
    "back_substitution": Solver("factorisation (Liu, Young)", back_substitution, "7 n - 5", None),
}


@cache
def symbolic_solution(key: str, n: int) -> SystolicSolution:
    """Return the solution of a symbolic system of `n` equations by the solver `key`, with the busy cycles counted."""
    tape = Tape()
    a, b = tape.inputs("A", (n, n)), tape.inputs("b", (n,))
    A = [[a[max(i, j), min(i, j)] for j in range(n)] for i in range(n)]
    return SOLVERS[key].solve(A, list(b), counter=lambda: len(tape.nodes))


def operations(function: Callable[..., Any], count: int) -> dict[str, int]:
    """Count the operations of a function of `count` symbols: multiplications M, divisions D, additions A, roots R."""
    tape = Tape()
    function(*tape.inputs("x", (count,)))
    ops = [node.op for node in tape.nodes]
    kinds = {"M": ("mul",), "D": ("div",), "A": ("add", "sub"), "R": ("sqrt",)}
    return {kind: sum(ops.count(op) for op in names) for kind, names in kinds.items()}


def rotation_text(rotation: Rotation | None) -> str:
    """Return the operations of one `rotation`, such as "1 M, 1 A"; a cell without rotations also does 1 M and 1 A."""
    rotation = rotation or LINEAR
    counts = operations(lambda x, y, c, s: rotation.rotated(c if rotation is LINEAR else (c, s), x, y), 4)
    return ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)


def backward_error(solver: Solver, A: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    """Return the backward error of a `solver` for `A` x = `b`, or None if it refuses the matrix."""
    try:
        x = np.array(solver.solve(A.tolist(), b.tolist()).x)
    except InputError:
        return None
    size = np.abs(A).max() * np.abs(x).max() + np.abs(b).max()
    return float(np.abs(A @ x - b).max() / size)


def _verdict(solver: Solver, systems: Sequence[tuple[Any, Any]]) -> str:
    errors = [backward_error(solver, A, b) for A, b in systems]
    if any(error is None for error in errors):
        return "refused"
    return "yes" if all(error is not None and error < BACKWARD_ERROR for error in errors) else "NO"


def random_system(n: int, kind: str) -> tuple[Any, Any]:
    """Return A and b of a random system.

    Parameters
    ----------
    n
        Number of equations.
    kind
        "definite" for a symmetric positive definite A, "small pivot" for a general one whose element (1, 1) is small.
    """
    rng = np.random.default_rng(n)
    B, b = rng.normal(size=(n, n)), rng.normal(size=n)
    if kind == "definite":
        return B @ B.T + n * np.eye(n), b
    B[0, 0] = SMALL_PIVOT
    return B, b


def tables() -> list[Table]:
    """Return the tables of the experiment wong_solvers."""
    return [cycle_table(), use_table()]


def cycle_table() -> Table:
    """Tabulate the cycles of all solvers, printed and simulated."""
    rows = [
        (solver.name, solver.cycles, *(str(symbolic_solution(key, n).cycles) for n in SIZES))
        for key, solver in SOLVERS.items()
    ]
    head = ("cycles", "print", *(f"n = {n}" for n in SIZES))
    return Table("Cycles until A x = b is solved", head, rows, range(2, 2 + len(SIZES)))


def use_table() -> Table:
    """Tabulate cells, utilisation and the systems that each solver can solve."""
    rows = []
    for key, solver in SOLVERS.items():
        example = symbolic_solution(key, USE_SIZE)
        verdicts = [_verdict(solver, [random_system(n, kind) for n in SIZES]) for kind in ("definite", "small pivot")]
        shares = (str(example.cells), f"{100 * example.utilisation:.0f} %")
        rows.append((solver.name, *shares, rotation_text(solver.rotation), *verdicts))
    head = ("", "cells", "busy", "rotation", "definite", "small pivot")
    caption = (
        "busy: share of the cycles of all cells in which they compute.\n"
        "rotation: multiplications M and additions A of a cell in one cycle.\n"
        "definite: A x = b holds to rounding for random A, symmetric and positive definite, of the four sizes.\n"
        f"small pivot: the same for general random A whose element (1, 1) is {SMALL_PIVOT:g}."
    )
    return Table(f"Cells, their use for n = {USE_SIZE}, and the systems that are solved", head, rows, (1, 2), caption)
