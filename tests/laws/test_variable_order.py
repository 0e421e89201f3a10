"""Adams' method of variable order: each order is the classical formula, and the order follows the motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.integrate import Problem, State, integrator
from bellcrank.scalar import cos, where
from motions import PUSHED, SPRING, Motion, distance, drive

ADAMS, HIGHEST = integrator("adams"), 5
# Coefficients of f_n, f_n-1, ... (Bashforth) and of f_n+1, f_n, ... (Moulton), by order.
BASHFORTH = {
    1: [1.0], 2: np.array([3, -1]) / 2, 3: np.array([23, -16, 5]) / 12, 4: np.array([55, -59, 37, -9]) / 24,
    5: np.array([1901, -2774, 2616, -1274, 251]) / 720,
}  # fmt: skip
MOULTON = {
    1: [1.0], 2: np.array([1, 1]) / 2, 3: np.array([5, 8, -1]) / 12, 4: np.array([9, 19, -5, 1]) / 24,
    5: np.array([251, 646, -264, 106, -19]) / 720,
}  # fmt: skip


def polynomial(rates: Any, h: float) -> Any:
    """Return z_1, z_2, ... of the polynomial through the rates at t, t - h, ..."""
    k = len(rates)
    powers = np.array([[(j + 1) * (-float(i)) ** j for j in range(k)] for i in range(k)])
    return h * np.linalg.solve(powers, np.array(rates))


def memory_of(z: Any, difference: Any, order: int, steps: float) -> State:
    rows = [*np.asarray(z), *np.zeros((HIGHEST - len(z), len(difference)))]
    return [float(x) for row in (*rows, difference) for x in row] + [float(order), steps]


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("k", MOULTON)
@pytest.mark.parametrize("motion", [SPRING, PUSHED], ids=["spring", "pushed"])
def test_each_order_is_the_classical_predictor_corrector(motion: Motion, k: int, steady: bool) -> None:
    """From exact rates: the same y, an error near the estimate, and the polynomial of the next order."""
    t, h = 0.7, 0.05
    rates = [np.array(motion.problem.f(t - i * h, motion.exact(t - i * h))) for i in range(k + 1)]
    z = polynomial(rates[:k], h)
    difference = h * rates[0] - sum((j + 1) * row for j, row in enumerate(polynomial(rates[1:], h)))
    step = ADAMS.step(motion.problem, t, motion.exact(t), h, memory_of(z, difference, k, 9.0 if steady else 0.0))
    y = np.array(motion.exact(t))
    predicted = y + h * sum(c * f for c, f in zip(BASHFORTH[k], rates, strict=False))
    after = [np.array(motion.problem.f(t + h, predicted.tolist())), *rates]
    corrected = y + h * sum(c * f for c, f in zip(MOULTON[k], after, strict=False))
    assert distance(step.y, corrected.tolist()) < 1e-14
    off = np.array(motion.exact(t + h)) - step.y
    assert step.error is not None
    assert np.abs(np.array(step.error) - off).max() < 0.5 * np.abs(off).max()
    *_, order, steps = step.memory
    assert order in ((k, k + 1) if steady else (k, k - 1))
    assert k in (1, HIGHEST) or order == (k + 1 if steady else k)  # smooth: the highest order that is known is best
    assert steps == (0.0 if order != k else 10.0 if steady else 1.0)
    n = len(y)
    new = np.array(step.memory[: HIGHEST * n]).reshape(HIGHEST, n)
    past = [np.array(motion.problem.f(t + h, step.y)), *rates]
    for i in range(int(order)):
        rate = sum((j + 1) * row * (-float(i)) ** j for j, row in enumerate(new))
        assert np.abs(rate - h * past[i]).max() < 1e-13
    assert not new[int(order) :].any()
    assert step.power == k + 1


def orders(problem: Problem, start: State, h: float, steps: int, memory: State) -> list[int]:
    y, found = start, []
    for i in range(steps):
        step = ADAMS.step(problem, i * h, y, h, memory)
        y, memory = step.y, step.memory
        found.append(round(memory[-2]))
    return found


def test_the_order_rises_on_a_smooth_motion() -> None:
    rate = [0.02 * x for x in SPRING.problem.f(0.0, SPRING.start)]
    found = orders(SPRING.problem, SPRING.start, 0.02, 40, memory_of([rate], [0.0, 0.0], 1, 0.0))
    assert found[-1] == HIGHEST
    assert set(np.diff(found)) == {0, 1}
    assert set(found) == {1, 2, 3, 4, 5}


def test_the_order_falls_at_a_jump_and_rises_again() -> None:
    """A rate that jumps at t = 1 has no differences that decrease there."""
    jump = Problem(lambda t, y: [where(t < 1.0, cos(3.0 * t), 5.0 + cos(3.0 * t))], 0, 0, 1)
    h = 1 / 32
    found = orders(jump, [0.0], h, 96, ADAMS.begin(jump, 0.0, [0.0], h))
    assert set(found[:30]) == {HIGHEST}
    assert min(found[30:50]) <= 3
    assert found[-1] == HIGHEST


def test_variable_order_needs_fewer_steps_than_order_four() -> None:
    how: dict[str, Any] = {"q0": [2.0], "every": 0.5}
    exact = bc.simulate(bc.zoo.pendulum(), 2.0, integrator="dopri5", tolerance=1e-13, **how).q
    runs = {
        name: bc.simulate(bc.zoo.pendulum(), 2.0, integrator=name, tolerance=1e-9, **how) for name in ("abm4", "adams")
    }
    errors = {name: np.abs(run.q - exact).max() for name, run in runs.items()}
    assert runs["adams"].provenance["steps"] < 0.75 * runs["abm4"].provenance["steps"]
    assert errors["adams"] < 2.0 * errors["abm4"]


def test_a_driven_step_is_one_of_the_highest_order() -> None:
    (step,) = drive(ADAMS, PUSHED.problem, PUSHED.start, 0.05, 1)
    assert step.memory[-2:] == [5.0, 1.0]
