"""Large mechanisms with closed loops call their tree kernels, with equal results and work linear in the bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank import kernel, simulate, zoo
from bellcrank.build import policy, rolled_tree_terms
from bellcrank.build.graphs import choose_graph, graph
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops import constraint_values
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.model.mechanism import Mechanism

MECHANISMS = {"ring": lambda: zoo.ring(9), "windows": lambda: zoo.n_four_bar(4), "bricard": zoo.bricard}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MAX_LOOP_OPERATIONS", 1)
    monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    monkeypatch.setattr(policy, "MAX_WORK_RATIO", 1e9)


def called(mechanism: Mechanism) -> Graph:
    return choose_graph(mechanism, Request("forward_dynamics", "aba"), calls=True)[1]


def a_state(mechanism: Mechanism) -> dict[str, Any]:
    """A pushed state on the loops, in motion, shortly after rest."""
    run = simulate(mechanism, seconds=0.3, control=lambda t, q, v, x, u: [0.5 + 0.1 * k for k in range(mechanism.nv)])
    return {"q": run.q[-1], "v": run.v[-1], "tau": np.linspace(-1.0, 1.0, mechanism.nv)}


@pytest.mark.parametrize("name", MECHANISMS)
def test_accelerations_are_those_of_straight_line_code(name: str, request: pytest.FixtureRequest) -> None:
    mechanism = MECHANISMS[name]()
    at = a_state(mechanism)
    straight = graph(mechanism, "forward_dynamics", "aba")
    want = straight.evaluate(**at)["forward_dynamics"]
    request.getfixturevalue("small")
    found = called(mechanism)
    assert [g.name.rpartition(".")[2] for g in found.calls] == ["forward_dynamics", "response"]
    assert np.abs(at["v"]).max() > 0.01
    close = 1e-9 * np.abs(want).max()
    assert np.abs(found.evaluate(**at)["forward_dynamics"] - want).max() < close
    made = kernel(mechanism, "forward_dynamics", "aba")
    assert made.graph.calls
    assert np.abs(made(**at) - want).max() < close
    batch = {k: np.stack([x] * 7) for k, x in at.items()}
    assert np.abs(made(**batch) - want).max() < close


def test_a_response_is_the_inverse_of_the_mass_matrix() -> None:
    chain = zoo.chain(6, joints=["revolute", "prismatic", "spherical"])
    response = rolled_tree_terms.TreeTerms(chain, METHODS["aba"]).response_graph
    q, _, tau = chain.random(3)
    M = kernel(chain, "mass_matrix")(q)
    assert np.abs(M @ response.evaluate(q=q, tau=tau)["response"] - tau).max() < 1e-9 * np.abs(tau).max()


@pytest.mark.usefixtures("small")
def test_work_grows_with_the_bodies_and_the_code_of_the_tree_does_not() -> None:
    work = [called(zoo.ring(n)).count().arithmetic for n in (10, 20, 40, 80)]
    steps = np.diff(work) / [10, 20, 40]
    assert np.ptp(steps) < 0.02 * steps[-1]
    cells = [sum(len(g.cells) for g in called(zoo.ring(n)).calls) for n in (20, 80)]  # type: ignore[attr-defined]
    assert cells[1] <= cells[0]


def test_graph_without_calls_is_inlined(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not graph(zoo.ring(9), "forward_dynamics", "aba").calls
    monkeypatch.setattr("bellcrank.build.graphs.MAX_WRITTEN_OPERATIONS", 100)
    with pytest.raises(InputError, match="needs straight-line code"):
        graph(zoo.ring(9), "forward_dynamics", "aba")


@pytest.mark.usefixtures("small")
def test_a_falling_ring_keeps_its_energy() -> None:
    ring = zoo.ring(12)
    q, _ = ring.assemble({"A1": 0.3})
    run = simulate(ring, seconds=0.2, form="projected", method="aba", integrator="rk4", q0=q)
    assert np.ptp(run["energy"]) < 1e-6 * np.ptp(run["kinetic_energy"])


def test_work_of_many_loops_grows_with_their_number() -> None:
    work = [graph(zoo.n_four_bar(n), "forward_dynamics", "aba").count().arithmetic for n in (4, 8, 12, 16)]
    assert np.ptp(np.diff(work)) <= 1  # a scale that happens to be 1 is folded away


def test_block_results_equal_dense_ones() -> None:
    """Block results equal dense ones: pseudo-inverse, redundant combinations and damped solutions."""
    rng = np.random.default_rng(4)
    C = np.zeros((3, 11, 12))
    for rows, columns in (([0, 4, 7], [1, 2]), ([1, 2, 3, 9], [0, 5, 6, 11, 3]), ([5, 10], [8, 9])):
        C[:, np.array(rows)[:, None], columns] = rng.normal(size=(3, len(rows), len(columns)))
    assert len(constraint_values.independent_blocks(C)) == 5  # two rows are zero
    rank = 8
    assert (np.linalg.matrix_rank(C) == rank).all()
    assert np.abs(constraint_values.pseudo_inverse(C, 1e-9) - np.linalg.pinv(C, rcond=1e-9)).max() < 1e-10
    U = np.linalg.svd(C)[0][:, :, rank:]
    assert np.abs(constraint_values.redundancy(C, rank) - U @ np.swapaxes(U, 1, 2)).max() < 1e-10
    added, b, x = np.array([0.1, 0.2, 0.3]), rng.normal(size=(3, 11)), np.zeros((3, 12))
    # damping relative to the mean of the diagonal, block by block
    for rows, columns in constraint_values.independent_blocks(C):
        part = C[:, rows[:, None], columns]
        N = part @ np.swapaxes(part, 1, 2)
        size = added * np.trace(N, axis1=1, axis2=2) / len(rows)
        N = N + size[:, None, None] * np.eye(len(rows))
        if len(columns):
            x[:, columns] = (np.swapaxes(part, 1, 2) @ np.linalg.solve(N, b[:, rows, None]))[..., 0]
    assert np.abs(constraint_values.damped_step(C, added, b) - x).max() < 1e-10
