"""Sampled controllers equal a loop in Python: samples at their times, held, delayed and rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import cart_pole

H = 1e-3


def by_hand(controllers: list[dict[str, Any]], steps: int, integrator: str = "rk4") -> np.ndarray:
    """Rows of the cart-pole, pushed by x["force"]: every controller in Python, the plant stepped by one step."""
    m = cart_pole()
    s = bc.system(m, control=lambda t, q, v, x, u: {"slide": u["force"]}, inputs=["force"])
    plant = bc.stepper(s, step=H, integrator=integrator)
    plant.reset(start={"hinge.q": 0.1})
    x = {name: value for c in controllers for name, value in {**c["outputs"], **c.get("states", {})}.items()}
    coming: list[tuple[int, str, float]] = []
    rows = []
    for n in range(steps):
        y = plant.state
        q, v = dict(zip(m.columns[0], y[:2], strict=True)), dict(zip(m.columns[1], y[2:], strict=True))
        for c in controllers:
            if n % round(c["every"] / H) == 0:
                found = c["function"](n * H, q, v, dict(x), {})
                outputs, states = found if c.get("states") else (found, {})
                if "quantum" in c:
                    outputs = {k: c["quantum"] * np.floor(z / c["quantum"] + 0.5) for k, z in outputs.items()}
                late = round(c.get("delay", 0.0) / H)
                coming += [(n + late, name, z) for name, z in outputs.items()]
                x |= states
            x |= {name: z for when, name, z in coming if when == n}
        plant.step(np.array([x["force"]]))
        rows.append(plant.state)
    return np.array(rows)


def pushed(controllers: list[dict[str, Any]], steps: int, **how: Any) -> np.ndarray:
    """Return these controllers and the plant as one system."""
    s = bc.system(
        cart_pole(), control=lambda t, q, v, x, u: {"slide": x["force"]}, sampled=[bc.Sampled(**c) for c in controllers]
    )
    run = bc.simulate(s, steps * H, {"hinge": 0.1}, step=H, **how)
    return np.concatenate([run.q, run.v], axis=-1)[1:]


def hold(t, q, v, x, u):
    return {"force": 30.0 * q["hinge"] + 5.0 * v["hinge"] + 2.0 * q["slide"]}


def integrate(t, q, v, x, u):
    error = q["hinge"] - x["wanted"]
    return {"force": 30.0 * error + 5.0 * v["hinge"] + x["sum"]}, {"sum": x["sum"] + 0.2 * error}


def supervise(t, q, v, x, u):
    return {"wanted": -0.05 * q["slide"]}, {"count": x["count"] + 1.0}


PLAIN = {"function": hold, "every": 5e-3, "outputs": {"force": 0.0}}
SUPERVISED = [
    {"function": supervise, "every": 20e-3, "outputs": {"wanted": 0.02}, "states": {"count": 0.0}},
    {"function": integrate, "every": 3e-3, "outputs": {"force": 0.0}, "states": {"sum": 0.0}},
]


@pytest.mark.parametrize(
    "controllers",
    [
        [PLAIN],
        [PLAIN | {"every": 1e-3}],
        [PLAIN | {"quantum": 0.25}],
        [PLAIN | {"delay": 2e-3}],
        [PLAIN | {"delay": 5e-3}],
        [PLAIN | {"delay": 7e-3}],
        [PLAIN | {"delay": 10e-3, "quantum": 0.5}],
        SUPERVISED,
        [SUPERVISED[0] | {"delay": 4e-3}, SUPERVISED[1] | {"delay": 1e-3}],
    ],
    ids=["held", "every step", "rounded", "late", "a period late", "more", "two periods", "two rates", "all late"],
)
def test_sampled_control_equals_a_loop_in_python(controllers: list[dict[str, Any]]) -> None:
    np.testing.assert_allclose(pushed(controllers, 60), by_hand(controllers, 60), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("integrator", ["abm4", "rodas4"])
def test_multistep_integrator_restarts_at_samples(integrator: str) -> None:
    found = pushed(SUPERVISED, 60, integrator=integrator)
    np.testing.assert_allclose(found, pushed(SUPERVISED, 60), rtol=1e-4, atol=1e-6)


def test_a_batch_and_a_stepper_are_the_run() -> None:
    s = bc.system(
        cart_pole(),
        control=lambda t, q, v, x, u: {"slide": x["force"] + u["push"]},
        sampled=[bc.Sampled(**c) for c in SUPERVISED],
        inputs=["push"],
    )
    q0, u = np.random.default_rng(0).normal(size=(7, 2)) * 0.1, np.random.default_rng(1).normal(size=(7, 6))
    how = {"step": H, "every": 0.01, "input_step": 0.01}
    batch = bc.simulate(s, 0.06, q0, inputs={"push": u}, **how)
    alone = bc.simulate(s, 0.06, q0[3], inputs={"push": u[3]}, **how)
    np.testing.assert_array_equal(batch.q[3], alone.q)
    np.testing.assert_array_equal(batch["force"][3], alone["force"])
    env = bc.stepper(s, 7, 0.01, step=H)
    env.reset(start={"slide.q": q0[:, 0], "hinge.q": q0[:, 1]})
    for k in range(6):
        env.step(u[:, k : k + 1])
        np.testing.assert_array_equal(env.state[:, :2], batch.q[:, k + 1])
        np.testing.assert_array_equal(env.state[:, 4], batch["wanted"][:, k + 1])
    assert batch["count"][0, -1] == 3.0  # at 0, 20 and 40 ms; the row at 60 ms is before the fourth


@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_a_stepper_without_inputs(integrator: str) -> None:
    s = bc.system(cart_pole(), control=bc.Sampled(lambda t, q, v, x, u: {"slide": 30.0 * q["hinge"]}, every=3 * H))
    run = bc.simulate(s, 0.06, {"hinge": 0.1}, step=H, every=0.01, integrator=integrator)
    env = bc.stepper(s, every=0.01, step=H, integrator=integrator, outputs=["slide.q", "slide.held"])
    env.reset(start={"hinge.q": 0.1})
    found = np.array([env.step() for _ in range(6)])
    np.testing.assert_array_equal(found[:, 0], run.q[1:, 0])
    np.testing.assert_array_equal(found[:, 1], run["slide.held"][1:])


def test_sampled_controller_as_control_gives_the_commands() -> None:
    control = bc.Sampled(lambda t, q, v, x, u: {"slide": hold(t, q, v, x, u)["force"]}, every=5e-3)
    s = bc.system(cart_pole(), control=control)
    run = bc.simulate(s, 0.06, {"hinge": 0.1}, step=H)
    np.testing.assert_array_equal(run.q[1:], pushed([PLAIN], 60)[:, :2])
    assert "sampled every 0.005 s" in str(s)
    np.testing.assert_array_equal(run["slide.tau"], run["slide.held"])
    assert len(np.unique(run["slide.held"])) == 1 + 12  # the initial value and twelve samples


def test_in_the_real_time_drive() -> None:
    control = bc.Sampled(
        lambda t, q, v, x, u: ({"slide": u["push"]}, {"n": x["n"] + 1.0}), every=5e-3, states={"n": 0.0}
    )
    s = bc.system(cart_pole(), control=control, inputs={"push": 0.5})
    drive = bc.Drive(s, rate=1000.0)
    with drive:
        while drive.snapshot().n < 53:
            pass
    record = drive.record()
    counted = record["n"]
    np.testing.assert_array_equal(counted, np.ceil(np.round(record.t / H) / 5.0)[: len(counted)])
    assert (record["slide.held"][1:] == 0.5).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: bc.Sampled(1.0, 0.1), "not a function"),
        (lambda: bc.Sampled(hold, 0.0), "every is 0.0"),
        (lambda: bc.Sampled(hold, 0.1, delay=-1.0), "delay is -1.0"),
        (lambda: bc.Sampled(hold, 0.1, quantum=0.0), "quantum is 0.0"),
        (lambda: bc.Sampled(hold, 0.1, outputs=["force"]), "expected a mapping"),
        (lambda: bc.system(cart_pole(), sampled=[hold]), "not a Sampled controller"),
        (lambda: bc.system(cart_pole(), control=bc.Sampled(hold, 0.1, {"force": 0.0})), "has outputs of its own"),
        (lambda: bc.system(cart_pole(), control=bc.Sampled(hold, 0.1), states={"a": 0.0}), "to the controller"),
        (lambda: pushed([PLAIN | {"every": 1.5e-3}], 3), "1.5 times the step"),
        (lambda: pushed([PLAIN | {"delay": 0.4e-3}], 3), "delay of the sampled controller hold"),
        (lambda: pushed([PLAIN | {"states": {"a": 0.0}}], 3), "expected the pair"),
        (lambda: pushed([PLAIN | {"outputs": {"force": 0.0, "b": 0.0}, "states": {"b": 0.0}}], 3), "pair"),
        (lambda: pushed([PLAIN], 3, integrator="dopri5", tolerance=1e-6), "fixed steps"),
        (lambda: pushed([PLAIN], 3, events=[bc.Event("x", lambda t, q, v, x, u: q["slide"])]), "without events"),
        (lambda: pushed([PLAIN], 3, sensitivities=["hinge.q"]), "do not support sampled controllers"),
        (lambda: bc.Drive(bc.system(cart_pole(), control=bc.Sampled(hold, 1.5e-3))), "times the step|expected"),
    ],
)
def test_invalid_samples_raise(make: Any, says: str) -> None:
    with pytest.raises(bc.BellcrankError, match=says):
        make()
