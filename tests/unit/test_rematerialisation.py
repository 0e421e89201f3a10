"""Rematerialisation: recomputed values give the same numbers and shorten live ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.llvm import rematerialisation
from bellcrank.graph import Graph, Node, trace
from bellcrank.scalar import columnwise, sin


def long_way(n: int) -> Graph:
    """Return x + y and x y, which is expensive, needed at the beginning and at the end of a long chain."""

    def body(x: Any, y: Any) -> dict[str, Any]:
        cheap, dear = x[0] + y, sin(x[1] * y)
        total = cheap * dear
        for k in range(n):
            total = total * x[k % 3] + float(k)
        return {"z": [total + cheap * dear, cheap]} if n % 2 else {"z": [total + cheap * dear]}

    return trace("way", body, {"x": (3,), "y": ()})


def counted(graph: Graph, op: str) -> int:
    return sum(n.op == op for n in graph.nodes)


@pytest.mark.parametrize("n", [60, 61])
def test_cheap_values_are_recomputed(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rematerialisation, "SPILL_DISTANCE_NODES", 20)
    graph = long_way(n)
    again = rematerialisation.rematerialise(graph, graph.nodes)
    # A product of values that are live anyway is recomputed with its operands; an output stays live all the same.
    assert counted(again, "sin") == 1
    assert len(again.nodes) - len(graph.nodes) == (1 if n % 2 else 2)
    x, y = np.array([0.3, 0.5, 0.7]), np.array(0.2)
    assert (again.evaluate(x=x, y=y)["z"] == graph.evaluate(x=x, y=y)["z"]).all()


def test_near_or_costly_values_are_not_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = long_way(60)
    assert len(rematerialisation.rematerialise(graph, graph.nodes).nodes) == len(graph.nodes)
    monkeypatch.setattr(rematerialisation, "SPILL_DISTANCE_NODES", 20)
    monkeypatch.setattr(rematerialisation, "MAX_PRICE_OPERATIONS", 0)
    assert len(rematerialisation.rematerialise(graph, graph.nodes).nodes) == len(graph.nodes)


def test_cheap_values_have_short_live_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a robot's derivatives rematerialisation keeps the values and shortens the sum of all live ranges."""
    monkeypatch.setattr(rematerialisation, "SPILL_DISTANCE_NODES", 300)
    monkeypatch.setattr(rematerialisation, "MAX_PRICE_OPERATIONS", 3)
    graph = bc.kernel(bc.zoo.load("tree:10"), "forward_dynamics_derivatives", method="derivatives").graph
    again = rematerialisation.rematerialise(graph, graph.nodes)
    assert len(again.nodes) > len(graph.nodes)
    assert longest(again) < 0.9 * longest(graph)


def longest(graph: Graph) -> int:
    """Return the sum of the live ranges between reads."""
    last: dict[int, int] = {}
    total = 0
    for t, n in enumerate(graph.nodes):
        for a in n.operands:
            if a.op != "input":
                total += t - last[a.serial]
                last[a.serial] = t
        last[n.serial] = t
    return total


@pytest.mark.parametrize("columns", [4, 5, 8])
@pytest.mark.parametrize("stages", [1, 2])
def test_loop_results_reuse_input_buffers(columns: int, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of loops reuse the buffers of their inputs where possible.

    The cases have several tiles of sums, in one stage and in two.
    """
    monkeypatch.setattr(kernel_module, "MIN_SAVED_OPERATIONS", 0)
    monkeypatch.setattr(rematerialisation, "SPILL_DISTANCE_NODES", 10)
    n = 23

    def column(shared: Any, c: Any) -> list[Any]:
        y = c if stages == 1 else [shared[k] * c[0] + shared[k + 1] * c[k] for k in range(n)]
        return [-(shared[k] * y[k] + shared[n - 1 - k] * y[n - 1 - k] + shared[0] * y[0]) for k in range(n)]

    def body(A: Any, B: Any) -> dict[str, Any]:
        given = [[A[0] + b * b for b in B[:, k]] for k in range(columns)]
        found = columnwise(column, [a + 1.0 for a in A], given)
        return {"C": [list(row) for row in zip(*found, strict=True)]}

    graph = trace("twice", body, {"A": (n + 1,), "B": (n, columns)})
    f = bc.compile(graph)
    assert "@block_columns" in f.source
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(19, n + 1)), rng.normal(size=(19, n, columns))
    np.testing.assert_allclose(f(A, B), graph.evaluate(A=A, B=B)["C"], rtol=1e-13, atol=1e-13)


def test_subtraction_from_a_result_needs_no_second_sum() -> None:
    """Subtracting from a result needs no second sum: -s + x is x - s, and s is known where -s is."""

    def column(shared: Any, c: Any) -> list[Any]:
        return [-(shared[0] * c[0] + shared[1] * c[1]), shared[0] * c[1]]

    def body(A: Any, B: Any) -> dict[str, Any]:
        found = columnwise(column, list(A), [list(B[:, k]) for k in range(4)])
        return {"C": [[found[k][0] + A[0] if k % 2 else found[k][0] for k in range(4)], [x[1] for x in found]]}

    from bellcrank.graph.columns import outline_columns

    graph = trace("less", body, {"A": (2,), "B": (2, 4)})
    short = outline_columns(graph)
    assert not [n for n in short.nodes if isinstance(n, Node) and n.op == "mul"]
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=2), rng.normal(size=(2, 4))
    np.testing.assert_allclose(bc.compile(graph)(A, B), graph.evaluate(A=A, B=B)["C"], rtol=1e-15)
    assert short.calls
