"""The systolic solvers of wong1991, section 4.5: correct results in the printed number of cycles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.papers.operation_counts import evaluate_formula, published
from bellcrank.papers.wong.comparison import _solve_random
from bellcrank.papers.wong.systolic_solvers import (
    Cell,
    SystolicArray,
    SystolicSolution,
    Words,
    back_substitution,
    factorise,
    feed_forward,
    substitute_back,
)

SIZES = range(1, 15)
SOLVERS = {"feed_forward": feed_forward, "back_substitution": back_substitution}


def system(n: int, seed: int = 0) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Positive definite, in fractions: results are exactly right or wrong."""
    rng = np.random.default_rng([n, seed])
    B = [[Fraction(int(x)) for x in row] for row in rng.integers(-4, 5, (n, n))]
    A = [[sum((B[i][k] * B[j][k] for k in range(n)), Fraction(i == j)) for j in range(n)] for i in range(n)]
    return A, [Fraction(int(x)) for x in rng.integers(-9, 10, n)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n", SIZES)
def test_exact_solutions(solver: str, n: int) -> None:
    for seed in range(3):
        A, b = system(n, seed)
        x = SOLVERS[solver](A, b).x
        assert [sum(a * y for a, y in zip(row, x, strict=True)) for row in A] == b


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_compared_systems_are_positive_definite_and_solved(n: int) -> None:
    systems = []

    def solve(A: list[list[float]], b: list[float]) -> SystolicSolution:
        systems.append(A)
        return back_substitution(A, b)

    assert _solve_random(solve, n)[1] < 1e-12
    assert np.linalg.eigvalsh(systems[0]).min() > 0.0


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from(sorted(SOLVERS)))
def test_solutions_in_floats(n: int, seed: int, solver: str) -> None:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    A, b = B @ B.T + np.eye(n), rng.normal(size=n)
    np.testing.assert_allclose(np.array(SOLVERS[solver](A.tolist(), b.tolist()).x), np.linalg.solve(A, b), 1e-8, 1e-10)


@pytest.mark.parametrize("n", SIZES)
def test_feed_forward_takes_4n_cycles(n: int) -> None:
    """x_1 is computed in cycle 3 n and leaves with the next: "x_1 being first after 3 n cycles"."""
    s = feed_forward(*system(n))
    assert (s.cycles, s.first_cycle, s.cells) == (4 * n, 3 * n, n * (n + 1) // 2 + n)


@pytest.mark.parametrize("n", SIZES)
def test_back_substitution_takes_7n_minus_5_cycles(n: int) -> None:
    A, b = system(n)
    U, y, factor, cells = factorise(A, b)
    assert (factor, substitute_back(U, y)[1]) == (3 * n - 2, 4 * n - 3)
    assert cells == n * (n + 1) // 2 + n
    assert back_substitution(A, b).cycles == evaluate_formula(
        published()["parallel"]["wong"]["liu_young_solver_cycles"], n
    )


@pytest.mark.parametrize("n", [2, 5, 8])
def test_every_rotating_cell_divides_once(n: int) -> None:
    """ "One division for each cpu": n (n - 1)/2 below the diagonal, and n for b."""
    g = trace("solver", lambda A, b: {"x": feed_forward(A.tolist(), b.tolist()).x}, {"A": (n, n), "b": (n,)})
    assert g.count()["div"] == n * (n - 1) // 2 + n
    A, b = np.array(system(n)[0], dtype=float), np.array(system(n)[1], dtype=float)
    np.testing.assert_allclose(g.evaluate(A=A, b=b)["x"], np.linalg.solve(A, b), 1e-9)


def test_a_word_reaches_the_next_cell_in_the_next_cycle_and_no_further() -> None:
    seen: dict[int, list[int]] = {k: [] for k in range(4)}

    def passing(k: int) -> Cell:
        cycle, sent = 0, Words()
        while True:
            got = yield sent
            cycle += 1
            if got:
                seen[k].append(cycle)
            sent = {"east": got["west"]} if got else {}

    array = SystolicArray({(0, k): passing(k) for k in range(4)}, {(2, (0, 0), "west"): "word"})
    array.run(8)
    assert seen == {0: [2], 1: [3], 2: [4], 3: [5]}
    assert array.outputs == {(5, (0, 3), "east"): "word"}


def test_non_square_matrix_raises() -> None:
    for solver in SOLVERS.values():
        with pytest.raises(InputError, match="square"):
            solver([[1.0, 2.0]], [1.0])
