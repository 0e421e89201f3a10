"""Optimal motions by the gradients of runs: an arm reaches a target, a pendulum swings up with a weak motor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bellcrank as bc

Array = np.ndarray[Any, Any]
KEPT = 12  # pairs of step and gradient change


def least(cost: Callable[[Array], tuple[float, Array]], x: Array, rounds: int) -> tuple[float, Array, Array]:
    """Minimise the cost near x by L-BFGS (Nocedal 1980); return the least cost, its gradient and its point.

    Steps are halved until the cost falls sufficiently.
    """
    value, g = cost(x)
    pairs: list[tuple[Array, Array]] = []
    for _ in range(rounds):
        d, again = -g, []
        for s, y in reversed(pairs):
            again.append((s @ d) / (s @ y))
            d = d - again[-1] * y
        if pairs:
            s, y = pairs[-1]
            d = d * (s @ y) / (y @ y)
        for (s, y), a in zip(pairs, reversed(again), strict=True):
            d = d + (a - (y @ d) / (s @ y)) * s
        length = 1.0 if pairs else 1.0 / np.abs(g).max()
        while (found := cost(x + length * d))[0] > value + 1e-4 * length * (g @ d) and length > 1e-12:
            length *= 0.5
        if length <= 1e-12:
            break
        move, change = length * d, found[1] - g
        x, value, g = x + move, *found
        if move @ change > 0.0:
            pairs = [*pairs, (move, change)][-KEPT:]
    return value, g, x


def test_an_arm_reaches_with_little_effort() -> None:
    """Six joints with fifty torques each, so 300 numbers; a run without the adjoint confirms the target."""
    arm, goal = bc.zoo.puma600(), np.array([0.6, -0.4, 0.5, 0.3, -0.3, 0.2])
    names = [f"tau{k}" for k in range(6)]
    plant = bc.system(arm, control=lambda t, q, v, x, u: u, inputs=names)

    def missed(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return 1e3 * sum((a - b) * (a - b) for a, b in zip(q, goal, strict=True)) + 1e2 * sum(w * w for w in v)

    usual = np.array([30.0, 60.0, 30.0, 1.0, 1.0, 1.0])  # N m
    scale = usual[:, None]
    adjoint = bc.Adjoint(plant, lambda t, q, v, x, u: sum((u / usual) ** 2), missed)

    def given(x: Array) -> dict[str, Any]:
        torques = dict(zip(names, scale * x.reshape(6, 50), strict=True))
        return {"inputs": torques, "input_step": 0.01, "step": 0.01}

    def cost(x: Array) -> tuple[float, Array]:
        found = adjoint.run(0.5, **given(x))
        return float(found.value), np.concatenate(scale * np.array([found.inputs[name] for name in names]))

    start, slope = cost(np.zeros(300))
    value, g, x = least(cost, np.zeros(300), 1000)
    assert np.abs(g).max() < 1e-4 * np.abs(slope).max()
    assert value < 0.2 * start
    run = bc.simulate(plant, 0.5, **given(x))
    np.testing.assert_allclose(run.q[-1], goal, atol=0.02)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=0.2)


def test_a_pendulum_swings_up() -> None:
    """The torque is too weak to lift it directly, so it must swing to and fro."""
    b = bc.Builder("pendulum")
    b.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.09, 0.09, 0.01))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0))
    most = 0.5 * 9.81 * 0.5
    plant = bc.system(b.build(), control=lambda t, q, v, x, u: [most * bc.tanh(u["push"])], inputs=["push"])
    high = bc.Adjoint(
        plant,
        lambda t, q, v, x, u: 0.01 * u["push"] * u["push"],
        lambda t, q, v, x, u: 10.0 * (1.0 + bc.cos(q[0])) + v[0] * v[0],
    )
    how: dict[str, Any] = {"input_step": 0.05, "step": 0.01}

    def cost(x: Array) -> tuple[float, Array]:
        found = high.run(4.0, inputs={"push": x}, **how)
        return float(found.value), found.inputs["push"]

    _, _, push = least(cost, 0.5 * np.sin(4.4 * 0.05 * np.arange(80)), 400)
    run = bc.simulate(plant, 4.0, inputs={"push": push}, **how)
    assert np.cos(run.q[-1, 0]) < -0.98
    assert abs(run.v[-1, 0]) < 0.3
    assert np.abs(run["hinge.tau"]).max() <= most
