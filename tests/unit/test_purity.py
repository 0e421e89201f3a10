"""Impure functions are refused when they are traced: random numbers, clocks, counters."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph import user_code

COUNTER = itertools.count()
GENERATOR = np.random.default_rng(0)


class Remembering:
    """A number that grows with every call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.calls * x


IMPURE: dict[str, Callable[[Any], Any]] = {
    "random": lambda x: x * random.random(),
    "numpy": lambda x: x + np.random.rand(),
    "generator": lambda x: np.where(True, x, 0.0) * GENERATOR.normal(),
    "clock": lambda x: x - time.time(),
    "counter": lambda x: x * next(COUNTER),
    "structure": lambda x: x if next(COUNTER) % 2 else bc.sin(x),
    "object": Remembering(),
    "constant": lambda x: 0.0 * x + random.random(),
}
PURE: dict[str, Callable[[Any], Any]] = {
    "seeded": lambda x: x * np.random.default_rng(3).normal(),
    "made anew": lambda x: bc.compile(lambda a: a * a + bc.sin(a), inputs={"a": ()})(x),
    "branches": lambda x: bc.where(x > 0.0, x, -x),
}


def plant(**more: Any) -> bc.System:
    b = bc.Builder("pendulum", gravity=(0, 0, -9.81))
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    b.frame("end", "bob", point=(0, 0, -1))
    return bc.system(b.build(), **more)


def uses(f: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    """Return every way to trace a user function."""

    def pulled(t: Any, pose: Any, velocity: Any) -> Any:
        return [f(velocity[0]), 0.0, 0.0], [0.0, 0.0, 0.0]

    return {
        "bc.compile": lambda: bc.compile(lambda x: f(x), inputs={"x": ()}),
        "control": lambda: bc.simulate(plant(control=lambda t, q, v, x, u: [f(q[0])]), 0.01),
        "output": lambda: bc.simulate(plant(outputs={"a": lambda t, q, v, x, u: f(q[0])}), 0.01),
        "force": lambda: bc.simulate(plant(forces={"end": pulled}), 0.01),
        "event": lambda: bc.simulate(plant(), 0.01, events=[bc.Event("e", lambda t, q, v, x, u: f(q[0]) + 9.0)]),
        "reward": lambda: bc.stepper(plant(), 2, 0.01, reward=lambda t, q, v, x, u: f(q[0])),
        "linearize": lambda: bc.linearize(plant(outputs={"a": lambda t, q, v, x, u: f(q[0])})),
    }


@pytest.mark.parametrize("use", uses(abs))
def test_impure_functions_are_rejected_in_every_trace(use: str) -> None:
    for f in (IMPURE["random"], IMPURE["counter"]):
        with pytest.raises(
            bc.TraceError, match=r"(?s)test_purity\.py, line \d+\) returns a different result each time"
        ):
            uses(f)[use]()


@pytest.mark.parametrize("name", IMPURE)
def test_every_way_to_change_is_seen(name: str) -> None:
    with pytest.raises(
        bc.TraceError, match=r"returns a different result each time it is called: .*, then .*bellcrank\.p"
    ):
        bc.compile(IMPURE[name], inputs={"x": ()})


@pytest.mark.parametrize("name", PURE)
def test_pure_functions_are_compiled(name: str) -> None:
    x = 0.3
    found, expected = bc.compile(PURE[name], inputs={"x": ()})(x), PURE[name](x)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_function_that_writes_into_its_arguments_is_called_with_copies() -> None:
    def doubled(x: Any) -> Any:
        x[0] = 2.0 * x[0]
        return x

    assert bc.compile(doubled, inputs={"x": 2})([1.0, 5.0]).tolist() == [2.0, 5.0]


def test_random_starts_are_drawn_in_every_run() -> None:
    """Each run of a stepper draws its own random start, and the purity check accepts this."""
    env = bc.stepper(plant(), 50, 0.01, start=lambda r: {"hinge.q": r.normal(), "hinge.v": r.uniform()})
    assert len(np.unique(env.state[:, 0])) == 50


def test_slow_functions_are_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "MAX_CHECKED_SECONDS", 0.0)
    counting = Remembering()
    bc.compile(counting, inputs={"x": ()})
    assert counting.calls == 1
