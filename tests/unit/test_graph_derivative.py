"""Forward and reverse derivatives agree with each other to rounding, and with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellcrank.build import graphs
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.nodes.ops import OPS
from bellcrank.scalar import (
    acos,
    asin,
    atan2,
    cos,
    exp,
    fabs,
    floor,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    tanh,
    where,
)
from trees import close, random_tree, trees

# A smooth function of two numbers in (0.2, 0.8) for every operation of the table.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, b: -(a * b),
    "sqrt": lambda a, b: sqrt(a * b),
    "sin": lambda a, b: sin(a * b),
    "cos": lambda a, b: cos(a * b),
    "tan": lambda a, b: tan(a * b),
    "asin": lambda a, b: asin(a * b),
    "acos": lambda a, b: acos(a * b),
    "atan2": atan2,
    "exp": lambda a, b: exp(a * b),
    "log": lambda a, b: log(a * b),
    "tanh": lambda a, b: tanh(a * b),
    "abs": lambda a, b: fabs(a * b - 2.0),
    "floor": lambda a, b: a * b + floor(a),
    "minimum": lambda a, b: minimum(a * a, b + 2.0),
    "maximum": lambda a, b: maximum(a * a, b + 2.0),
    "lt": lambda a, b: where(a < b + 2.0, a * b, a),
    "le": lambda a, b: where(a + 2.0 <= b, a, a * a * b),
    "where": lambda a, b: where(a < 2.0, b * b * a, 1.0),
}


def differences(g: Graph, of: str, wrt: str, **values: Any) -> Any:
    """Return central differences of fourth order: accurate to about 1e-10 with this step."""
    x = np.array(values[wrt], float)
    h = 3e-4
    columns = []
    for e in np.eye(x.size):
        f = [g.evaluate(**values | {wrt: (x.ravel() + k * h * e).reshape(x.shape)})[of] for k in (-2, -1, 1, 2)]
        columns.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h))
    return np.stack(columns, axis=-1).reshape((*columns[0].shape, *x.shape))


def test_every_operation_is_differentiated_here() -> None:
    assert set(FUNCTIONS) == set(OPS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operation(name: str) -> None:
    g = trace(name, lambda x: {"y": FUNCTIONS[name](x[0], x[1])}, {"x": (2,)})
    assert name in {n.op for n in g.nodes}
    at = {"x": [0.37, 0.61]}
    forward = g.jacobian("y", "x", "forward").evaluate(**at)["dy_dx"]
    close(g.jacobian("y", "x", "reverse").evaluate(**at)["dy_dx"], forward, 1e-15)
    close(forward, differences(g, "y", "x", **at), 1e-9)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "atan2", "minimum", "maximum"])
@pytest.mark.parametrize("side", [0, 1])
def test_one_argument_is_a_constant(name: str, side: int) -> None:
    arguments = {0: lambda x: (x, 0.7), 1: lambda x: (0.7, x)}[side]
    g = trace(name, lambda x: {"y": FUNCTIONS[name](*arguments(x))}, {"x": ()})
    for mode in ("forward", "reverse"):
        close(g.jacobian("y", "x", mode).evaluate(x=0.4)["dy_dx"], differences(g, "y", "x", x=0.4), 1e-9)


def test_shapes_and_names() -> None:
    def body(A: Any, t: Any) -> dict[str, Any]:
        return {"B": (A @ A) * t, "s": A[0, 0] * t}

    g = trace("shapes", body, {"A": (2, 2), "t": ()})
    assert g.jacobian("B", "A").outputs["dB_dA"].shape == (2, 2, 2, 2)
    assert g.jacobian("B", "t").outputs["dB_dt"].shape == (2, 2)
    assert g.jacobian("s", "A").outputs["ds_dA"].shape == (2, 2)
    assert g.jacobian("s", "t").outputs["ds_dt"].shape == ()
    at = {"A": [[0.1, 0.2], [0.3, 0.4]], "t": 0.5}
    close(g.jacobian("B", "A").evaluate(**at)["dB_dA"], differences(g, "B", "A", **at), 1e-10)


def test_independent_derivative_is_a_constant_zero() -> None:
    g = trace("sparse", lambda x: {"y": [sin(x[0]), x[1], 2.0]}, {"x": (3,)})
    for mode in ("forward", "reverse"):
        J = g.jacobian("y", "x", mode)
        assert J.count()["trig"] == 1  # one cosine and no other
        assert J.count().arithmetic == 0
        assert J.outputs["dy_dx"][1].tolist() == [0.0, 1.0, 0.0]


def test_unknown_names_are_explained() -> None:
    g = trace("g", lambda x: {"y": x}, {"x": ()})
    with pytest.raises(InputError, match=r'output "z".*Known: y'):
        g.jacobian("z", "x")
    with pytest.raises(InputError, match=r'input "z".*Known: x'):
        g.jacobian("y", "z")
    with pytest.raises(InputError, match=r'mode "backward".*forward'):
        g.jacobian("y", "x", "backward")


@settings(max_examples=15)
@given(trees(max_bodies=4, passive=True), st.integers(0, 100))
def test_forward_and_reverse_agree_on_dynamics(m: Mechanism, seed: int) -> None:
    q, v, tau = m.random(seed)
    g = graphs.graph(m, "forward_dynamics")
    for wrt in ("q", "v", "tau"):
        J = [g.jacobian("forward_dynamics", wrt, mode).evaluate(q=q, v=v, tau=tau) for mode in ("forward", "reverse")]
        close(*(next(iter(d.values())) for d in J), 1e-11)


def test_dynamics_against_differences() -> None:
    m = random_tree(4, ["revolute", "universal", "spherical", "planar"], armature=True)
    q, v, tau = m.random(1)
    g = graphs.graph(m, "forward_dynamics")
    for wrt in ("q", "v", "tau"):
        J = g.jacobian("forward_dynamics", wrt).evaluate(q=q, v=v, tau=tau)[f"dforward_dynamics_d{wrt}"]
        close(J, differences(g, "forward_dynamics", wrt, q=q, v=v, tau=tau), 1e-9)


BRANCHES = {
    "a root": (lambda x: where(x[0] > 0.0, sqrt(x[0]), 0.0) * x[1], (0.0, 2.0), (0.0, 0.0)),
    "a quotient": (lambda x: where(x[0] > 0.0, x[1] / x[0], 3.0 * x[1]), (0.0, 2.0), (0.0, 3.0)),
    "a product with one": (lambda x: where(x[0] > 0.0, x[1] * (x[1] / x[0]), x[0]), (0.0, 2.0), (1.0, 0.0)),
    "a logarithm": (lambda x: where(x[0] > 0.0, x[1] * log(x[0]), x[1]), (-1.0, 2.0), (0.0, 1.0)),
    "the smaller": (lambda x: minimum(x[1] / x[0], 5.0 * x[1]), (0.0, 2.0), (0.0, 5.0)),
    "the larger": (lambda x: maximum(-(x[1] / x[0]), 5.0 * x[1]), (0.0, 2.0), (0.0, 5.0)),
    "one in another": (lambda x: where(x[1] > 0.0, where(x[0] > 0.0, sqrt(x[0]), x[1]), 0.0), (0.0, 2.0), (0.0, 1.0)),
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("mode", ["forward", "reverse", "jvp", "vjp"])
def test_derivative_of_a_selection_is_that_of_the_selected_value(name: str, mode: str) -> None:
    """The derivative of a selection is that of the selected value, even if the other one is infinite or NaN."""
    function, x, want = BRANCHES[name]
    graph = trace("branch", lambda x: {"y": [function(x)]}, {"x": (2,)})
    with np.errstate(all="ignore"):
        if mode == "jvp":
            found = [graph.jvp().evaluate(x=x, d_x=d)["d_y"][0] for d in np.eye(2)]
        elif mode == "vjp":
            found = graph.vjp().evaluate(x=x, w_y=[1.0])["g_x"]
        else:
            found = graph.jacobian("y", "x", mode).evaluate(x=x)["dy_dx"][0]
    np.testing.assert_array_equal(found, want)


def test_zero_weight_contributes_no_gradient() -> None:
    """A value with weight zero contributes zero to the gradient, whatever its slope.

    Example: the gradient of a distance where it is zero.
    """
    graph = trace("both", lambda x: {"y": [sqrt(x[0] * x[0] + x[1] * x[1]), 3.0 * x[1]]}, {"x": (2,)})
    with np.errstate(all="ignore"):
        at = {w: graph.vjp().evaluate(x=[0.0, 0.0], w_y=[w, 1.0])["g_x"] for w in (0.0, 1.0)}
    np.testing.assert_array_equal(at[0.0], [0.0, 3.0])
    assert np.isnan(at[1.0]).any()


def test_derivatives_of_derivatives() -> None:
    g = trace("cubic", lambda x: {"y": x * x * x}, {"x": ()})
    d1 = g.jacobian("y", "x")
    d2 = d1.jacobian("dy_dx", "x")
    assert d2.evaluate(x=2.0)["ddy_dx_dx"] == pytest.approx(12.0)


def test_labels_of_derivatives_name_the_quantity() -> None:
    J = graphs.graph(random_tree(4, ["revolute"] * 2), "bias").jacobian("bias", "q")
    assert all(n.label for n in J.nodes if n.op != "input")
    assert any(n.label.startswith("d f[") for n in J.nodes)
