"""Graphs with calls and the same graphs after inlining give the same results."""

from __future__ import annotations

import numpy as np

import bellcrank as bc
from bellcrank.graph import inline, trace
from bellcrank.scalar import cos, sin, where


def nested():
    """Return calls three levels deep, with a number among the arguments and one among the results."""
    inner = trace("inner", lambda x, k: {"y": [sin(x[0]) * k, x[1] / k], "one": 1.0}, {"x": (2,), "k": ()})

    def middle(x):
        once = inner.call(x=x, k=2.0)
        twice = inner.call(x=list(once["y"]), k=cos(x[0]))
        return {"z": [*twice["y"], once["one"][()] * x[1]]}

    between = trace("middle", middle, {"x": (2,)})
    return trace("outer", lambda x: {"z": between.call(x=[x[1], x[0]])["z"] * x[0], "x": x}, {"x": (2,)})


def test_same_values_and_no_calls() -> None:
    g = nested()
    flat = inline.inline(g)
    assert g.calls
    assert not flat.calls
    x = np.random.default_rng(0).uniform(0.5, 1.5, (7, 2))
    ours, theirs = flat.evaluate(x=x), g.evaluate(x=x)
    assert set(ours) == {"z", "x"}
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)


def test_work_that_two_calls_share_is_done_once() -> None:
    inner = trace("inner", lambda x: {"y": [sin(x[0]) + x[1]]}, {"x": (2,)})
    g = trace("g", lambda x: {"y": [*inner.call(x=[x[0], x[1]])["y"], *inner.call(x=[x[0], x[2]])["y"]]}, {"x": (3,)})
    assert g.count()["trig"] == 2
    assert inline.inline(g).count()["trig"] == 1


def test_a_step_of_a_run_small_and_large() -> None:
    sim = bc.Simulator(bc.zoo.chain(3), "rk4")
    tick = sim.program().tick
    assert not inline.inline_small(tick).calls
    rng = np.random.default_rng(0)
    s = rng.uniform(0.1, 1.0, tick.inputs["s"])
    np.testing.assert_allclose(inline.inline_small(tick).evaluate(s=s)["s"], tick.evaluate(s=s)["s"], rtol=1e-12)
    assert inline.inline_small(tick, tick.count().arithmetic - 1) is tick


def test_numbers_that_a_caller_gives_are_folded() -> None:
    """Inlining folds numbers that a caller passes: a sine of a number and a comparison of numbers vanish."""

    def body(x, k):
        return {"y": [sin(k) * x[0], where(k < 1.0, x[1], 2.0), sin(k) + x[0]]}

    inner = trace("inner", body, {"x": (2,), "k": ()})
    g = trace("g", lambda x: {"y": [*inner.call(x=x, k=0.5)["y"], *inner.call(x=x, k=1.5)["y"]]}, {"x": (2,)})
    flat = inline.inline(g)
    assert {node.op for node in flat.nodes} == {"input", "mul", "add"}
    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(flat.evaluate(x=x)["y"], g.evaluate(x=x)["y"], rtol=1e-15)
    np.testing.assert_allclose(bc.compile(g)(x), g.evaluate(x=x)["y"], rtol=1e-15)
