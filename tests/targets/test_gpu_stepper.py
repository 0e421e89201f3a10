"""Steppers on the GPU agree with those on the CPU; skipped where there is no GPU."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cuda.device import unavailable_reason
from carts import plant

pytestmark = pytest.mark.skipif(bool(unavailable_reason()), reason=unavailable_reason() or "there is a GPU")

RUNS, ACTIONS = 300, 12
TASK = {
    "every": 0.05,
    "step": 0.005,
    "reward": lambda t, q, v, x, u: 1.0 - q["hinge"] * q["hinge"] - 0.01 * u["push"] * u["push"],
    "ends": lambda t, q, v, x, u: bc.fabs(q["hinge"]) > 0.2,
    "limit": 0.3,
    "start": lambda random: {"hinge.q": random.uniform(-0.1, 0.1), "slide.v": random.normal(0.0, 0.2)},
    "seed": 7,
}


def pushes() -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (ACTIONS, RUNS, 1))


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-9), ("float32", 2e-3)])
def test_the_gpu_does_as_the_cpu(restart: bool, dtype: str, close: float) -> None:
    import cupy

    here = bc.stepper(plant(), RUNS, restart=restart, **TASK)
    there = bc.stepper(plant(), RUNS, restart=restart, target="cuda", dtype=dtype, **TASK)
    np.testing.assert_allclose(cupy.asnumpy(there.reset(seed=7)), here.reset(seed=7), atol=close)
    wrong = 0
    for u in pushes():
        y, z = here.step(u), there.step(cupy.asarray(u))
        same = cupy.asnumpy(there.ended) == here.ended  # rounding may end a run one action later
        wrong += int((~same).sum())
        if dtype == "float64":
            assert same.all()
            np.testing.assert_allclose(cupy.asnumpy(z), y, atol=close)
            np.testing.assert_allclose(cupy.asnumpy(there.reward), here.reward, atol=close)
            np.testing.assert_allclose(cupy.asnumpy(there.t), here.t)
        if (here.ended > 0).all() and not restart:
            break
    assert wrong <= 0.01 * RUNS * ACTIONS


@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_masks_snapshots_and_parameters(integrator: str) -> None:
    import cupy

    gain = bc.parameter("gain", 10.0)
    m = plant().mechanism
    s = bc.system(m, [], lambda t, q, v, x, u: {"slide": gain * u["push"]}, inputs=["push"], parameters=[gain])
    how = {"every": 0.02, "step": 0.005, "integrator": integrator, "parameters": {"gain": np.linspace(5, 15, RUNS)}}
    here, there = bc.stepper(s, RUNS, **how), bc.stepper(s, RUNS, target="cuda", **how)
    mask = np.arange(RUNS) % 3 == 1
    for env in (here, there):
        env.reset(start={"hinge.q": np.linspace(-0.1, 0.1, RUNS)})
        env.step(pushes()[0])
        env.reset(mask, start={"hinge.q": 0.3}, parameters={"gain": 2.0})
    kept = there.snapshot()
    for u in pushes()[:3]:
        here.step(u)
        there.step(u)
    np.testing.assert_allclose(cupy.asnumpy(there.state), here.state, atol=1e-10)
    np.testing.assert_allclose(cupy.asnumpy(there.parameters), here.parameters)
    last = there.state
    there.restore(kept)
    for u in pushes()[:3]:
        there.step(u)
    assert bool((there.state == last).all())


def test_non_finite_input_ends_its_run() -> None:
    there = bc.stepper(plant(), 4, 0.02, target="cuda")
    there.step(np.array([[0.0], [np.nan], [0.0], [0.0]]))
    assert there.reasons == ["", "not finite", "", ""]
    with pytest.raises(bc.InputError, match="expected"):
        there.step(np.zeros((3, 1)))
    with pytest.raises(bc.InputError, match="on the GPU"):
        there.step(np.zeros((4, 1)), out=np.zeros((4, 4)))


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    there, other = (bc.stepper(plant(), 64, 0.02, target="cuda", dtype="float32") for _ in range(2))
    u = torch.linspace(-1, 1, 64, device="cuda")[:, None]
    out = torch.empty((64, 4), device="cuda")
    there.step(u, out=out)
    np.testing.assert_array_equal(out.cpu().numpy(), other.step(u.cpu().numpy()).get())


def test_one_run_has_no_axis() -> None:
    one = bc.stepper(plant(), None, 0.02, target="cuda")
    assert one.step(np.array([0.3])).shape == (4,)
    assert one.t.shape == one.reward.shape == ()


@pytest.mark.parametrize("inputs", [{"push": 0.1}, {}])
def test_sampled_controllers(inputs: dict[str, float]) -> None:
    """Sampled controllers work in a run and in a stepper, with a delay and a supervisor."""
    import cupy

    def hold(t, q, v, x, u):
        push = u["push"] if inputs else 0.0
        return {"force": 30.0 * q["hinge"] + 5.0 * v["hinge"] + push + x["wanted"]}, {"n": x["n"] + 1.0}

    controllers = [
        bc.Sampled(lambda t, q, v, x, u: {"wanted": -q["slide"]}, every=0.02, outputs={"wanted": 0.0}),
        bc.Sampled(hold, every=3e-3, outputs={"force": 0.0}, states={"n": 0.0}, delay=4e-3, quantum=0.1),
    ]
    s = bc.system(
        plant().mechanism, control=lambda t, q, v, x, u: {"slide": x["force"]}, sampled=controllers, inputs=inputs
    )
    q0 = np.linspace(-0.1, 0.1, 64)
    here, there = (bc.simulate(s, 0.1, {"hinge": q0}, step=1e-3, every=0.01, target=t) for t in ("cpu", "cuda"))
    for name in ("hinge.q", "force", "n", "wanted"):
        np.testing.assert_allclose(there[name], here[name], atol=1e-9)
    env = bc.stepper(s, 64, 0.01, step=1e-3, target="cuda", outputs=["hinge.q", "n"])
    env.reset(start={"hinge.q": q0})
    u = np.full((64, 1), 0.1) if inputs else None
    for k in range(1, 11):
        np.testing.assert_allclose(cupy.asnumpy(env.step(u))[:, 0], here["hinge.q"][:, k], atol=1e-9)
