"""Integrator tools in integrate/: messages, linear systems, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.integrate import INTEGRATORS, Problem, integrator, interpolate
from bellcrank.integrate.implicit import implicit_solver, lu_factors
from bellcrank.integrate.problem import hermite_polynomial


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(InputError, match=r'no integrator "dopri".*Did you mean "dopri5".*rodas4'):
        integrator("dopri")


def test_every_integrator_has_a_source() -> None:
    for name, method in INTEGRATORS.items():
        assert name == method.name
        assert any(str(year) in method.source for year in range(1900, 2030))


def test_implicit_methods_need_the_jacobian() -> None:
    problem = Problem(lambda t, y: [-y[0]], 0, 0, 1)
    for method in (m for m in INTEGRATORS.values() if m.stiff):
        with pytest.raises(InputError, match=f"{method.name}.*jacobian.*dopri5"):
            method.step(problem, 0.0, [1.0], 0.1, [])


def test_a_rate_of_the_wrong_size() -> None:
    with pytest.raises(InputError, match=r"returned 1 numbers; expected 2.*nq=1, nv=1, nx=0"):
        integrator("rk4").step(Problem(lambda t, y: [y[1]], 1, 1, 0), 0.0, [1.0, 0.0], 0.1, [])


def test_a_jacobian_of_the_wrong_size() -> None:
    problem = Problem(lambda t, y: [-y[0]], 0, 0, 1, lambda t, y: ([[1.0, 2.0]], [0.0]))
    with pytest.raises(InputError, match=r"1 rows of \[2\].*expected 1 rows of 1"):
        integrator("rodas4").step(problem, 0.0, [1.0], 0.1, [])


def test_euler_cannot_add_velocities_to_quaternions() -> None:
    with pytest.raises(InputError, match=r"nv=3 velocities to nq=4.*moved"):
        integrator("euler").step(Problem(lambda t, y: [0.0] * 7, 4, 3, 0), 0.0, [1.0] * 7, 0.1, [])


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_elimination_against_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    jacobian, b = rng.normal(size=(n, n)), rng.normal(size=n)
    jacobian[rng.random((n, n)) < 0.3] = 0.0
    g = 0.2 / np.sqrt(n)
    expected = np.linalg.solve(np.eye(n) - g * jacobian, b)
    assert np.abs(implicit_solver(jacobian.tolist(), g).solve(b) - expected).max() < 1e-13


@pytest.mark.parametrize("g", [1e-4, 1e-2, 1.0, 1e2])
def test_stiff_joints_need_no_pivoting(g: float) -> None:
    """Elimination without pivoting agrees with numpy for stiff springs and dampers in strongly coupled joints."""
    n = 6
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, n))
    mass = x @ x.T + 0.01 * np.eye(n)
    springs, dampers = 10.0 ** rng.uniform(0, 8, size=(2, n))
    jacobian = np.block(
        [[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(mass, np.diag(k)) for k in (springs, dampers)]]
    )
    b = rng.normal(size=2 * n)
    factors = implicit_solver(jacobian.tolist(), g)
    assert all(r > 0.0 for r in factors.reciprocal)
    expected = np.linalg.solve(np.eye(2 * n) - g * jacobian, b)
    ours = np.array(factors.solve(b))
    residual = ours - g * jacobian @ ours - b
    scale = np.abs(np.eye(2 * n) - g * jacobian) @ np.abs(expected)
    assert np.abs(residual / scale).max() < 1e-10


def test_coordinates_cost_no_division() -> None:
    """The rows of q are eliminated without a division, because dq/dt = v; nv unknowns remain."""
    n = 4

    def solution(h: Any, k: Any, b: Any) -> dict[str, Any]:
        identity = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        rows = [[0.0] * n + identity[i] for i in range(n)] + [[*k[i], *[0.0] * n] for i in range(n)]
        return {"x": implicit_solver(rows, h).solve(b)}

    count = trace("solve", solution, {"h": (), "k": (n, n), "b": (2 * n,)})
    divisions = sum(node.op == "div" for node in count.nodes)
    dense = trace("dense", lambda m, b: {"x": lu_factors(m).solve(b)}, {"m": (2 * n, 2 * n), "b": (2 * n,)})
    assert divisions == n
    assert count.count().arithmetic < 0.4 * dense.count().arithmetic


def test_hermite() -> None:
    """The Hermite polynomial has the values and slopes at both ends.

    The extra term is s^2 (1 - s)^2 and changes none of them.
    """
    plain, bumped = (hermite_polynomial([1.0], [2.0], [5.0], [-1.0], bump) for bump in (None, [3.0]))
    for dense in (plain, bumped):
        assert interpolate(dense, 0.0) == [1.0]
        assert interpolate(dense, 1.0) == [5.0]
        slopes = [k * c[0] for k, c in enumerate(dense)]
        assert slopes[1] == 2.0
        assert sum(slopes) == -1.0
    assert interpolate(bumped, 0.25)[0] - interpolate(plain, 0.25)[0] == pytest.approx(3.0 * 0.25**2 * 0.75**2)
