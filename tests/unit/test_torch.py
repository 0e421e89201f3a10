"""Kernels inside PyTorch: the same numbers, gradients of any order, and PyTorch's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import plant

torch = pytest.importorskip("torch")

from bellcrank.build.differentiable_function import differentiable_function  # noqa: E402
from bellcrank.torch import operator, wrap  # noqa: E402

ARM = bc.zoo.planar3r()
KERNEL = bc.kernel(ARM, "forward_dynamics")
STATES = [np.asarray(x) for x in ARM.random(0, 5)]


def tensors(grad: bool = True) -> list[Any]:
    return [torch.tensor(x, requires_grad=grad) for x in STATES]


def test_the_numbers_are_the_kernels() -> None:
    f, expected = wrap(KERNEL), KERNEL(*STATES)
    np.testing.assert_array_equal(f(*tensors(False)), expected)
    np.testing.assert_array_equal(torch.vmap(f)(*tensors(False)), expected)
    q, v, tau = tensors(False)
    np.testing.assert_array_equal(f(q[0], v, tau=tau), KERNEL(q[0].numpy(), STATES[1], STATES[2]))
    np.testing.assert_array_equal(torch.vmap(f, (None, 0, 1))(q[0], v, tau.T), f(q[0], v, tau))
    assert f(q.float(), v, tau).dtype == torch.float64


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # raised inside PyTorch
def test_opcheck_finds_nothing() -> None:
    torch.library.opcheck(operator(differentiable_function(KERNEL)), tensors())


def test_gradcheck_finds_nothing() -> None:
    f = wrap(KERNEL)
    assert torch.autograd.gradcheck(f, tensors())
    one = [x[:1].detach().requires_grad_() for x in tensors()]
    assert torch.autograd.gradgradcheck(f, one)
    assert torch.autograd.gradcheck(lambda q: f(q, *tensors(False)[1:]), [one[0]])  # broadcast, and one of three


def test_several_results() -> None:
    f = wrap(bc.compile(lambda x, k: {"a": bc.sin(x[0]) * x[1] * k, "b": x * x * k}, inputs={"x": 2, "k": ()}))
    x = torch.tensor([0.3, 0.4], dtype=torch.float64, requires_grad=True)
    found = f(x, 2.0)
    (g,) = torch.autograd.grad(found["a"], x)
    np.testing.assert_allclose(g, [0.8 * np.cos(0.3), 2.0 * np.sin(0.3)])
    assert torch.autograd.gradcheck(
        lambda x, k: tuple(f(x, k).values()), (x, torch.tensor(0.7, dtype=torch.float64, requires_grad=True))
    )


def test_gradients_through_a_rollout() -> None:
    env = bc.stepper(plant(), every=0.02, step=0.01)
    step = wrap(env.transition)
    pushes = torch.linspace(-0.5, 0.5, 10, dtype=torch.float64)[:, None].requires_grad_()

    def last(pushes: Any) -> Any:
        y = torch.tensor([0.0, 0.1, 0.0, 0.0], dtype=torch.float64)
        for u in pushes:
            y = step(y, u)
        return y

    env.reset(start={"hinge.q": 0.1})
    for u in pushes.detach().numpy():
        y = env.step(u)
    np.testing.assert_allclose(last(pushes).detach(), y, rtol=1e-12)
    assert torch.autograd.gradcheck(last, (pushes,))


def test_a_stepper_takes_tensors() -> None:
    a, b = (bc.stepper(plant(), 4, 0.02) for _ in range(2))
    u = torch.linspace(-1, 1, 4, dtype=torch.float64)[:, None]
    np.testing.assert_array_equal(a.step(u), b.step(u.numpy()))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f(*tensors()[:2]), "takes q, v, tau"),
        (lambda f: f(tensors()[0][:, :2], *tensors()[1:]), r'"q" has shape \(5, 2\); expected \(..., 3\)'),
        (lambda f: f(tensors()[0][:2], *tensors()[1:]), "leading axes do not broadcast"),
        (lambda f: f(torch.zeros(3, device="meta"), *tensors()[1:]), "is on meta"),
        (lambda f: wrap(np.sin), "expected a Kernel"),
    ],
)
def test_bad_input(call: Any, says: str) -> None:
    with pytest.raises(bc.InputError, match=says):
        call(wrap(KERNEL))


def test_non_tensors_raise() -> None:
    f = wrap(bc.compile(lambda x: 2.0 * x, inputs={"x": 2}))
    for x in (None, "x", object(), torch.zeros(2, dtype=torch.complex64)):
        with pytest.raises(bc.InputError, match="expected a tensor of real numbers"):
            f(x)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # raised inside PyTorch
def test_only_plain_tensors_take_the_fast_path() -> None:
    f, given = wrap(KERNEL), tensors(grad=False)
    plain = f(*given)
    assert torch.equal(plain, f(**dict(zip(("q", "v", "tau"), given, strict=True))))  # by the operator
    following = f(given[0].clone().requires_grad_(), *given[1:])
    assert torch.equal(plain, following)
    assert following.requires_grad
    with torch.no_grad():
        assert not f(given[0].clone().requires_grad_(), *given[1:]).requires_grad
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(given[0], torch.ones_like(given[0]))
        with pytest.raises(bc.InputError, match="forward mode"):  # also if a result has no tangent
            f(dual, *given[1:])
    with torch._subclasses.FakeTensorMode() as mode:
        assert f(*(mode.from_tensor(x) for x in given)).shape == plain.shape
