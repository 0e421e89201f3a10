"""Graphs that call graphs have the same numbers, counts and paths as the inlined graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError, TraceError
from bellcrank.graph import Graph, Node, trace
from bellcrank.parameters import parameter
from bellcrank.scalar import atan2, cos, exp, maximum, minimum, sin, sqrt, where


def inner(a: Any, b: Any) -> dict[str, Any]:
    return {"m": [[a[0] * b, sin(a[1])], [2.5, a[0] + a[1]]], "s": sqrt(b * b + 1.0)}


INNER = {"a": (2,), "b": ()}


def outer(f: Any) -> Any:
    """Call f twice, with a constant among the arguments and results that are used in several ways."""

    def function(x: Any) -> dict[str, Any]:
        first = f(a=[x[0], x[1] * x[2]], b=x[2])
        second = f(a=[first["m"][0][1], 0.5], b=first["s"])
        return {"y": [first["m"][0][0], second["m"][1][1], second["m"][1][0], second["s"] - x[0]]}

    return function


@pytest.fixture(scope="module")
def called() -> Graph:
    return trace("called", outer(trace("inner", inner, INNER).call), {"x": (3,)})


@pytest.fixture(scope="module")
def written() -> Graph:
    return trace("written", outer(inner), {"x": (3,)})


@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
def test_values_are_those_of_the_graph_written_out(called: Graph, written: Graph, batch: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=(*batch, 3))
    found = called.evaluate(x=x)["y"]
    assert found.shape == (*batch, 4)
    np.testing.assert_array_equal(found, written.evaluate(x=x)["y"])


def test_a_call_is_one_node_and_its_results_are_found_again(called: Graph) -> None:
    assert [n.op for n in called.nodes].count("call") == 2
    g = trace("inner", inner, INNER)

    def twice(x: Any) -> dict[str, Any]:
        return {"y": g.call(a=x, b=1.0)["s"] * g.call(a=x, b=1.0)["m"][0, 0]}

    assert [n.op for n in trace("twice", twice, {"x": (2,)}).nodes].count("call") == 1


def test_count_and_work_are_those_of_every_call(called: Graph) -> None:
    g = trace("inner", inner, INNER)
    outside = 2  # x1 x2, and a difference
    assert called.count().arithmetic == 2 * g.count().arithmetic + outside
    assert called.count()["trig"] == 2
    assert called.count()["sqrt"] == 2
    assert called.work() == 2 * g.work() + outside


def test_span_goes_through_the_calls(called: Graph) -> None:
    """The span of mul, inner, inner, sub in sequence counts the longest path of each called graph."""
    span = trace("inner", inner, INNER).span()
    assert called.span() == 1 + 2 * span + 1
    path = called.critical_path()
    assert [n.op for n in path if n.op != "input"][:1] == ["mul"]
    assert [n.op for n in path].count("call") == 2


def test_constants_come_out_as_numbers() -> None:
    """A constant result of a called graph costs nothing, and folds further."""
    g = trace("inner", inner, INNER)
    seen = {}

    def function(x: Any) -> dict[str, Any]:
        seen.update(g.call(a=x, b=2.0))
        return {"y": seen["m"][1, 0] * 2.0 + 0.0 * seen["s"]}

    made = trace("folded", function, {"x": (2,)})
    assert seen["m"][1, 0] == 2.5
    assert isinstance(seen["m"][0, 0], Node)
    assert made.nodes == []
    assert made.evaluate(x=[1.0, 2.0])["y"] == 5.0


def test_called_with_numbers_it_is_evaluated() -> None:
    found = trace("inner", inner, INNER).call(a=[1.0, 2.0], b=3.0)
    np.testing.assert_allclose(found["m"], [[3.0, np.sin(2.0)], [2.5, 3.0]], rtol=1e-15)
    assert found["s"] == pytest.approx(np.sqrt(10.0), rel=1e-15)


def test_nested_three_deep() -> None:
    depth = [trace("f0", lambda x: {"y": [sin(x[0]) + x[1], x[0] * x[1]]}, {"x": (2,)})]
    for k in (1, 2, 3):

        def function(x: Any, below: Graph = depth[-1]) -> dict[str, Any]:
            return {"y": below.call(x=below.call(x=x)["y"])["y"]}

        depth.append(trace(f"f{k}", function, {"x": (2,)}))
    y = x = np.array([0.3, -0.7])
    for _ in range(8):
        y = np.array([np.sin(y[0]) + y[1], y[0] * y[1]])
    np.testing.assert_allclose(depth[3].evaluate(x=x)["y"], y, rtol=1e-15)
    assert depth[3].count().arithmetic == 8 * depth[0].count().arithmetic
    assert depth[3].span() == 8 * depth[0].span()
    assert [g.name for g in depth[3].calls] == ["f0", "f1", "f2"]  # each once, after the graphs that it calls


def test_empty_inputs_and_whole_arrays() -> None:
    g = trace("g", lambda A, n: {"B": [[A[j][i] for j in range(2)] for i in range(3)]}, {"A": (2, 3), "n": (0,)})
    h = trace("h", lambda A: {"B": g.call(A=A, n=[])["B"]}, {"A": (2, 3)})
    A = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(h.evaluate(A=A)["B"], A.swapaxes(-1, -2))


def test_a_call_may_be_given_free_numbers_of_a_model() -> None:
    g = trace("inner", inner, INNER)
    k = parameter("k", 2.0)
    h = trace("h", lambda x: {"y": g.call(a=x, b=k * 3.0)["m"][0, 0]}, {"x": (2,)}, ["k"])
    assert h.evaluate(x=[5.0, 0.0], p=[4.0])["y"] == 60.0


def test_drawings_show_calls(called: Graph) -> None:
    for text in (str(called), called.dot(), called.json(), called.svg()):
        assert "inner" in text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": [1.0, 2.0, 3.0], "b": 1.0}, ['input "a"', "(3,)", "(2,)"]),
        ({"a": [1.0, 2.0]}, ['input "b" is missing', "a, b"]),
        ({"a": [1.0, 2.0], "b": 1.0, "c": 2.0}, ['"c"', "Known: a, b"]),
        ({"a": [1.0, 2.0], "b": [1.0]}, ['input "b"', "(1,)", "()"]),
    ],
)
def test_arguments_that_do_not_fit(given: dict[str, Any], words: list[str]) -> None:
    g = trace("inner", inner, INNER)

    def function(x: Any) -> dict[str, Any]:
        return {"y": g.call(**{**given, "a": [x, *given["a"][1:]]})["s"]}

    with pytest.raises(InputError) as caught:
        trace("h", function, {"x": ()})
    assert all(word in str(caught.value) for word in ["inner", *words])


def test_scalars_of_two_traces_do_not_mix() -> None:
    g, kept = trace("inner", inner, INNER), []
    trace("first", lambda x: {"y": kept.append(x) or x}, {"x": ()})
    with pytest.raises(TraceError, match="two traces"):
        trace("second", lambda x: {"y": g.call(a=[x, kept[0]], b=1.0)["s"]}, {"x": ()})


MEETINGS = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: b - a,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "comparison": lambda a, b: where(a < b, 1.0, 0.0),
    "choice": lambda a, b: where(a < 1.0, b, 2.0),
    "condition": lambda a, b: where(b < 1.0, a, 2.0),
    "minimum": minimum,
    "maximum": maximum,
    "angle": atan2,
    "output": lambda a, b: sin(b),
    "array": lambda a, b: (np.array([a, 1.0], dtype=object) * np.array([b, 2.0], dtype=object))[0],
}


@pytest.mark.parametrize("meeting", MEETINGS.values(), ids=MEETINGS)
@pytest.mark.parametrize("before", [0, 3])
def test_symbol_of_an_earlier_trace_raises(meeting: Any, before: int) -> None:
    """A symbol of an earlier trace raises an error.

    before: number of nodes of the second trace, so that the old serial number exists there too, or does not.
    """
    kept: list[Any] = []
    trace("first", lambda x: {"y": kept.append(x[1]) or x[0]}, {"x": (2,)})

    def second(x: Any) -> dict[str, Any]:
        a = x
        for _ in range(before):
            a = sin(a)
        return {"y": meeting(a, kept[0])}

    with pytest.raises(TraceError, match=r"two traces.*states="):
        trace("second", second, {"x": ()})


def test_control_that_stores_a_symbol_raises() -> None:
    class Filter:
        last: Any = 0.0

        def __call__(self, t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
            before, self.last = self.last, q[0]
            return [before - q[0], 0.0, 0.0]

    with pytest.raises(
        TraceError, match=r"(?s)control \(Filter\) returns a different result each time.*self\.last = q\[0\]"
    ):
        bc.simulate(bc.system(bc.zoo.planar3r(), control=Filter()), seconds=0.01, step=0.001)


def test_no_derivative_goes_through_a_call(called: Graph) -> None:
    with pytest.raises(TraceError, match="differentiate the called graph"):
        called.jacobian("y", "x")


# -- derivatives


def motion(t: Any, y: Any, p: Any) -> dict[str, Any]:
    spin = where(y[0] > 0.2, y[1] * p[0], exp(y[0]) * p[1])
    return {"dy": [sin(y[1]) * t, cos(y[0]) * spin, 3.0], "out": maximum(y[0], p[1]) + atan2(y[1], y[2])}


@pytest.mark.parametrize("directions", [1, 3])
def test_varied_is_the_jacobian_times_the_directions(directions: int) -> None:
    g = trace("motion", motion, {"t": (), "y": (3,), "p": (2,)})
    moving = [1, -1, 0][:directions]
    made = g.varied("y", directions, p=moving)
    rng = np.random.default_rng(4)
    t, y, p, W = 0.7, rng.normal(size=3), rng.normal(size=2), rng.normal(size=(directions, 3))
    found = made.evaluate(t=t, y=np.concatenate([y, W.ravel()]), p=p)
    for key in ("dy", "out"):
        plain = np.atleast_1d(g.evaluate(t=t, y=y, p=p)[key])
        by_y = g.jacobian(key, "y").evaluate(t=t, y=y, p=p)[f"d{key}_dy"].reshape(-1, 3)
        by_p = g.jacobian(key, "p").evaluate(t=t, y=y, p=p)[f"d{key}_dp"].reshape(-1, 2)
        n = len(plain)
        assert found[key].shape == (n * (1 + directions),)
        np.testing.assert_array_equal(found[key][:n], plain)
        for j, element in enumerate(moving):
            slope = by_y @ W[j] + (by_p[:, element] if element >= 0 else 0.0)
            np.testing.assert_allclose(found[key][n * (1 + j) : n * (2 + j)], slope, rtol=1e-14, atol=1e-15)


def test_varied_graphs_are_called_and_differentiated_like_any_other() -> None:
    g = trace("motion", motion, {"t": (), "y": (3,), "p": (2,)}).varied("y", 1, p=[0])
    h = trace("h", lambda y, p: {"z": g.call(t=1.0, y=y, p=p)["dy"]}, {"y": (6,), "p": (2,)})
    y, p = np.linspace(0.3, 1.0, 6), np.array([0.4, 0.9])
    np.testing.assert_array_equal(h.evaluate(y=y, p=p)["z"], g.evaluate(t=1.0, y=y, p=p)["dy"])
    J = g.jacobian("dy", "y").evaluate(t=1.0, y=y, p=p)["ddy_dy"]
    e = 1e-6
    for j in range(6):
        d = e * np.eye(6)[j]
        slope = (g.evaluate(t=1.0, y=y + d, p=p)["dy"] - g.evaluate(t=1.0, y=y - d, p=p)["dy"]) / (2 * e)
        np.testing.assert_allclose(J[:, j], slope, atol=1e-8)
