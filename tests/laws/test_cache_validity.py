"""Cached results are not reused for a plant whose functions have changed.

Changes are a global that a control reads, a list in its closure, an attribute of an object, a method that was
registered again, and a threshold of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.dynamics import crba
from bellcrank.sim.linear.linearisation import graph_cache_key

GAIN = 2.0


class Law:
    def __init__(self) -> None:
        self.gain = 2.0

    def __call__(self, t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"hinge": -self.gain * q[0]}


def pendulum() -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.3)
    return b.build()


def by_global() -> tuple[bc.System, Callable[[float], None]]:
    def change(gain: float) -> None:
        global GAIN
        GAIN = gain

    change(2.0)
    return bc.system(pendulum(), control=lambda t, q, v, x, u: {"hinge": -GAIN * q[0]}), change


def by_list() -> tuple[bc.System, Callable[[float], None]]:
    gains = [2.0]
    made = bc.system(pendulum(), control=lambda t, q, v, x, u: {"hinge": -gains[0] * q[0]})
    return made, lambda gain: gains.__setitem__(0, gain)


def by_object() -> tuple[bc.System, Callable[[float], None]]:
    law = Law()
    return bc.system(pendulum(), control=law), lambda gain: setattr(law, "gain", gain)


def by_force() -> tuple[bc.System, Callable[[float], None]]:
    gains = {"turn": 2.0}
    forces = {"bob": lambda t, pose, velocity: ([0.0, 0.0, 0.0], [0.0, -gains["turn"] * pose[0][2], 0.0])}
    return bc.system(pendulum(), forces=forces), lambda gain: gains.update(turn=gain)


PLANTS = (by_global, by_list, by_object, by_force)
ANSWERS: dict[str, Callable[[bc.System], Any]] = {
    "linearize": lambda s: bc.linearize(s, at={"hinge.q": 0.2}).A,
    "linearize a step": lambda s: bc.linearize(s, at={"hinge.q": 0.2}, step=0.01).A,
    "modes": lambda s: np.array([m.frequency for m in bc.linearize(s, at={"hinge.q": 0.0}).modes()]),
    "simulate": lambda s: bc.simulate(s, 0.05, q0=[0.2], step=0.01, progress=False).q,
    "gradient": lambda s: bc.gradient(s, 0.05, q0=[0.2], step=0.01, final=lambda t, q, v, x, u: q[0]).value,
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_that_of_the_functions_now(name: str, plant: Any) -> None:
    answer = ANSWERS[name]
    s, change = plant()
    before = answer(s)
    change(5.0)
    after = answer(s)
    other, change_other = plant()
    change_other(5.0)
    np.testing.assert_array_equal(after, answer(other))
    assert not np.array_equal(after, before)
    change(2.0)
    np.testing.assert_array_equal(answer(s), before)


def test_unchanged_plant_is_prepared_once() -> None:
    from bellcrank.sim.linear.linearisation import prepare

    s, change = by_list()
    first = prepare(s)
    assert prepare(s) is first
    change(3.0)
    assert prepare(s) is not first
    change(2.0)
    assert prepare(s) is first


def test_changed_threshold_or_method_invalidates_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from bellcrank.dynamics.method_table import METHODS
    from bellcrank.registration import _registered

    m = pendulum()
    first = graph_cache_key(m)
    with monkeypatch.context() as patch:
        patch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 7)
        assert graph_cache_key(m) != first
    assert graph_cache_key(m) == first
    try:
        bc.register("method", "heavier", heavier_method())
        assert graph_cache_key(m) != first
    finally:
        METHODS.pop("heavier", None)
        _registered.discard(("method", "heavier"))


def heavier_method() -> Any:
    def mass_matrix(tree: Any, q: Any) -> Any:
        """Return twice the mass matrix."""
        return [[2.0 * x for x in row] for row in crba.mass_matrix(tree, q)]

    return mass_matrix


def test_unidentifiable_inputs_never_share_a_cache_key() -> None:
    def numbers() -> Iterator[float]:
        yield 1.0

    kept = numbers()
    s = bc.system(pendulum(), control=lambda t, q, v, x, u: {"hinge": -1.0 * q[0] if kept else 0.0})
    assert graph_cache_key(s) != graph_cache_key(s)
    assert graph_cache_key(pendulum()) == graph_cache_key(pendulum())
