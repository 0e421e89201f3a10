"""Gradients of runs in GPU code, emulated on this processor (emulated.py), agree with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cuda import device
from emulated import emulated

__all__ = ["emulated"]  # a fixture
Emulated = Callable[[int], None]


def adjoint(integrator: str = "rk4") -> bc.Adjoint:
    m = bc.zoo.load("chain(3)").free("link2.mass")
    plant = bc.system(
        m,
        control=lambda t, q, v, x, u: [u["a"] * (k + 1) - 0.5 * w + bc.sin(t) for k, w in enumerate(v)],
        inputs={"a": 0.0, "b": 1.0},
    )
    return bc.Adjoint(
        plant,
        lambda t, q, v, x, u: u["a"] * u["a"] + v[1] * q[0],
        lambda t, q, v, x, u: q[2] * q[2] * u["b"],
        integrator,
    )


def given() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    settings = {"inputs": {"a": rng.normal(size=(5, 4))}, "parameters": {"link2.mass": rng.uniform(1, 2, 5)}}
    return {"q0": rng.normal(size=(5, 3)), "v0": rng.normal(size=(5, 3)), "input_step": 0.03, "step": 0.01, **settings}


def same(gpu: bc.Gradient, cpu: bc.Gradient, tolerance: float) -> None:
    pairs = [(gpu.value, cpu.value), (gpu.q0, cpu.q0), (gpu.v0, cpu.v0)]
    for key in ("inputs", "parameters"):
        ours, theirs = getattr(gpu, key), getattr(cpu, key)
        assert list(ours) == list(theirs)
        pairs += zip(ours.values(), theirs.values(), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("checkpoints", [None, 4])
@pytest.mark.parametrize("name", ["rk4", "dopri5"])
def test_a_gradient_is_that_of_the_cpu(emulated: Emulated, name: str, checkpoints: int | None) -> None:
    made = adjoint(name)
    cpu, gpu = (made.run(0.14, target=target, checkpoints=checkpoints, **given()) for target in ("cpu", "cuda"))
    same(gpu, cpu, 1e-10)


def test_single_precision(emulated: Emulated) -> None:
    made = adjoint()
    same(made.run(0.14, target="cuda", dtype="float32", **given()), made.run(0.14, **given()), 1e-4)


def test_runs_that_do_not_fit_are_done_in_parts(emulated: Emulated) -> None:
    made = adjoint()
    whole = made.run(0.14, target="cuda", **given())
    note = made.steps.note_layout.size
    emulated(int(8 * 2.5 * 20 * note / 0.8))
    assert made._backend(bc.Where("cuda"), 5).note_capacity(note) < 14
    same(made.run(0.14, target="cuda", **given()), whole, 0.0)


def test_closed_loops_and_samples(emulated: Emulated) -> None:
    m = bc.zoo.four_bar()
    sampled = bc.Sampled(lambda t, q, v, x, u: [u["a"] - 0.3 * v[0], 0.0, -q[2]], every=0.02)
    plant = bc.system(m, control=sampled, inputs=["a"])
    made = bc.Adjoint(plant, lambda t, q, v, x, u: q[0] * q[0], "D.v")
    how: dict[str, Any] = {"inputs": {"a": np.linspace(0.0, 1.0, 5)}, "step": 0.01}
    same(made.run(0.1, target="cuda", **how), made.run(0.1, **how), 1e-9)


@pytest.mark.skipif(bool(device.unavailable_reason()), reason=device.unavailable_reason())
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_on_a_gpu(dtype: str, tolerance: float) -> None:
    made = adjoint()
    for checkpoints in (None, 4):
        gpu = made.run(0.14, target="cuda", dtype=dtype, checkpoints=checkpoints, **given())
        same(gpu, made.run(0.14, **given()), tolerance)


@pytest.mark.usefixtures("emulated")
def test_a_large_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large result is the same: it takes another path to memory, and a later one does not overwrite it."""
    small = adjoint().run(0.1, target="cuda", **given())
    monkeypatch.setattr(device, "PINNED_BYTES", 8)
    large = adjoint().run(0.1, target="cuda", **given())
    adjoint().run(0.2, target="cuda", **given())
    same(large, small, 0.0)
    monkeypatch.setattr(device.cupy().cuda, "alloc_pinned_memory", lambda size: 1 / 0)  # no pinned memory is left
    same(adjoint().run(0.1, target="cuda", **given()), small, 0.0)
