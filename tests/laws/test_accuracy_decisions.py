"""Decisions about accuracy: which linkages are measured and in how many states, refinements, carried ratios."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_tree_accuracy import graded

import bellcrank as bc
from bellcrank.dynamics import METHODS, crba, tree_accuracy
from bellcrank.dynamics.loops import acceleration_accuracy, constrained_dynamics, loop_layer
from bellcrank.dynamics.loops.acceleration_accuracy import SAFE_CONDITION, may_lose_digits, measure_accuracy
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.dynamics.loops.rank import LoopRank, Multipliers, solve_multipliers
from bellcrank.dynamics.singular_mass import carried_ratios
from loops import four_bar_tower
from trees import random_tree

WRONG_BY = 1e-3  # relative error of a poor solver


def poor_solver(rank: LoopRank, product: Any, right: Any) -> Multipliers:
    """Return multipliers that are too large by a thousandth."""
    exact = solve_multipliers(rank, product, right)
    return replace(exact, values=[(1.0 + WRONG_BY) * x for x in exact.values])


@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics", "loop_forces"])
def test_each_refinement_multiplies_the_error_by_that_of_the_solver(
    quantity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, rng = bc.zoo.load("four_bars"), np.random.default_rng(3)
    q, state = m.assemble()[0].tolist(), rng.normal(size=(2, m.nv)).tolist()
    cranks = tuple(k for k, name in enumerate(m.columns[1]) if name.startswith("A"))

    def result(refinements: int) -> Any:
        layer = LoopLayer(METHODS["rnea"], replace(m.loop_analysis.rank, refinements=refinements), cranks)
        return np.array(layer.function(quantity)(m.tree, q, *state), float)

    exact = result(0)
    for module in (constrained_dynamics, loop_layer):
        monkeypatch.setattr(module, "solve_multipliers", poor_solver)
    errors = [np.abs(result(k) - exact).max() / np.abs(exact).max() for k in range(4)]
    assert errors[0] > 0.1 * WRONG_BY
    for before, after in pairwise(errors):
        assert after < 2.0 * WRONG_BY * before + 1e-13


@pytest.mark.parametrize("sizes", [(1.0,), (1.0, 0.1), (1e-2, 1.0), (1e-4, 1.0)])
def test_ill_conditioned_mass_matrices_are_measured(sizes: tuple[float, ...]) -> None:
    """Without redundant equations, the condition of the mass matrix, scaled to unit diagonal, decides."""
    m = four_bar_tower(sizes, [1.0] * len(sizes))
    q = m.loop_analysis.samples
    M = np.asarray(m.mass_matrix(q[0]))
    size = np.sqrt(np.diag(M))
    expected = np.linalg.cond(M / np.outer(size, size)) > SAFE_CONDITION
    assert may_lose_digits(m.tree, m.loop_analysis.rank, 0.0, 0.0, q) == expected == (sizes[0] < 1e-3)


def test_contradictory_equations_are_measured() -> None:
    m = bc.zoo.parallel_cranks()
    rank, q = m.loop_analysis.rank, m.loop_analysis.samples
    assert rank.groups
    assert not may_lose_digits(m.tree, rank, 0.0, 1e-14, q)
    assert may_lose_digits(m.tree, rank, 0.0, 1e-9, q)


def test_large_linkages_are_measured_in_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    m, states = bc.zoo.four_bar(), []
    measured = acceleration_accuracy._errors
    monkeypatch.setattr(acceleration_accuracy, "_errors", lambda *given: states.append(given) or measured(*given))
    rank, q = m.loop_analysis.rank, m.loop_analysis.samples
    measure_accuracy(m.tree, rank, q, 0.0)
    assert len(states) == acceleration_accuracy.MEASURED_STATES
    states.clear()
    monkeypatch.setattr(acceleration_accuracy, "LARGE_PROBLEM_ELEMENTS", len(rank.rows) * m.nv - 1)
    measure_accuracy(m.tree, rank, q, 0.0)
    assert len(states) == 1


@pytest.mark.parametrize("seed", range(4))
def test_body_that_carries_nothing_has_the_carried_ratio_one(seed: int) -> None:
    """Rotors count as a part of the body's own inertia."""
    m = random_tree(seed, ["revolute", "universal", "prismatic", "helical"], [0, 0, 0], armature=True, rooted=True)
    q = m.random(seed)[0].tolist()
    ratios = carried_ratios(m.tree, q, np.diag(np.array(crba.mass_matrix(m.tree, q), float)))
    inner = {link.parent for link in m.tree.links}
    for i, link in enumerate(m.tree.links):
        for k in link.v_index:
            assert ratios[k] == pytest.approx(1.0) if i not in inner else ratios[k] > 1.0


@pytest.mark.parametrize("digits", ["extended", "double"])
def test_computers_without_extended_precision_do_without_the_comparison(
    digits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On these, a second computation in double precision would confirm any result."""
    m, types = graded(33, True, False), set()

    def forward_dynamics(tree: Any, q: Any, v: Any, tau: Any) -> Any:
        types.add(np.asarray(q[0]).dtype)
        return crba.forward_dynamics(tree, q, v, tau)

    if digits == "double":
        monkeypatch.setattr(tree_accuracy, "np", SimpleNamespace(**vars(np) | {"finfo": lambda _: np.finfo(float)}))
    assert tree_accuracy.acceleration_error(m, m.tree, forward_dynamics)[0] > tree_accuracy.MAX_RELATIVE_ERROR
    has_extended = np.finfo(np.longdouble).eps < 1e-18
    assert (np.dtype(np.longdouble) in types) == (digits == "extended" and has_extended)
