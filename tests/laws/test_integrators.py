"""Every integrator has its stated order: of the result, of the error estimate, and of the dense output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank.graph import trace
from bellcrank.integrate import INTEGRATORS, Integrator, Problem, State, Step, integrator, interpolate
from motions import MOTIONS, PUSHED, SPRING, Motion, distance, drive, slope

every_method = pytest.mark.parametrize("method", INTEGRATORS.values(), ids=INTEGRATORS)
every_motion = pytest.mark.parametrize("motion", MOTIONS.values(), ids=MOTIONS)
DENSE_ORDER = {
    "euler": 1, "rk4": 3, "rkf45": 4, "dopri5": 4, "abm2": 2, "abm4": 4, "adams": 4, "rodas4": 3, "midpoint": 2,
}  # fmt: skip
ERROR_ORDER = {"rkf45": 5, "dopri5": 5, "abm2": 3, "abm4": 5, "adams": 6, "rodas4": 4}


def sizes(method: Integrator) -> list[float]:
    """Return step sizes up to 1.0, small enough to show the order and large enough to avoid rounding."""
    fifth = (16, 32, 64, 128) if method.name == "adams" else (8, 16, 32, 64)
    return [1 / n for n in (fifth if method.order == 5 else (32, 64, 128, 256))]


@every_motion
@every_method
def test_order(method: Integrator, motion: Motion) -> None:
    h = sizes(method)
    error = [distance(drive(method, motion.problem, motion.start, x, round(2 / x))[-1].y, motion.exact(2.0)) for x in h]
    assert abs(slope(h, error) - method.order) < 0.15, error


@every_motion
@every_method
def test_order_between_steps(method: Integrator, motion: Motion) -> None:
    """From an exact state, y(t + s h) has an error of h^(order + 1)."""
    h, error = [0.1, 0.05, 0.025], []
    for x in h:
        (step,) = drive(method, motion.problem, motion.start, x, 1)
        assert distance(interpolate(step.dense, 0.0), motion.start) == 0.0
        assert distance(interpolate(step.dense, 1.0), step.y) < 1e-14
        error.append(max(distance(interpolate(step.dense, s), motion.exact(s * x)) for s in np.linspace(0, 1, 21)))
    assert abs(slope(h, error) - (DENSE_ORDER[method.name] + 1)) < 0.2, error


@every_motion
@pytest.mark.parametrize("name", ERROR_ORDER)
def test_order_of_the_error_estimate(name: str, motion: Motion) -> None:
    h, estimate = [1 / 64, 1 / 128, 1 / 256], []
    for x in h:
        last = drive(integrator(name), motion.problem, motion.start, x, round(1 / x))[-1]
        assert last.error is not None
        estimate.append(float(np.abs(last.error).max()))
    assert abs(slope(h, estimate) - ERROR_ORDER[name]) < 0.15, estimate


def test_the_estimate_of_fehlberg_is_the_error() -> None:
    (step,) = drive(integrator("rkf45"), SPRING.problem, SPRING.start, 0.02, 1)
    assert step.error is not None
    assert distance(step.error, list(np.subtract(step.y, SPRING.exact(0.02)))) < 0.02 * max(map(abs, step.error))


def cubic(rates: list[State], h: float) -> State:
    """Return Nordsieck's array of the cubic through the rates at t, t - h, t - 2h, t - 3h."""
    powers = np.array([[(k + 1) * (-float(i)) ** k for k in range(4)] for i in range(4)])
    return [float(x) for row in h * np.linalg.solve(powers, np.array(rates)) for x in row]


def test_milnes_estimate_is_the_error() -> None:
    """With an exact past, Milne's device gives the corrector's error."""
    t, h = 1.0, 0.01
    past = [PUSHED.problem.f(t - i * h, PUSHED.exact(t - i * h)) for i in range(4)]
    step = integrator("abm4").step(PUSHED.problem, t, PUSHED.exact(t), h, cubic(past, h))
    assert step.error is not None
    off = list(np.subtract(PUSHED.exact(t + h), step.y))
    assert distance(step.error, off) < 0.05 * max(map(abs, off))


@every_motion
def test_nordsieck_is_the_classical_predictor_corrector(motion: Motion) -> None:
    """AB4-AM4, PECE, from the same four rates gives the same numbers for 200 steps."""
    abm4, problem, h = integrator("abm4"), motion.problem, 0.01
    t, y = 0.5, motion.exact(0.5)
    rates = [problem.f(t - i * h, motion.exact(t - i * h)) for i in range(4)]
    memory = cubic(rates, h)
    ours, past = y, [np.array(r) for r in rates]
    for i in range(200):
        step = abm4.step(problem, t + i * h, ours, h, memory)
        ours, memory = step.y, step.memory
        p = y + h / 24 * (55 * past[0] - 59 * past[1] + 37 * past[2] - 9 * past[3])
        after = t + i * h + h
        corrected = y + h / 24 * (9 * np.array(problem.f(after, list(p))) + 19 * past[0] - 5 * past[1] + past[2])
        y = problem.project(list(corrected))
        past = [np.array(problem.f(after, y)), *past[:3]]
        assert distance(ours, y) < 1e-13 * (i + 1)


def test_nordsieck_survives_changes_of_the_step() -> None:
    """The order stays 4 while the step is repeatedly halved and doubled."""
    abm4, h, error = integrator("abm4"), [1 / 32, 1 / 64, 1 / 128, 1 / 256], []
    for x in h:
        t, y, size, n = 0.0, PUSHED.start, x, 0
        memory = abm4.begin(PUSHED.problem, t, y, size)
        while t < 2.0 - 1e-9:
            step = abm4.step(PUSHED.problem, t, y, size, memory)
            t, y, memory, n = t + size, step.y, step.memory, n + 1
            if n % 8 in (0, 4):  # four of x, then four of x/2
                ratio = 0.5 if n % 8 == 4 else 2.0
                memory, size = abm4.rescale(PUSHED.problem, memory, ratio), size * ratio
        error.append(distance(y, PUSHED.exact(t)))
    assert abs(slope(h, error) - 4) < 0.3, error


def results(step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {"y": step.y, "memory": step.memory, "dense": step.dense}
    return found if step.error is None else found | {"error": step.error}


@every_motion
@every_method
def test_a_traced_step_is_the_step(method: Integrator, motion: Motion) -> None:
    """Begin, one step, a change of the step size and the next step agree as a graph and on floats."""

    def two(t: Any, h: Any, y: Any) -> dict[str, Any]:
        first = method.step(motion.problem, t, list(y), h, method.begin(motion.problem, t, list(y), h))
        memory = method.rescale(motion.problem, first.memory, 0.7)
        assert len(memory) == method.memory(motion.problem)
        return results(method.step(motion.problem, t + h, first.y, 0.7 * h, memory))

    y = motion.exact(0.3)
    floats = {k: np.array(x, float) for k, x in two(0.3, 0.05, y).items()}
    graph = trace("two", two, {"t": (), "h": (), "y": (len(y),)})
    for name, value in graph.evaluate(t=0.3, h=0.05, y=y).items():
        assert np.abs(value - floats[name]).max(initial=0.0) < 1e-13, name
    batch = graph.evaluate(t=np.full(3, 0.3), h=np.array([0.05, 0.02, 0.01]), y=np.array([y] * 3))["y"]
    assert np.abs(batch[0] - floats["y"]).max() < 1e-13
    arrays = two(0.3, np.array([0.05, 0.02, 0.01]), [np.full(3, x) for x in y])["y"]
    assert np.abs(np.stack(arrays, axis=-1) - batch).max() < 1e-13


def documented() -> dict[str, list[str]]:
    import bellcrank.integrate

    rows = [line.strip("| ").split("|") for line in (bellcrank.integrate.__doc__ or "").splitlines() if "|" in line]
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in rows[2:]}


@every_method
def test_the_table_in_the_docstring_is_true(method: Integrator) -> None:
    """Counted sines give the evaluations: one per f, and unused evaluations are removed from the graph."""
    from bellcrank.scalar import cos, sin

    problem = Problem(
        lambda t, y: [y[1], -sin(y[0])], 1, 1, 0, lambda t, y: ([[0.0, 1.0], [-cos(y[0]), 0.0]], [0.0, 0.0])
    )

    def sines(*names: str) -> int:
        def step(h: Any, y: Any, memory: Any) -> dict[str, Any]:
            done = results(method.step(problem, 0.0, list(y), h, list(memory)))
            return {name: done[name] for name in names if name in done}

        graph = trace("step", step, {"h": (), "y": (2,), "memory": (method.memory(problem),)})
        return sum(node.op == "sin" for node in graph.nodes)

    order, f, error, dfdy, dense, *_ = documented()[method.name]
    assert int(order) == method.order
    assert int(f) == sines("y", "memory", "error")
    assert (error == "yes") == method.adaptive
    assert (dfdy == "yes") == method.stiff
    assert int(dense) == DENSE_ORDER[method.name]
    if method.name == "rkf45":
        assert sines("y") == 5
