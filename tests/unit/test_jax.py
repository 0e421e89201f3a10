"""Kernels inside JAX: the same numbers, under jit and vmap, and derivatives of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import plant

jax = pytest.importorskip("jax")

from jax.test_util import check_grads  # noqa: E402

from bellcrank.jax import wrap  # noqa: E402

jnp = jax.numpy


@pytest.fixture(autouse=True)
def double() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.devices("cpu")[0]):  # other devices: tests/targets/test_jax_torch_gpu.py
        yield
    jax.config.update("jax_enable_x64", before)


ARM = bc.zoo.planar3r()
KERNEL = bc.kernel(ARM, "forward_dynamics")
STATES = [np.asarray(x) for x in ARM.random(0, 7)]


def test_the_numbers_are_the_kernels() -> None:
    f, expected = wrap(KERNEL), KERNEL(*STATES)
    for g in (f, jax.jit(f), jax.vmap(f), jax.jit(jax.vmap(f))):
        np.testing.assert_array_equal(g(*STATES), expected)
    q, v, tau = STATES
    np.testing.assert_array_equal(f(q[0], v, tau=tau), KERNEL(q[0], v, tau))
    np.testing.assert_array_equal(jax.vmap(f, (None, 0, 1), 1)(q[0], v, tau.T), KERNEL(q[0], v, tau).T)
    twice = jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, 0))
    np.testing.assert_array_equal(twice(q, v[:2], tau[:2])[1, 3], KERNEL(q[3], v[1], tau[1]))
    assert f(q[:0], v[:0], tau[:0]).shape == (0, 3)


def test_derivatives_equal_those_of_the_kernel() -> None:
    f, (q, v, tau) = wrap(KERNEL), (x[0] for x in STATES)
    for k, name in enumerate(("q", "v", "tau")):
        wanted = KERNEL.derivative(name)(q, v, tau)
        np.testing.assert_allclose(jax.jacfwd(f, k)(q, v, tau), wanted, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(jax.jacrev(f, k)(q, v, tau), wanted, rtol=1e-10, atol=1e-10)


def test_gradients_of_a_batch() -> None:
    f = wrap(KERNEL)

    def loss(q: Any, v: Any, tau: Any) -> Any:
        return (f(q, v, tau) ** 2).sum()

    each = jax.jit(jax.vmap(jax.grad(loss, (0, 1, 2))))(*STATES)
    together = jax.grad(loss, (0, 1, 2))(*STATES)
    for a, b in zip(each, together, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_second_derivatives_and_several_results() -> None:
    f = wrap(bc.compile(lambda x, k: {"a": bc.sin(x[0]) * x[1] * k, "b": x * x * k}, inputs={"x": 2, "k": ()}))
    x = jnp.array([0.3, 0.4])
    assert set(f(x, 2.0)) == {"a", "b"}
    check_grads(lambda x, k: f(x, k)["a"] + f(x, k)["b"].sum(), (x, 1.5), order=2)
    hessian = jax.hessian(lambda x: f(x, 1.0)["a"])(x)
    np.testing.assert_allclose(hessian, [[-0.4 * np.sin(0.3), np.cos(0.3)], [np.cos(0.3), 0.0]], atol=1e-12)
    only = jax.grad(lambda x: f(x, 1.0)["a"])(x)  # the other result has no weight
    np.testing.assert_allclose(only, [0.4 * np.cos(0.3), np.sin(0.3)], atol=1e-12)


def test_gradients_through_a_rollout() -> None:
    env = bc.stepper(plant(), every=0.02, step=0.01)
    step = wrap(env.transition)
    first, pushes = jnp.array([0.0, 0.1, 0.0, 0.0]), jnp.linspace(-0.5, 0.5, 20)[:, None]

    @jax.jit
    def loss(pushes: Any) -> Any:
        last, seen = jax.lax.scan(lambda y, u: (step(y, u), y), first, pushes)
        return (last**2).sum() + 0.1 * (seen[:, 1] ** 2).sum()

    env.reset(start=first)
    for u in np.asarray(pushes):
        y = env.step(u)
    last = jax.lax.scan(lambda y, u: (step(y, u), y), first, pushes)[0]
    np.testing.assert_allclose(last, y, rtol=1e-12)
    g = jax.grad(loss)(pushes)
    for k in (0, 7, 19):
        d = jnp.zeros_like(pushes).at[k].set(1e-5)
        assert float(g[k, 0]) == pytest.approx(float(loss(pushes + d) - loss(pushes - d)) / 2e-5, rel=1e-6)
    check_grads(loss, (pushes,), order=1)


def test_single_precision_needs_no_setting() -> None:
    jax.config.update("jax_enable_x64", False)
    f = wrap(bc.kernel(ARM, "forward_dynamics", dtype="float32"))
    assert f(*STATES).dtype == jnp.float32
    np.testing.assert_allclose(f(*STATES), KERNEL(*STATES), rtol=1e-3)
    assert jax.jit(jax.grad(lambda q: f(q, STATES[1], STATES[2]).sum()))(jnp.asarray(STATES[0])).shape == (7, 3)
    with pytest.raises(bc.InputError, match="jax_enable_x64"):
        wrap(KERNEL)(*STATES)


def test_free_numbers() -> None:
    m = bc.zoo.pendulum().free("bob.mass")
    kernel = bc.kernel(m, "forward_dynamics")
    f = wrap(kernel)
    at = [np.array([x]) for x in (0.3, 0.1, 0.2)]
    np.testing.assert_array_equal(f(*at), kernel(*at))
    slope = jax.grad(lambda p: f(*at, p=p)[0])(jnp.array(kernel.parameters.nominal))
    np.testing.assert_allclose(slope, kernel.derivative("p")(*at)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f(*STATES[:2]), "takes q, v, tau"),
        (lambda f: f(*STATES, STATES[0]), "takes q, v, tau"),
        (lambda f: f(STATES[0][:, :2], *STATES[1:]), r'"q" has shape \(7, 2\); expected \(..., 3\)'),
        (lambda f: f(STATES[0][:2], *STATES[1:]), "leading axes do not broadcast"),
        (lambda f: wrap(np.sin), "expected a Kernel"),
    ],
)
def test_bad_input(call: Any, says: str) -> None:
    with pytest.raises(bc.InputError, match=says):
        call(wrap(KERNEL))


def test_unavailable_transition_raises() -> None:
    with pytest.raises(bc.InputError, match='the integrator "abm4"'):
        bc.stepper(plant(), integrator="abm4").transition  # noqa: B018
    timed = bc.stepper(bc.system(bc.zoo.pendulum(), control=lambda t, q, v, x, u: [t + u["a"]], inputs=["a"]))
    assert list(timed.transition.signature.inputs) == ["y", "u", "t"]
    assert list(bc.stepper(plant()).transition.signature.inputs) == ["y", "u"]


def test_non_arrays_raise() -> None:
    f = wrap(bc.compile(lambda x: 2.0 * x, inputs={"x": 2}, dtype="float32"))
    for x in (None, "x", object(), np.zeros(2, complex)):
        with pytest.raises(bc.InputError, match="expected an array of real numbers"):
            f(x)
