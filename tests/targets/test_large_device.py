"""Large mechanisms on a GPU, in loops over identical bodies, agree with the CPU; skipped where there is no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cuda import device
from bellcrank.emit.cuda.rolled_kernels import StateKernel

pytestmark = pytest.mark.skipif(bool(device.unavailable_reason()), reason=device.unavailable_reason())
TOLERANCE = {"float64": 1e-11, "float32": 1e-3}


def close(got: Any, want: Any, tolerance: float) -> None:
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["chain:100", "tree:255"])
def test_states_and_derivatives(name: str, dtype: str) -> None:
    m = bc.zoo.load(name)
    own, cpu = (bc.kernel(m, "forward_dynamics", target=target, dtype=dtype) for target in ("cuda", "cpu"))
    assert isinstance(own, StateKernel)
    given = m.random(0, 3000)
    close(own(*given), bc.kernel(m, "forward_dynamics")(*given), TOLERANCE[dtype])
    w = np.random.default_rng(0).normal(size=(3000, m.nv))
    there, here = (k.vjp("q")(*given, w) for k in (own, cpu))
    close(there, here, 10 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["chain:100", "tree:127"])
def test_runs(name: str, dtype: str) -> None:
    m = bc.zoo.load(name)
    q, v, _ = m.random(0, (2000,))
    given = {"q0": 0.3 * q, "v0": 0.1 * v, "step": 1e-3, "every": 2e-3, "progress": False}
    cpu, gpu = (bc.simulate(m, 1e-2, **how, **given) for how in ({}, {"target": "cuda", "dtype": dtype}))
    close(gpu.q, cpu.q, TOLERANCE[dtype])


def test_a_gradient() -> None:
    m = bc.zoo.load("chain:100")
    made = bc.Adjoint(m, None, lambda t, q, v, x, u: q[99] * q[99] + v[0] * v[1])
    q, v, _ = m.random(0, (100,))
    given = {"q0": 0.3 * q, "v0": 0.1 * v, "step": 1e-3}
    cpu, gpu = (made.run(1e-2, target=target, **given) for target in ("cpu", "cuda"))
    close(gpu.q0, cpu.q0, 1e-9)


def test_a_stepper() -> None:
    m, u = bc.zoo.load("chain:600"), np.random.default_rng(0).normal(size=(100, 600))
    here, there = (bc.stepper(m, 100, 2e-3, step=1e-3, target=target) for target in ("cpu", "cuda"))
    for _ in range(3):
        close(device.cupy().asnumpy(there.step(u)), here.step(u), 1e-11)


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    places = [d for d in jax.devices() if d.platform == "gpu"]
    if not places:
        pytest.skip("JAX has no GPU")
    from bellcrank.jax import wrap

    jax.config.update("jax_enable_x64", True)
    m = bc.zoo.load("chain:100")
    cpu, given = bc.kernel(m, "forward_dynamics"), m.random(0, 500)
    q, v, tau = (jax.device_put(x, places[0]) for x in given)
    close(jax.jit(jax.vmap(wrap(cpu)))(q, v, tau), cpu(*given), 1e-11)
    slope = jax.grad(lambda x: wrap(cpu)(x, v, tau).sum())(q)
    close(slope, cpu.vjp("q")(*given, np.ones((500, 100))), 1e-9)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    from bellcrank.torch import wrap

    m = bc.zoo.load("chain:100")
    cpu, given = bc.kernel(m, "forward_dynamics"), m.random(0, 500)
    q, v, tau = (torch.tensor(x, device="cuda") for x in given)
    q.requires_grad_(True)
    with torch.cuda.stream(torch.cuda.Stream()):
        found = wrap(cpu)(q, v, tau)
        found.sum().backward()
        torch.cuda.current_stream().synchronize()
    close(found.detach().cpu(), cpu(*given), 1e-11)
    close(q.grad.cpu(), cpu.vjp("q")(*given, np.ones((500, 100))), 1e-9)
