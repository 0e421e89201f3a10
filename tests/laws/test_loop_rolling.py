"""Graphs as rolled loops over elements: equal numbers, and code whose size does not grow with the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank import simulate, zoo
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.graph import Graph, loop_levels, trace
from bellcrank.graph.graph import structure
from bellcrank.graph.loop_levels import GraphLevels
from bellcrank.graph.loop_rolling import RolledGraph, roll
from bellcrank.graph.loops.statements import Call
from bellcrank.scalar import cos, fabs, maximum, sin, where
from bellcrank.sim.run import lane_blocks
from loop_statements import evaluated


def same(graph: Graph, seed: int = 1) -> RolledGraph:
    rng = np.random.default_rng(seed)
    given = {k: rng.normal(size=shape) for k, shape in graph.inputs.items()}
    made = roll(graph)
    want, got = graph.evaluate(**given), evaluated(graph, made.program, once=True, **given)
    for k, x in want.items():
        assert (got[k] == x).all()
    for length in (2, 8, 64):  # known before they are created
        assert GraphLevels(graph).rolled_fraction(length) >= made.rolled_fraction(length)
    return made


N = 40


def rate(x: Any, h: Any) -> dict[str, Any]:
    return {"dx": [a * b - h for a, b in zip(x, x[::-1], strict=True)]}


def stepped(x: Any, h: Any) -> dict[str, Any]:
    """Like an integrator step: a call, sums over all elements, a choice for all, a reversed loop, and a scalar part."""
    f = trace("rate", rate, {"x": (N,), "h": ()})
    k = f.call(x=list(x), h=h)["dx"]
    y = [a + h * b for a, b in zip(x, k, strict=True)]
    total, largest = 0.0, 0.0
    for a, b in zip(y, reversed(k), strict=True):
        total, largest = total + fabs(a), maximum(largest, fabs(b))
    sound = total < 4.0 * N
    kept = [where(sound, a * (1.0 + 0.1 * i), b) for i, (a, b) in enumerate(zip(y, x, strict=True))]
    kept[3] = kept[3] + largest
    return {"y": [*kept, total, 7.0, *[1.5] * 9], "z": [a * kept[5] for a in kept[::3]]}


def test_a_step_is_loops_and_gives_the_same_numbers() -> None:
    made = same(trace("step", stepped, {"x": (N,), "h": ()}))
    assert made.rolled_fraction(8) > 0.9
    assert sum(isinstance(s, Call) for s in made.program.body) == 1
    assert len(made.program.body) < 25


@pytest.mark.parametrize("seed", range(6))
def test_any_graph_gives_the_same_numbers(seed: int) -> None:
    """Random graphs: elementwise, across elements, permuted, sums, choices."""
    rng = np.random.default_rng(seed)

    def function(x: Any, y: Any) -> dict[str, Any]:
        rows = [list(x), list(y)]
        for _ in range(8):
            a, b = (rows[int(k)] for k in rng.integers(len(rows), size=2))
            shift, kind = int(rng.integers(4)), int(rng.integers(7))
            b = b[shift:] + b[:shift] if kind != 1 else [b[i] for i in rng.permutation(len(b))]
            if kind == 2:
                total = 0.0
                for p, q in zip(a, b, strict=True):
                    total = total + p * q
                rows.append([total * p for p in a])
            elif kind == 3:
                rows.append([where(p < q, p, q - b[0]) for p, q in zip(a, b, strict=True)])
            elif kind == 4:
                rows.append([sin(p) * cos(q) for p, q in zip(a, b, strict=True)])
            else:
                rows.append([p * q + float(c) for p, q, c in zip(a, b, rng.normal(size=len(a)), strict=True)])
        return {"z": [x for row in rows[2:] for x in row]}

    same(trace("random", function, {"x": (30,), "y": (30,)}), seed)


@pytest.mark.parametrize("integrator", ["euler", "rk4", "dopri5"])
def test_runs_are_those_of_straight_line_steps(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = zoo.chain(12)
    found = []
    for fewest in (10**9, 50):
        monkeypatch.setattr(loop_levels, "MIN_GRAPH_NODES", fewest)
        monkeypatch.setattr(loop_levels, "MIN_LOOP_ELEMENTS", 8)
        monkeypatch.setattr(loop_levels, "MIN_ROLLED_FRACTION", 0.5)
        monkeypatch.setattr(lane_blocks, "_libraries", {})
        adaptive = {} if integrator == "dopri5" else {"step": 1e-3}
        run = simulate(chain, seconds=0.05, q0=np.linspace(0.1, 0.5, 12), integrator=integrator, **adaptive)
        found.append(np.array([run[name] for name in run.columns]))
    assert np.abs(found[0] - found[1]).max() < 1e-9 * np.abs(found[0]).max()
    assert np.abs(found[0][:, -1] - found[0][:, 0]).max() > 0.1  # it moved


def test_code_of_a_step_does_not_grow_with_the_mechanism() -> None:
    def sized(n: int) -> int:
        def step(x: Any, k: Any, h: Any) -> dict[str, Any]:
            return {"y": [a + h * b for a, b in zip(x, k, strict=True)]}

        graph = trace("step", step, {"x": (n,), "k": (n,), "h": ()})
        return len(routines({"step": graph}, 1, 4, "float64").text)

    assert sized(4000) < 1.05 * sized(1000)


def test_recursions_with_other_constants_differ() -> None:
    from tests.laws.test_rolled_classes import made

    a, b = (made(zoo.chain(9, twist="general", seed=seed), "aba", "forward_dynamics") for seed in (1, 2))
    again = made(zoo.chain(9, twist="general", seed=1), "aba", "forward_dynamics")
    assert structure(a) == structure(again)
    assert structure(a) != structure(b)
    assert "written" not in a.__dict__
