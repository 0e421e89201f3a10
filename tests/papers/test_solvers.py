"""The systolic solvers of wong1991, section 4.5: correct results in the printed number of cycles."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.papers.operation_counts import evaluate_formula, published
from bellcrank.papers.wong.back_substitution import back_substitution, factorise, substitute_back
from bellcrank.papers.wong.faddeev_array import faddeev
from bellcrank.papers.wong.feed_forward_arrays import cholesky_feed_forward, feed_forward, qr_feed_forward
from bellcrank.papers.wong.solver_comparison import SOLVERS, backward_error, random_system, symbolic_solution
from bellcrank.papers.wong.systolic_array import Cell, SystolicArray, Words

SIZES = range(1, 15)
EXACT = ("lu", "back_substitution", "faddeev", "faddeev_neighbours")  # without square roots
ROUNDING = 2.0**-52


def system(n: int, seed: int = 0) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Positive definite, in fractions: results are exactly right or wrong."""
    rng = np.random.default_rng([n, seed])
    B = [[Fraction(int(x)) for x in row] for row in rng.integers(-4, 5, (n, n))]
    A = [[sum((B[i][k] * B[j][k] for k in range(n)), Fraction(i == j)) for j in range(n)] for i in range(n)]
    return A, [Fraction(int(x)) for x in rng.integers(-9, 10, n)]


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("n", SIZES)
def test_exact_solutions(solver: str, n: int) -> None:
    for seed in range(2):
        A, b = system(n, seed)
        x = SOLVERS[solver].solve(A, b).x
        assert [sum(a * y for a, y in zip(row, x, strict=True)) for row in A] == b


@pytest.mark.parametrize("solver", ["lu", "faddeev", "faddeev_neighbours"])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_exact_solutions_of_general_systems(solver: str, n: int) -> None:
    """A matrix that is not symmetric: rows and columns are not exchanged anywhere."""
    rng = np.random.default_rng(n)
    A = [[Fraction(int(x)) for x in row] for row in rng.integers(1, 10, (n, n)) + 9 * np.eye(n, dtype=int)]
    b = [Fraction(int(x)) for x in rng.integers(-9, 10, n)]
    x = SOLVERS[solver].solve(A, b).x
    assert [sum(a * y for a, y in zip(row, x, strict=True)) for row in A] == b


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from(sorted(SOLVERS)))
def test_solutions_in_floats(n: int, seed: int, solver: str) -> None:
    """The backward error of a stable solver is a small multiple of n roundings."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n))
    error = backward_error(SOLVERS[solver], B @ B.T + np.eye(n), rng.normal(size=n))
    assert error is not None
    assert error < 20 * n * ROUNDING


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([1.0, 1e-150, 1e150]))
def test_qr_solves_general_systems_to_rounding(n: int, seed: int, scale: float) -> None:
    """Any size of the numbers, and zero elements, which need no exchange of rows."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A[rng.random((n, n)) < 0.3] = 0.0
    if abs(np.linalg.det(A)) < 1e-6:
        A += 3 * np.eye(n)
    A, b = scale * A, scale * rng.normal(size=n)
    x = np.array(qr_feed_forward(A.tolist(), b.tolist()).x)
    size = np.abs(A).max() * np.abs(x).max() + np.abs(b).max()
    assert np.abs(A @ x - b).max() < 40 * n * ROUNDING * size


def test_small_pivot_spoils_lu_and_not_qr() -> None:
    A, b = random_system(6, "small pivot")
    errors = {key: backward_error(SOLVERS[key], A, b) for key in ("lu", "faddeev", "qr")}
    assert errors["qr"] is not None
    assert errors["qr"] < 1e-14
    assert all(errors[key] is not None and errors[key] > 1e-12 for key in ("lu", "faddeev"))  # type: ignore[operator]


def test_zero_pivot_and_singular_matrix_raise() -> None:
    swap = [[0.0, 1.0], [1.0, 0.0]]
    assert qr_feed_forward(swap, [2.0, 3.0]).x == [3.0, 2.0]
    for solve in (feed_forward, faddeev):
        with pytest.raises(InputError, match="qr_feed_forward solves it"):
            solve(swap, [2.0, 3.0])
    with pytest.raises(InputError, match="singular"):
        qr_feed_forward([[1.0, 0.0], [3.0, 0.0]], [1.0, 1.0])
    with pytest.raises(InputError, match="positive definite"):
        cholesky_feed_forward([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0])


@pytest.mark.parametrize("solver", [cholesky_feed_forward, back_substitution])
def test_solver_of_one_triangle_refuses_an_unsymmetric_matrix(solver: Any) -> None:
    with pytest.raises(InputError, match=r"\(2, 1\) and \(1, 2\)"):
        solver([[2.0, 1.0], [0.5, 2.0]], [1.0, 1.0])


@pytest.mark.parametrize("n", SIZES)
def test_feed_forward_takes_4n_cycles(n: int) -> None:
    """x_1 is computed in cycle 3 n and leaves with the next: "x_1 being first after 3 n cycles"."""
    s = feed_forward(*system(n))
    assert (s.cycles, s.first_cycle, s.cells) == (4 * n, 3 * n, n * (n + 1) // 2 + n)


@pytest.mark.parametrize("n", SIZES)
def test_back_substitution_takes_7n_minus_5_cycles(n: int) -> None:
    A, b = system(n)
    U, y, factor_cycles, array = factorise(A, b)
    assert (factor_cycles, substitute_back(U, y)[1].cycles) == (3 * n - 2, 4 * n - 3)
    assert len(array.cells) == n * (n + 1) // 2 + n
    assert back_substitution(A, b).cycles == evaluate_formula(
        published()["parallel"]["wong"]["liu_young_solver_cycles"], n
    )


@pytest.mark.parametrize("n", SIZES)
def test_faddeev_takes_3n_cycles_on_a_bus(n: int) -> None:
    """ "Complexity 3 n cycles", "almost twice the number of cpus": their ratio is 2 (n + 1)/(n + 3)."""
    s = symbolic_solution("faddeev", n)
    assert s.cycles == evaluate_formula(published()["parallel"]["wong"]["faddeev_solver_cycles"], n)
    assert (s.first_cycle, s.cells) == (3 * n, n * (n + 1))
    neighbours = symbolic_solution("faddeev_neighbours", n)
    assert (neighbours.first_cycle, neighbours.cycles) == (3 * n, 4 * n - 1)


@pytest.mark.parametrize("n", SIZES)
def test_qr_and_cholesky_cycles(n: int) -> None:
    """QR has the array of LU; in the Cholesky array all rows of V enter at once, which saves n - 1 cycles."""
    qr, cholesky = symbolic_solution("qr", n), symbolic_solution("cholesky", n)
    assert (qr.cycles, qr.first_cycle, qr.cells) == (4 * n, 3 * n, n * (n + 1) // 2 + n)
    assert (cholesky.cycles, cholesky.first_cycle, cholesky.cells) == (3 * n + 1, 2 * n + 1, qr.cells)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_utilisation_of_lu_and_faddeev(n: int) -> None:
    """A rotating cell of LU works in n cycles, one of Faddeev's row r in n - r + 2; others multiply 0 and 1 only."""
    lu, augmented = symbolic_solution("lu", n), symbolic_solution("faddeev", n)
    assert lu.busy == n * (n * (n - 1) // 2 + n)
    assert lu.utilisation == pytest.approx((n + 1) / (4 * (n + 3)))
    assert augmented.busy == sum(n * (n - r + 2) for r in range(1, n + 1))
    assert augmented.utilisation == pytest.approx((n + 3) / (6 * (n + 1)))


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
            solver.solve([[1.0, 2.0]], [1.0])
