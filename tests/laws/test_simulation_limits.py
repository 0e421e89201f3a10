"""Runs that would not end: the number of steps is limited, the stop states time and cause, and no row is lost."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import progress
from bellcrank.sim.settings import MOST_TRIES, MOST_TRIES_PER_SECOND, make_plan


def brake(damping: float = 1e6) -> bc.Mechanism:
    """A strongly damped pendulum: it settles within a microsecond, and then moves very slowly."""
    b = bc.Builder("brake")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=damping)
    return b.build()


def ball() -> bc.Mechanism:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


STUCK = bc.Event(
    "stuck", lambda t, q, v, x, u: q["z"], "switch", -1, lambda t, q, v, x, u: {"q": {"z": 1e-4}, "v": {"z": -1.0}}
)


@pytest.mark.parametrize("name", ["dopri5", "rkf45"])
def test_stiff_run_warns(name: str) -> None:
    run = bc.simulate(brake(), 10.0, q0=[[1.0], [0.5], [2.0]], integrator=name, every=1e-4, max_steps=2000)
    for lane, stop in enumerate(run.stops):
        assert stop.reason == "too many steps"
        assert 0.0 < stop.time < 0.1
        for words in ("after 2000 steps", f"{stop.time:.6g} s of 10 s", "the step is", "stiff", "rodas4", "max_steps"):
            assert words in stop.message
        assert np.isfinite(run.t[lane]).sum() == int(stop.time / 1e-4) + 1  # all rows until then
    assert run.provenance["tried"] == 3 * 2000
    better = bc.simulate(brake(), 10.0, q0=[1.0], integrator="rodas4")
    assert better.stops[0].reason == "end"
    assert better.provenance["tried"] < 200


def test_non_stiff_run_gives_no_warning() -> None:
    (stop,) = bc.simulate(bc.zoo.chain(2), 100.0, [0.5, 0.1], integrator="dopri5", tolerance=1e-10, max_steps=100).stops
    assert stop.reason == "too many steps"
    assert "stiff" not in stop.message
    assert "max_steps" in stop.message


@pytest.mark.parametrize("how", [{"step": 0.01}, {"integrator": "dopri5"}, {"step": 0.01, "integrator": "abm4"}])
@pytest.mark.parametrize("keep", ["rows", "final"])
def test_events_without_end(how: dict[str, Any], keep: str) -> None:
    run = bc.simulate(ball(), 5.0, q0=[[0.5], [1.0]], events=[STUCK], max_steps=600, keep=keep, **how)
    assert [s.reason for s in run.stops] == ["too many steps"] * 2
    falls = [np.sqrt(2 * h / 9.81) for h in (0.5, 1.0)]
    assert all(fall < s.time < fall + 0.1 for fall, s in zip(falls, run.stops, strict=True))
    if "integrator" not in how:
        assert "events" in run.stops[0].message
    assert run.final["t"][0] <= run.stops[0].time + 1e-12


@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_loops_have_the_limit_in_every_form(form: str) -> None:
    m = bc.zoo.four_bar()
    q0, v0 = m.assemble(m.neutral(), {m.columns[1][0]: 5.0})
    run = bc.simulate(m, 5.0, q0=q0, v0=v0, integrator="dopri5", form=form, max_steps=40)
    assert run.stops[0].reason == "too many steps"
    assert run.provenance["tried"] == 40


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    free, tight = (
        bc.simulate(bc.zoo.chain(2), 1.0, q0=[0.5, 0.1], integrator="dopri5", max_steps=most) for most in (None, 10_000)
    )
    np.testing.assert_array_equal(free.q, tight.q)
    exact = bc.simulate(bc.zoo.chain(2), 1.0, q0=[0.5, 0.1], integrator="dopri5", max_steps=free.provenance["tried"])
    assert exact.stops[0].reason == "end"


def test_the_limit_grows_with_the_run() -> None:
    sim = bc.Simulator(brake(), "dopri5")
    plan = make_plan(100.0, sim.integrator, 0, sim.solver, sim.saving, sim.where)
    assert plan.max_steps == MOST_TRIES + 100 * MOST_TRIES_PER_SECOND
    many = make_plan(1.0, sim.integrator, 1, bc.Solver(step=2e-8), sim.saving, sim.where)
    assert many.max_steps > many.steps == 50_000_000
    with pytest.raises(bc.InputError, match=r"max_steps is 5.*fixed"):
        bc.simulate(brake(1.0), 1.0, max_steps=5)
    with pytest.raises(bc.InputError, match="max_steps is 0; expected a whole number from 1"):
        bc.simulate(brake(), 1.0, integrator="dopri5", max_steps=0)


def test_the_bar_shows_the_time_and_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "DISPLAY_DELAY_SECONDS", -1.0)
    monkeypatch.setattr(progress, "BAR_INTERVAL_SECONDS", -1.0)
    bc.simulate(brake(), 10.0, q0=[1.0], integrator="dopri5", max_steps=3000)
    assert " s, step " in screen.getvalue()
    assert "e-06 s" in screen.getvalue()
