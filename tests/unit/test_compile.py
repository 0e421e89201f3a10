"""bc.compile makes a kernel of a Python function, and explains why where it cannot."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc


def spring(x: Any, k: Any) -> Any:
    """Return the force of a hardening spring."""
    return -k * x - 0.1 * x * x * x


def test_user_function_is_compiled() -> None:
    f = bc.compile(spring, inputs={"x": 3, "k": ()})
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(f(x, 2.0), spring(x, 2.0), rtol=1e-14)
    assert f.graph.count()["mul"] > 0
    assert (f.signature.name, f.signature.inputs, f.signature.outputs) == (
        "spring",
        {"x": (3,), "k": ()},
        {"spring": (3,)},
    )
    assert "hardening spring" in (f.function.__doc__ or "")
    assert f.predicted > 0.0


def test_arguments_go_by_their_names() -> None:
    x, k = np.array([0.5, -1.0, 2.0]), 2.0
    f = bc.compile(spring, inputs={"k": (), "x": 3})  # in another order
    np.testing.assert_allclose(f(k, x), spring(x, k), rtol=1e-14)
    np.testing.assert_allclose(f(x=x, k=k), spring(x, k), rtol=1e-14)


def test_a_function_without_names_takes_them_in_order() -> None:
    assert bc.compile(lambda *given: given[0] - given[1], inputs={"a": (), "b": ()})(3.0, 1.0) == 2.0
    np.testing.assert_allclose(bc.compile(np.sin, inputs={"x": 2})([0.1, 0.2]), np.sin([0.1, 0.2]), rtol=1e-15)


def test_shapes_of_arguments_and_results() -> None:
    f = bc.compile(lambda A, x: A @ x, inputs={"A": (2, 3), "x": 3})
    A, x = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0, 2.0])
    assert f(A, x).tolist() == (A @ x).tolist()
    assert bc.compile(lambda x: [[x, 1], [0, 2 * x]], inputs={"x": ()})(3.0).tolist() == [[3, 1], [0, 6]]
    assert bc.compile(lambda x: 7, inputs={"x": ()})(3.0) == 7.0


def test_several_results_come_by_name() -> None:
    f = bc.compile(lambda x: {"sum": x[0] + x[1], "outer": np.outer(x, x)}, inputs={"x": 2}, name="both")
    found = f(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert list(found) == ["sum", "outer"]
    assert found["sum"].tolist() == [3.0, 7.0]
    assert found["outer"].shape == (2, 2, 2)
    assert f.signature.name == "both"


def test_leading_axes_broadcast() -> None:
    f = bc.compile(spring, inputs={"x": 3, "k": ()})
    rng = np.random.default_rng(0)
    x, k = rng.normal(size=(4, 1, 3)), rng.normal(size=5)
    np.testing.assert_allclose(f(x, k), spring(x, k[:, None]), rtol=1e-13)
    out = np.empty((4, 5, 3))
    assert f(x, k, out=out) is out
    assert f(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_float32_and_threads() -> None:
    x = np.random.default_rng(1).normal(size=(40_000, 3))
    right = spring(x, 2.0)
    single = bc.compile(spring, inputs={"x": 3, "k": ()}, dtype="float32")(x, 2.0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, right, rtol=2e-6, atol=1e-6)
    shared = bc.compile(spring, inputs={"x": 3, "k": ()}, threads=2)
    one = bc.compile(spring, inputs={"x": 3, "k": ()})
    assert shared.threads == 2
    assert np.array_equal(shared(x, 2.0), one(x, 2.0))


def test_graphs_and_their_derivatives() -> None:
    f = bc.compile(lambda x: bc.sin(x) * x[0], inputs={"x": 3}, name="f")
    again = bc.compile(f.graph)
    slope = bc.compile(f.graph.jacobian("f", "x"))
    x = np.array([0.3, -0.4, 1.2])
    assert np.array_equal(again(x), f(x))
    h = 1e-6
    columns = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(slope(x), np.array(columns).T, atol=1e-9)
    np.testing.assert_allclose(slope(np.tile(x, (5, 1)))[3], slope(x), rtol=1e-14)


def test_a_quantity_inside() -> None:
    """A compiled function may call the graph of a mechanism, with symbols and with numbers."""
    arm = bc.zoo.planar3r()
    M = bc.kernel(arm, "mass_matrix").graph

    def energy(q: Any, v: Any) -> Any:
        return 0.5 * v @ M.call(q=q)["mass_matrix"] @ v

    q, v, _ = arm.random(0, (7,))
    f = bc.compile(energy, inputs={"q": arm.nq, "v": arm.nv})
    np.testing.assert_allclose(f(q, v), arm.kinetic_energy(q, v), rtol=1e-12)
    momentum = np.einsum("nij,nj->ni", arm.mass_matrix(q), v)
    np.testing.assert_allclose(bc.compile(f.graph.jacobian("energy", "v"))(q, v), momentum, rtol=1e-12)
    bent = bc.compile(lambda angle: M.call(q=[0.0, angle, 0.0])["mass_matrix"], inputs={"angle": ()})
    np.testing.assert_allclose(bent(0.3), arm.mass_matrix([0.0, 0.3, 0.0]), rtol=1e-12)


def test_compiled_function_can_be_pickled() -> None:
    f = bc.compile(spring, inputs={"x": 3, "k": ()}, dtype="float32")
    copy = pickle.loads(pickle.dumps(f))
    assert copy.signature == f.signature
    assert np.array_equal(copy(np.ones(3), 2.0), f(np.ones(3), 2.0))


def test_comparisons_of_arrays() -> None:
    def leaky(x: Any, limit: Any) -> Any:
        return bc.where(x > limit, limit + 0.1 * (x - limit), bc.clip(x, -1, limit))

    f = bc.compile(leaky, inputs={"x": 4, "limit": ()})
    x = np.array([-3.0, 0.2, 1.0, 5.0])
    assert f(x, 1.0).tolist() == [-1.0, 0.2, 1.0, 1.4]
    np.testing.assert_array_equal(leaky(x, 1.0), f(x, 1.0))
    for compare in (np.less, np.less_equal, np.greater, np.greater_equal):
        signs = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}
        f = bc.compile(eval(f"lambda x: bc.where(x {signs[compare]} 1.0, 1.0, 0.0)", {"bc": bc}), inputs={"x": 4})
        assert f(x).tolist() == compare(x, 1.0).astype(float).tolist()


# Each takes two numbers and returns one, finite for finite ones.
OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - 0.5 * b,
    lambda a, b: bc.tanh(a) * b,
    lambda a, b: a / (1.0 + b * b),
    lambda a, b: bc.sin(a) + bc.cos(b),
    lambda a, b: bc.tan(0.5 * bc.tanh(a)),
    lambda a, b: bc.asin(bc.clip(a, -0.9, 0.9)) - bc.acos(bc.tanh(0.5 * b)),
    lambda a, b: bc.sqrt(1.0 + a * a),
    lambda a, b: bc.exp(-bc.fabs(a)),
    lambda a, b: bc.log(2.0 + b * b),
    lambda a, b: bc.atan2(a, 1.0 + b * b),
    lambda a, b: bc.minimum(a, b),
    lambda a, b: bc.maximum(a, 0.25),
    lambda a, b: bc.where(a < b, a, 2.0 * b),
    lambda a, b: bc.where(a >= 0.1, b, -a),
    lambda a, b: -a,
]
STEPS = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=12
)


@given(STEPS, st.integers(0, 2**31))
@settings(max_examples=40)
def test_random_functions_agree_with_the_graph_and_with_numbers(steps: list[tuple[int, int, int]], seed: int) -> None:
    def function(x: Any, y: Any) -> Any:
        found = [x[0], x[1], x[2], y]
        for operation, a, b in steps:
            found.append(OPERATIONS[operation](found[a % len(found)], found[b % len(found)]))
        return found[4:]

    f = bc.compile(function, inputs={"x": 3, "y": ()})
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-2, 2, (19, 3)), rng.uniform(-2, 2, 19)
    right = f.graph.evaluate(x=x, y=y)["function"]
    assert np.isfinite(right).all()
    np.testing.assert_allclose(f(x, y), right, rtol=1e-12, atol=1e-12)  # vector code
    np.testing.assert_allclose(f(x[3], y[3]), right[3], rtol=1e-12, atol=1e-12)  # scalar code
    np.testing.assert_allclose(
        [float(z) for z in function(x[3].tolist(), float(y[3]))], right[3], rtol=1e-12, atol=1e-12
    )


def nothing(x: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("function", "inputs", "words"),
    [
        (3, {"x": 1}, "expected a function or a Graph, got 3"),
        (spring, None, "expected the shape of every argument by name"),
        (spring, {}, "expected the shape of every argument by name"),
        (spring, {"x": 3}, "missing a required argument: 'k'"),
        (spring, {"x": 3, "k": (), "m": ()}, "unexpected keyword argument 'm'"),
        (spring, {"x": -1, "k": ()}, 'the shape of "x" is -1'),
        (spring, {"x": 0, "k": ()}, 'the shape of "x" is 0'),
        (spring, {"x": 2.5, "k": ()}, 'the shape of "x" is 2.5'),
        (spring, {"x": "3", "k": ()}, "the shape of \"x\" is '3'"),
        (spring, {"x": True, "k": ()}, 'the shape of "x" is True'),
        (spring, {"x": (2, None), "k": ()}, "expected 3, (3, 3), or ()"),
        (lambda a: a, {"not a name": 1}, "expected a valid Python name"),
        (lambda a: a, {"lambda": 1}, "expected a valid Python name"),
        (lambda a: a, {"out": 1}, "out and parameters are reserved"),
        (lambda a: a, {3: 1}, "expected a valid Python name"),
        (nothing, {"x": 1}, "nothing returned None; expected a scalar"),
        (lambda x: "text", {"x": 1}, "returned 'text'"),
        (lambda x: [], {"x": 1}, "returned []"),
        (lambda x: {}, {"x": 1}, "an empty mapping"),
        (lambda x: {3: x}, {"x": 1}, "a result named 3"),
        (lambda x: {"a": x, "b": None}, {"x": 1}, '"b" of function returned None'),
        (lambda x: [x[0], [x[0], x[0]]], {"x": 1}, "rows of one length"),
        (lambda x: x[0] + 1j, {"x": 1}, "1j"),
        (lambda x: x if x[0] > 0 else -x, {"x": 1}, "has no truth value"),
        (lambda x: math.sin(x), {"x": ()}, "cannot become a float"),
        (lambda x: x[0] < 1, {"x": 1}, "is a comparison"),
    ],
)
def test_uncompilable_functions_raise(function: Any, inputs: Any, words: str) -> None:
    with pytest.raises(bc.BellcrankError) as error:
        bc.compile(function, inputs=inputs)
    assert words in str(error.value)


def test_other_mistakes_are_explained() -> None:
    f = bc.compile(spring, inputs={"x": 3, "k": ()})
    with pytest.raises(bc.InputError, match=r"a Graph defines its inputs \(x, k\)"):
        bc.compile(f.graph, inputs={"x": 3})
    for setting in ({"target": "gpu"}, {"dtype": "float16"}, {"threads": 0}, {"processors": 2}):
        with pytest.raises(bc.InputError):
            bc.compile(spring, inputs={"x": 3, "k": ()}, **setting)
    for args, named, words in (
        ((np.ones(2), 1.0), {}, "has shape"),
        ((np.ones(3),), {}, "missing k"),
        ((np.ones(3), 1.0), {"z": 1}, 'no input "z"'),
        ((np.ones((2, 3)), np.ones(3)), {}, "do not broadcast"),
        ((np.ones(3), math.nan), {}, "expected finite numbers"),
    ):
        with pytest.raises(bc.InputError) as error:
            f(*args, **named)
        assert words in str(error.value)


def test_symbols_do_not_outlive_their_trace() -> None:
    kept: list[Any] = []
    bc.compile(lambda x: kept.append(x) or x, inputs={"x": ()})
    with pytest.raises(bc.TraceError, match="two traces"):
        bc.compile(lambda y: y + kept[0], inputs={"y": ()})


def test_error_in_a_function_names_the_trace() -> None:
    """An error inside a traced function names the function and the line, and explains that it ran on symbols.

    Controls report errors in the same form.
    """

    def boom(x: Any) -> Any:
        raise RuntimeError("out of milk")

    def again(x: Any) -> Any:
        return again(x)

    def beyond(x: Any) -> Any:
        return x[5]

    for function, says in ((boom, "RuntimeError: out of milk"), (again, "RecursionError"), (beyond, "IndexError")):
        with pytest.raises(bc.TraceError, match=says) as caught:
            bc.compile(function, inputs={"x": 2})
        assert f"{function.__name__}(), while it was traced: " in str(caught.value)
        assert "test_compile.py, line" in str(caught.value)


def test_excessive_symbols_raise() -> None:
    for shape in (10**9, (10**5, 10**5), 10**30):
        with pytest.raises(bc.InputError, match="symbols in all are more than can be compiled"):
            bc.compile(lambda x: x, inputs={"x": shape})
