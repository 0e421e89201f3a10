"""The cost model: what it counts in a graph, how it is stored, and that `auto` uses it.

`python -m bench.costs` measures the accuracy of its predictions; the tests do not.
"""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.graphs import choose_graph, graph
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cpu import costs as model
from bellcrank.emit.cpu.costs import (
    CALIBRATION_SAMPLES,
    EVEN_TIME_RATIO,
    LOWER_BOUNDS,
    UPPER_BOUNDS,
    CostParts,
    Costs,
    costs,
    critical_path_seconds,
    parts,
    sample,
)
from bellcrank.graph import trace
from bellcrank.graph.inline import inline_small
from bellcrank.scalar import cos, exp, maximum, minimum, sin, sqrt, where
from bellcrank.sim.run.simulator import step_time


def test_parts_of_a_graph() -> None:
    def body(x, y):  # type: ignore[no-untyped-def]
        return {"z": [sin(x[0]) * cos(x[0]) + sin(x[1]), exp(y) / sqrt(x[0]), x[2].tan()]}

    p = parts(trace("f", body, {"x": (4,), "y": ()}))
    assert p == CostParts(arithmetic=2, roots=2, angles=2, calls=2, recalls=0, reads=4, writes=3)


def test_minima_and_maxima_are_no_cheap_arithmetic() -> None:
    def body(x):  # type: ignore[no-untyped-def]
        return {"y": [minimum(x[0], x[1]), maximum(x[0], 0.0) * x[1], where(x[0] < x[1], x[0], x[2])]}

    p = parts(trace("f", body, {"x": (3,)}))
    assert (p.arithmetic, p.extremes) == (3, 2)


def test_values_that_wait_are_recalled() -> None:
    def body(x):  # type: ignore[no-untyped-def]
        y = x[0] * x[1]
        for _ in range(200):
            y = y * x[1] + 1.0
        return {"y": y * x[0]}

    assert parts(trace("f", body, {"x": (2,)})).recalls == 1


def test_called_parts_count_once_per_call() -> None:
    inner = trace("inner", lambda x: {"y": [sin(x[0]) * x[1], exp(x[1]) / x[0]]}, {"x": (2,)})
    g = trace("outer", lambda x: {"y": [*inner.call(x=inner.call(x=x)["y"])["y"], x[0] * x[1]]}, {"x": (2,)})
    assert parts(inner) == CostParts(arithmetic=1, roots=1, angles=1, calls=1, recalls=0, reads=2, writes=2)
    assert parts(g) == CostParts(arithmetic=3, roots=2, angles=2, calls=2, recalls=0, reads=6, writes=7, starts=3.0)


def test_single_state_costs_more_than_one_of_a_batch() -> None:
    times = [bc.Simulator(bc.zoo.chain(n), "rk4").predicted for n in (2, 8)]
    for t in times:
        assert t.one > t.batch > 0.0
    assert times[1].one > times[0].one
    assert times[1].batch > times[0].batch
    assert "ns a step" in str(times[0])


def test_a_single_run_waits_for_its_critical_path_and_a_batch_does_not() -> None:
    """With the same operations in sequence and in parallel, only a single run is limited by the critical path."""

    def chained(s):  # type: ignore[no-untyped-def]
        y = s[0]
        for k in range(400):
            y = y * s[1 + k % 19]
        return {"s": [y]}

    def abreast(s):  # type: ignore[no-untyped-def]
        rows = list(s)
        for k in range(400):
            rows[k % 20] = rows[k % 20] * s[(k + 1) % 20]
        return {"s": rows}

    one, many = (step_time(trace("tick", f, {"s": (20,)})) for f in (chained, abreast))
    assert one.one > 3.0 * many.one
    assert one.batch < 3.0 * many.batch


@pytest.mark.parametrize("name", ["four_bar", "four_bars", "scissor", "pendulum", "puma600"])
def test_no_step_is_predicted_to_be_shorter_than_its_critical_path(name: str) -> None:
    simulator = bc.Simulator(bc.zoo.load(name), "rk4")
    graph = inline_small(simulator.program(None).tick)
    assert simulator.predicted.one >= critical_path_seconds(graph) > 0.0


@pytest.mark.parametrize("numbers", CALIBRATION_SAMPLES)
def test_samples_have_the_wanted_parts(numbers: tuple[int, ...]) -> None:
    wanted, got = CostParts(*numbers), parts(sample(CostParts(*numbers)))
    assert (got.angles, got.roots, got.calls, got.reads, got.writes, got.extremes) == (
        wanted.angles, wanted.roots, wanted.calls, wanted.reads, wanted.writes, wanted.extremes,
    )  # fmt: skip
    assert 0.9 * wanted.arithmetic <= got.arithmetic <= wanted.arithmetic + 100
    assert got.recalls >= wanted.recalls / 2


def test_calibration_is_sane_and_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    costs.cache_clear()
    first = costs()
    assert first.arithmetic > 0
    assert first.angles > first.arithmetic
    assert first.predicted(graph(bc.zoo.puma600(), "forward_dynamics", "aba")) > 0
    costs.cache_clear()
    monkeypatch.setattr(model, "_calibrate", lambda dtype, alone: pytest.fail("it was measured again"))
    assert costs() == first
    costs.cache_clear()


def test_auto_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """With any costs, `auto` takes the cheapest method, or one equally cheap."""
    m = bc.zoo.chain(10)
    graphs = {by: graph(m, "forward_dynamics", by) for by in ("crba", "aba")}
    for weights in (
        CostParts(1, 0, 0, 0, 0, 0, 0, 0),
        CostParts(0, 1, 0, 0, 0, 0, 0, 0),
        CostParts(0, 0, 0, 0, 1, 0, 0, 0),
    ):
        table = Costs(*vars(weights).values())
        monkeypatch.setattr(model, "costs", lambda dtype, table=table: table)
        by, _ = choose_graph(m, Request("forward_dynamics"))
        least = min(table.predicted(g) for g in graphs.values())
        assert table.predicted(graph(m, "forward_dynamics", by.name)) <= EVEN_TIME_RATIO * least


def test_dominated_cost_is_larger_at_every_price() -> None:
    rng = np.random.default_rng(5)
    least, most = np.array(astuple(LOWER_BOUNDS)), np.array(astuple(UPPER_BOUNDS))
    out = 0
    for _ in range(2000):
        a, b = (CostParts(*rng.integers(0, 40, len(least)).astype(float)) for _ in range(2))
        prices = rng.uniform(least, most, (50, len(least)))
        if a.exceeds(b):
            out += 1
            assert (prices @ (np.array(astuple(a)) - np.array(astuple(b))) >= -1e-9).all()
    assert out > 20
    assert not a.exceeds(a)
