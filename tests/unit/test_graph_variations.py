"""jvp, vjp and sparsity of graphs and kernels agree with the Jacobian, each other, and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.graph.autodiff import with_known_values as given_nodes
from bellcrank.graph.inline import inline
from trees import few


def some(x: Any, k: Any) -> Any:
    a, b, c = x
    return {"y": [bc.sin(a * b) + k * c, bc.where(a < b, a * a, b), 3.0], "z": bc.sqrt(1.0 + c * c) * k}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return bc.compile(some, inputs={"x": 3, "k": ()}).graph


@few(20)
@given(st.integers(0, 10_000))
def test_directions_and_weights_are_the_jacobian(seed: int) -> None:
    g = bc.compile(some, inputs={"x": 3, "k": ()}).graph
    rng = np.random.default_rng(seed)
    x, k, dx, dk, wy, wz = rng.normal(size=3), rng.normal(), rng.normal(size=3), rng.normal(), rng.normal(size=3), 0.7
    J = {(of, wrt): next(iter(g.jacobian(of, wrt).evaluate(x=x, k=k).values())) for of in "yz" for wrt in "xk"}
    along = g.jvp().evaluate(x=x, k=k, d_x=dx, d_k=dk)
    for of in "yz":
        np.testing.assert_allclose(along[f"d_{of}"], J[of, "x"] @ dx + J[of, "k"] * dk, atol=1e-12)
    back = g.vjp().evaluate(x=x, k=k, w_y=wy, w_z=wz)
    for wrt in "xk":
        np.testing.assert_allclose(back[f"g_{wrt}"], wy @ J["y", wrt] + wz * J["z", wrt], atol=1e-12)


def test_the_second_derivative_is_symmetric_and_right() -> None:
    """The second derivative is symmetric: a Hessian times a vector is the vjp of a jvp, or the jvp of a gradient."""
    energy = graphs.graph(bc.zoo.excavator(), "kinetic_energy")
    q, v, _ = bc.zoo.excavator().random(3)
    gradient = energy.vjp("q")
    H = []
    for k in range(4):
        H.append(gradient.jvp("q").evaluate(q=q, v=v, w_kinetic_energy=1.0, d_q=np.eye(4)[k])["d_g_q"])
        other = (
            energy.jvp("q").vjp("q").evaluate(q=q, v=v, d_q=np.eye(4)[k], w_kinetic_energy=0.0, w_d_kinetic_energy=1.0)
        )
        np.testing.assert_allclose(other["g_q"], H[k], atol=1e-9 * np.abs(H[k]).max() + 1e-9)
    np.testing.assert_allclose(H, np.transpose(H), atol=1e-9 * np.abs(H).max())
    h, e = 1e-5, np.eye(4)[1]
    sides = [gradient.evaluate(q=q + s * h * e, v=v, w_kinetic_energy=1.0)["g_q"] for s in (1, -1)]
    np.testing.assert_allclose(H[1], (sides[0] - sides[1]) / (2 * h), atol=1e-5 * np.abs(H).max())


def test_sparsity_follows_from_operations(graph: Graph) -> None:
    assert graph.sparsity("y", "x").tolist() == [[True, True, True], [True, True, False], [False, False, False]]
    assert graph.sparsity("z", "k").tolist() is True
    assert bc.kernel(bc.zoo.tree(7), "mass_matrix").graph.sparsity("mass_matrix", "q").any(axis=-1).sum() < 49


def test_through_a_call() -> None:
    inner = trace("inner", lambda x: {"y": [bc.sin(x[0]) * x[1]]}, {"x": (2,)})
    outer = trace("outer", lambda u: {"z": inner.call(x=[u[0] * u[0], u[1]])["y"]}, {"u": (2,)})
    u = np.array([0.7, 0.3])
    found = outer.vjp().evaluate(u=u, w_z=[1.0])["g_u"]
    np.testing.assert_allclose(found, [np.cos(0.49) * 1.4 * 0.3, np.sin(0.49)], rtol=1e-12)


def test_behind_calls_there_are_calls() -> None:
    """The derivative of a graph with calls has calls: one pullback for each called graph, also through nested calls.

    A number may be an argument.
    """
    deep = trace("deep", lambda x: {"y": [bc.sin(x[0]) * x[1], x[1]], "z": x[0] * x[0]}, {"x": (2,)})

    def middle(x: Any, k: Any) -> dict[str, Any]:
        first = deep.call(x=x)
        second = deep.call(x=[first["z"][()] * k, 0.5])
        return {"y": [*second["y"], first["y"][0]]}

    inner = trace("inner", middle, {"x": (2,), "k": ()})
    outer = trace("outer", lambda u: {"z": inner.call(x=u[:2], k=u[2] * u[0])["y"]}, {"u": (3,)})
    back = outer.vjp()
    assert {id(g) for g in back.calls} <= {id(g) for g in (inner, deep, inner.pullback, deep.pullback)}
    u, w = np.array([0.7, 0.3, -0.4]), np.array([1.0, 2.0, -0.7])
    flat = inline(outer)
    np.testing.assert_allclose(
        back.evaluate(u=u, w_z=w)["g_u"], w @ flat.jacobian("z", "u", "forward").evaluate(u=u)["dz_du"], rtol=1e-13
    )
    np.testing.assert_allclose(bc.compile(back)(u, w), back.evaluate(u=u, w_z=w)["g_u"], rtol=1e-13)


def test_passed_through_inputs_are_the_arguments() -> None:
    """An input that a called graph returns unchanged is the argument itself, also in the pullback.

    The rest are results.
    """
    inner = trace("inner", lambda x: {"y": [x[1], bc.sin(x[0])]}, {"x": (2,)})
    outer = trace("outer", lambda u: {"z": inner.call(x=[u[0], 3.0 * u[1]])["y"]}, {"u": (2,)})
    assert [node.op for node in outer.outputs["z"]] == ["mul", "result"]
    np.testing.assert_allclose(outer.vjp().evaluate(u=[0.7, 0.3], w_z=[2.0, 5.0])["g_u"], [5.0 * np.cos(0.7), 6.0])


def test_known_values_are_not_computed() -> None:
    inner = trace("inner", lambda x: {"y": [bc.sin(x[0]) * x[1]]}, {"x": (2,)})
    outer = trace("outer", lambda u: {"z": [inner.call(x=u)["y"][0] * u[0]]}, {"u": (2,)})
    (told,) = (node for node in outer.nodes if node.op == "result")
    short = given_nodes(outer, "told", [told])
    assert not short.calls
    assert short.evaluate(u=[3.0, 5.0], told=[7.0])["z"] == [21.0]


def test_kernels_have_variations() -> None:
    arm = bc.zoo.puma600()
    k = bc.kernel(arm, "gravity_torque")
    Q, V, _ = arm.random(0, (5,))
    D = k.derivative("q")(Q)
    assert D.shape == (5, 6, 6)
    along = k.jvp("q")(Q, V)
    np.testing.assert_allclose(along["d_gravity_torque"], (D @ V[..., None])[..., 0], atol=1e-11)
    np.testing.assert_allclose(k.vjp("q")(Q, V), (V[:, None] @ D)[:, 0], atol=1e-11)
    assert k.derivative("q").signature.dtype == "float64"


def test_names_that_are_not_there_or_twice(graph: Graph) -> None:
    with pytest.raises(InputError, match="no input"):
        graph.jvp(["q"])
    with pytest.raises(InputError, match="is used twice"):
        graph.jvp("x").jvp("x")
