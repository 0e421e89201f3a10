"""A Python controller called at every sample gives the same run as the traced one, and its cost is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import plant

HOW = {"every": 0.02, "step": 0.005}
BEGIN = {"hinge.q": 0.1}


def push(y: Any) -> Any:
    return 4.0 * y[1] + y[3]


def test_python_callback_equals_a_traced_sample() -> None:
    env = bc.stepper(plant(), **HOW)
    env.reset(start=BEGIN)
    run = env.follow(lambda t, y: {"push": push(y)}, 1.0)

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"slide": 10.0 * (4.0 * q["hinge"] + v["hinge"])}

    m = plant().mechanism
    traced = bc.simulate(
        bc.system(m, control=bc.Sampled(control, every=0.02)), 1.0, {"hinge": 0.1}, step=0.005, every=0.02
    )
    np.testing.assert_allclose(run.y, np.column_stack([traced.q, traced.v]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.t, traced.t, atol=1e-12)
    again = env.follow(lambda t, y: [push(y)], 0.1)  # from the current state
    assert again.t[0] == pytest.approx(1.0)
    np.testing.assert_array_equal(again.y[0], run.y[-1])
    assert min(run.plant, run.python) > 0.0
    assert "50 samples" in repr(run)
    assert "in Python" in repr(run)


def test_ended_run_is_reported() -> None:
    env = bc.stepper(plant(), **HOW, ends=lambda t, q, v, x, u: bc.fabs(q["hinge"]) > 0.2)
    env.reset(start=BEGIN)
    run = env.follow(lambda t, y: [0.0], 5.0)
    assert run.reason == "ended"
    assert abs(run.y[-1, 1]) > 0.2 >= abs(run.y[-2, 1])
    assert len(run.y) == len(run.u) + 1 < 100


def test_bad_input_leaves_the_run_as_it_was() -> None:
    env = bc.stepper(plant(), **HOW)
    env.reset(start=BEGIN)
    for function, why in (
        (3, "not a function"), (lambda t, y: {"pull": 1.0}, "expected push"), (lambda t, y: [np.nan], "finite"),
    ):  # fmt: skip
        with pytest.raises(bc.InputError, match=why):
            env.follow(function, 0.1)
        assert float(env.t) == 0.0
    with pytest.raises(bc.InputError, match="one run"):
        bc.stepper(plant(), 3, **HOW).follow(lambda t, y: [0.0], 0.1)
    with pytest.raises(bc.InputError, match="seconds"):
        env.follow(lambda t, y: [0.0], 0.03)
