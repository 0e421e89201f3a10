"""The coefficients of the methods satisfy the order conditions, tree by tree."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from bellcrank.integrate.implicit import RODAS, RosenbrockTableau
from bellcrank.integrate.tableaus import DORMAND_PRINCE, FEHLBERG, KUTTA, Tableau

Array = np.ndarray[Any, Any]
Tree = tuple[Any, ...]  # a rooted tree is the sorted tuple of the trees above its root


@cache
def trees(order: int) -> tuple[Tree, ...]:
    """Return every rooted tree with that many vertices, once."""

    def forests(size: int, largest: Tree | None) -> list[Tree]:
        if size == 0:
            return [()]
        found = []
        for first in range(1, size + 1):
            for tree in trees(first):
                if largest is None or repr(tree) <= repr(largest):
                    found += [(tree, *rest) for rest in forests(size - first, tree)]
        return found

    return tuple(forests(order - 1, None))


def vertices(tree: Tree) -> int:
    return 1 + sum(vertices(child) for child in tree)


def density(tree: Tree) -> int:
    return vertices(tree) * math.prod(density(child) for child in tree)


def stages(tree: Tree, alpha: Array, beta: Array) -> Array:
    """Return the stage values for a tree. An only child of a Rosenbrock method also uses the Jacobian: beta."""
    through = beta if len(tree) == 1 else alpha
    value = np.ones(len(alpha))
    for child in tree:
        value = value * (through @ stages(child, alpha, beta))
    return value


def misses(order: int, b: Array, alpha: Array, beta: Array) -> float:
    """Return the largest deviation from b . stages(tree) = 1/density(tree) among trees of this order."""
    return float(max(abs(b @ stages(tree, alpha, beta) - 1 / density(tree)) for tree in trees(order)))


def square(rows: tuple[tuple[float, ...], ...]) -> Array:
    full = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        full[i, : len(row)] = row
    return full


def classical(table: RosenbrockTableau) -> tuple[Array, Array, Array]:
    """Return (b, alpha, gamma) of a table in the variables u = gamma k (Hairer and Wanner IV.7)."""
    n = len(table.a)
    gamma = np.linalg.inv(np.eye(n) / table.g - square(table.c))
    return np.array([*table.a[-1], 1.0]) @ gamma, square(table.a) @ gamma, gamma


def test_number_of_trees_equals_cayleys_count() -> None:
    assert [len(trees(n)) for n in range(1, 7)] == [1, 1, 2, 4, 9, 20]


TABLES = {"rk4": (KUTTA, 4, 0), "rkf45": (FEHLBERG, 4, 5), "dopri5": (DORMAND_PRINCE, 5, 4)}


@pytest.mark.parametrize(("table", "order", "embedded"), TABLES.values(), ids=TABLES)
def test_runge_kutta_tables(table: Tableau, order: int, embedded: int) -> None:
    a = square(table.a)
    assert np.abs(a.sum(axis=1) - table.c).max() < 1e-14
    weights = [(np.array(table.b), order)]
    if table.embedded is not None:
        weights.append((np.array(table.embedded), embedded))
    for b, p in weights:
        assert abs(b.sum() - 1.0) < 1e-14
        assert all(misses(n, b, a, a) < 1e-14 for n in range(1, p + 1))
        assert misses(p + 1, b, a, a) > 1e-5, "no method is better than it says"


def test_the_last_stage_of_dormand_and_prince_is_the_next_first() -> None:
    assert DORMAND_PRINCE.first_same_as_last
    assert not KUTTA.first_same_as_last
    assert not FEHLBERG.first_same_as_last


@pytest.mark.parametrize("table", [FEHLBERG, DORMAND_PRINCE], ids=["rkf45", "dopri5"])
def test_dense_output_of_order_4(table: Tableau) -> None:
    """b_i(s) satisfies the conditions of order 4 for every s: b(s) . stages(tree) = s^order / density."""
    rows, b = (table.a, table.b) if table.first_same_as_last else ((*table.a, table.b), (*table.b, 0.0))
    a, b, bump = square(rows), np.array(b), np.array(table.bump)
    first, last = np.eye(7)[0], np.eye(7)[6]
    for s in np.linspace(0.0, 1.0, 11):
        cubic = s**2 * (3 - 2 * s) * b + s * (1 - s) ** 2 * first - s**2 * (1 - s) * last
        at = cubic + s**2 * (1 - s) ** 2 * bump
        for n in range(1, 5):
            for tree in trees(n):
                assert abs(at @ stages(tree, a, a) - s**n / density(tree)) < 1e-13


def test_rosenbrock_table() -> None:
    b, alpha, gamma = classical(RODAS)
    beta = alpha + gamma
    assert np.abs(alpha.sum(axis=1) - RODAS.alpha).max() < 1e-13
    assert np.abs(gamma.sum(axis=1) - RODAS.gamma).max() < 1e-12
    assert np.abs(np.diag(gamma) - RODAS.g).max() < 1e-14
    assert all(misses(n, b, alpha, beta) < 1e-13 for n in range(1, 5))
    assert misses(5, b, alpha, beta) > 1e-5
    judge = np.array([*RODAS.a[-1], 0.0]) @ gamma  # the result without u_6
    assert all(misses(n, judge, alpha, beta) < 1e-13 for n in range(1, 4))
    assert misses(4, judge, alpha, beta) > 1e-5
    assert np.abs(beta[-1] - b).max() < 1e-13, "stiffly accurate"


def test_dense_output_of_rodas() -> None:
    b, alpha, gamma = classical(RODAS)
    d1, d2 = (np.array(row) @ gamma for row in RODAS.dense)
    for s in np.linspace(0.0, 1.0, 11):
        at = s * b + s * (1 - s) * (d1 + s * d2)
        for n in range(1, 4):
            for tree in trees(n):
                assert abs(at @ stages(tree, alpha, alpha + gamma) - s**n / density(tree)) < 1e-12


def growth(table: RosenbrockTableau, z: complex) -> complex:
    """Return R(z), the growth factor of one step of y' = (z/h) y, y = 1."""
    b, alpha, gamma = classical(table)
    n = len(b)
    return complex(1.0 + z * b @ np.linalg.solve(np.eye(n) - z * (alpha + gamma), np.ones(n)))


def test_rodas_is_l_stable() -> None:
    """|R| <= 1 on the imaginary axis, and thus left of it, because the only pole is at 1/g > 0; and R(inf) = 0."""
    assert max(abs(growth(RODAS, 1j * w)) for w in np.geomspace(1e-3, 1e5, 500)) <= 1.0 + 1e-12
    assert abs(growth(RODAS, -1e9)) < 1e-7
    assert abs(growth(RODAS, 0.5) - math.exp(0.5)) < 1e-3
