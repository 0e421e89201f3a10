"""bc.gradient: its results, and its messages for wrong arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError, TraceError

CHAIN = bc.zoo.load("chain(2)")
PLANT = bc.system(CHAIN, control=lambda t, q, v, x, u: [u["a"], -u["a"]], inputs=["a"])
END = CHAIN.columns[0][0] + ".q"


def test_gradient_shapes_equal_input_shapes() -> None:
    found = bc.gradient(PLANT, 0.01, np.zeros((3, 2, 2)), final=END, inputs={"a": np.zeros(5)}, input_step=0.002)
    assert found.value.shape == (3, 2)
    assert found.inputs["a"].shape == (3, 2, 5)
    assert (found.q0.shape, found.v0.shape, found.x0.shape) == ((3, 2, 2), (3, 2, 2), (3, 2, 0))
    one = bc.gradient(PLANT, 0.01, final=END, inputs={"a": 1.0})
    assert one.value.shape == one.inputs["a"].shape == ()
    assert "1 inputs" in repr(one)


def test_a_gradient_that_is_known_by_heart() -> None:
    """The gradient of a pushed mass by Euler's steps equals the values derived by hand.

    The end velocity depends equally on every push, the end position more on earlier ones.
    """
    b = bc.Builder("mass", gravity=(0, 0, 0))
    b.body("cart", mass=2.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("rail", "prismatic", "ground", "cart", axis=(1, 0, 0))
    plant = bc.system(b.build(), control=lambda t, q, v, x, u: u, inputs=["f"])
    given: dict[str, Any] = {"inputs": {"f": np.ones(4)}, "input_step": 0.1, "step": 0.1, "integrator": "euler"}
    speed = bc.gradient(plant, 0.4, final="rail.v", **given)
    place = bc.gradient(plant, 0.4, final="rail.q", **given)
    energy = bc.gradient(plant, 0.4, running=lambda t, q, v, x, u: u["f"] * u["f"], **given)
    np.testing.assert_allclose(speed.inputs["f"], 0.05, rtol=1e-14)
    np.testing.assert_allclose(place.inputs["f"], [0.02, 0.015, 0.01, 0.005], rtol=1e-14)
    np.testing.assert_allclose(energy.inputs["f"], 0.2, rtol=1e-14)
    assert place.v0[0] == pytest.approx(0.4)
    assert place.q0[0] == pytest.approx(1.0)
    assert energy.value == pytest.approx(0.4)


def test_settings_are_those_of_a_simulation() -> None:
    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [-2.0 * a for a in q]

    how = bc.Solver("euler", step=0.005, resolve=0.0)
    found = bc.gradient(CHAIN, 0.05, [0.1, 0.2], final=END, control=control, solver=how, where=bc.Where(threads=2))
    run = bc.simulate(CHAIN, 0.05, [0.1, 0.2], control=control, solver=how)
    assert found.value == pytest.approx(run[END][-1], rel=1e-12)


def test_output_may_have_an_internal_name() -> None:
    plant = bc.system(PLANT.mechanism, outputs={"running": lambda t, q, v, x, u: q[0], "final": lambda *_: 0.0})
    found = bc.gradient(plant, 0.01, [0.3, 0.0], running=lambda t, q, v, x, u: 2.0, final="running")
    assert found.value == pytest.approx(0.3 + 0.02, abs=1e-3)


def test_a_run_that_runs_away_has_no_gradient() -> None:
    b = bc.Builder("mass", gravity=(0, 0, 0))
    b.body("cart", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("rail", "prismatic", "ground", "cart", axis=(1, 0, 0))
    plant = bc.system(b.build(), control=lambda t, q, v, x, u: [u["k"] * v[0] * v[0] * v[0]], inputs=["k"])
    with pytest.warns(RuntimeWarning, match="run 1 of 3 diverged"):
        found = bc.gradient(plant, 1.0, v0=[2.0], final="rail.q", inputs={"k": np.array([0.0, 5.0, -1.0])})
    assert np.isfinite(found.value).tolist() == [True, False, True]
    for x in (found.inputs["k"], found.q0[:, 0], found.v0[:, 0]):
        assert np.isfinite(x).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "give running=..., final=..."),
        ({"final": "elbow.z"}, 'There is no column "elbow.z"'),
        ({"running": 3.0}, "running is 3.0; expected a function of (t, q, v, x, u), or the name of a column"),
        ({"final": lambda q: q}, "expected 5 arguments"),
        ({"final": END, "tolerance": 1e-6, "integrator": "dopri5"}, "needs fixed steps, and dopri5"),
        ({"final": END, "integrator": "rkf45"}, "give step=... and no tolerance"),
        ({"final": END, "tolerance": 1e-6}, "does not estimate its error"),
        ({"final": END, "events": [bc.Event("e", lambda *_: 1.0)]}, "events: a run with events has no gradient"),
        ({"final": END, "checkpoints": 0}, "checkpoints is 0; expected a whole number"),
        ({"final": END, "inputs": {"b": 1.0}}, 'There is no input "b"'),
        ({"final": END, "step": 0.003}, "expected a whole number"),
        ({"final": END, "inputs": {"a": [1.0, 2.0]}, "input_step": 1e-4}, "shorter than the step"),
        ({"final": END, "parameters": {"m": 1.0}}, '"m"'),
        ({"final": END, "dtype": "float32"}, 'goes with target="cuda"'),
    ],
)  # fmt: skip
def test_bad_input(settings: dict[str, Any], words: str) -> None:
    with pytest.raises((InputError, TraceError)) as caught:
        bc.gradient(PLANT, 0.01, **{"inputs": {"a": 0.0}, **settings})
    assert words in str(caught.value)
