"""Adaptive runs, rows between steps, and events, against closed forms and finer runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from motions import elliptic
from trees import close, few, random_tree, trees

G = 9.81
ADAPTIVE = sorted(name for name, i in INTEGRATORS.items() if i.adaptive)
# Errors add up: a tolerance applies to one step; a run of some dozen steps stays within this factor. Measured: 5, 100,
# 70, 140, 25, 2.
ADDS_UP = {"dopri5": 20, "rkf45": 300, "abm2": 400, "abm4": 400, "adams": 400, "rodas4": 10}
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("rk4", {"step": 0.01}),
    ("euler", {"step": 0.001}),
    ("abm4", {"step": 0.01}),
    ("dopri5", {"step": 0.01}),
    ("dopri5", {"tolerance": 1e-9}),
    ("rkf45", {"tolerance": 1e-9}),
    ("abm4", {"tolerance": 1e-9}),
    ("adams", {"tolerance": 1e-9}),
    ("rodas4", {"tolerance": 1e-9}),
    ("midpoint", {"step": 0.01}),
]
SOME = [WAYS[k] for k in (0, 2, 4, 6)]  # fixed and adaptive, with and without memory
every_way = pytest.mark.parametrize(("name", "how"), WAYS, ids=[f"{n}-{next(iter(h))}" for n, h in WAYS])


def balls(n: int = 1) -> Mechanism:
    b = bc.Builder("balls", gravity=(0, 0, -G))
    for i in range(n):
        b.body(f"ball{i}", mass=1.0 + i, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"z{i}", "prismatic", "ground", f"ball{i}", axis=(0, 0, 1))
    return b.build()


def pendulum() -> Mechanism:
    """A mass of 1 kg, one metre below a hinge."""
    b = bc.Builder("pendulum", gravity=(0, 0, -G))
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(1e-12, 1e-12, 1e-12))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    return b.build()


def times(run: bc.Record, name: str = "") -> list[float]:
    return [e["time"] for e in run.provenance["events"] if not name or e["event"] == name]


# -- adaptive runs


@few(4)
@given(trees(max_bodies=3), st.integers(0, 1000), st.sampled_from(ADAPTIVE), st.sampled_from([1e-5, 1e-7]))
def test_a_tolerance_is_kept(m: Mechanism, seed: int, name: str, tolerance: float) -> None:
    """The error is within the tolerance in every row; most rows lie between steps."""
    q, v, _ = m.random(seed)
    exact = bc.simulate(m, 0.3, q, 0.5 * v, integrator="dopri5", tolerance=1e-12, every=0.01)
    run = bc.simulate(m, 0.3, q, 0.5 * v, integrator=name, tolerance=tolerance, every=0.01)
    for a, b in ((run.q, exact.q), (run.v, exact.v)):
        assert (np.abs(a - b) / (1.0 + np.abs(b))).max() < ADDS_UP[name] * tolerance


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_smaller_tolerance_is_a_better_run(name: str) -> None:
    m = random_tree(9, ["revolute"] * 3)
    q, v, _ = m.random(1)
    exact = bc.simulate(m, 1.0, q, v, integrator="dopri5", tolerance=1e-13, every=0.05)
    sim, errors, steps = bc.Simulator(m, name), [], []
    for tolerance in (1e-4, 1e-6, 1e-8):
        run = sim.run(1.0, q, v, tolerance=tolerance, every=0.05)
        errors.append(float(np.abs(run.q - exact.q).max()))
        steps.append(run.provenance["steps"])
    assert errors[0] > 20 * errors[1] > 400 * errors[2]
    assert steps[0] < steps[1] < steps[2]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_rows_do_not_change_the_steps(name: str) -> None:
    """Rows are evaluated from the polynomial of a step: additional rows cost no steps, and common rows are equal."""
    m = random_tree(9, ["revolute"] * 3)
    q, v, _ = m.random(1)
    sim = bc.Simulator(m, name)
    coarse, fine = sim.run(1.0, q, v, every=0.25), sim.run(1.0, q, v, every=0.01)
    assert coarse.provenance["steps"] == fine.provenance["steps"]
    close(coarse.q, fine.q[::25], 1e-13)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_row_for_every_step(name: str) -> None:
    m = random_tree(9, ["revolute"] * 3)
    q, v, _ = m.random(1)
    sim = bc.Simulator(m, name)
    run = sim.run(1.0, q, v, every="step", tolerance=1e-8)
    assert len(run) == run.provenance["steps"] + 1
    assert run.t[0] == 0.0
    assert run.t[-1] == 1.0
    assert (np.diff(run.t) > 0).all()
    grid = sim.run(1.0, q, v, every=1.0, tolerance=1e-8)
    close(run.q[-1], grid.q[-1], 1e-13)


@pytest.mark.parametrize("name", sorted(INTEGRATORS))
def test_rows_at_the_steps_are_the_steps(name: str) -> None:
    """With an event the rows come from the polynomials and equal those of a run without events."""
    m = random_tree(9, ["revolute", "spherical"])
    q, v, _ = m.random(1)
    never = bc.Event("never", lambda t, q, v, x, u: t + 1.0, "record")
    plain = bc.simulate(m, 0.2, q, v, integrator=name, step=0.01, every=0.02)
    watched = bc.simulate(m, 0.2, q, v, integrator=name, step=0.01, every=0.02, events=[never])
    close(watched.q, plain.q, 1e-13)
    close(watched.v, plain.v, 1e-12)
    assert watched.provenance["steps"] == plain.provenance["steps"] == 20


@pytest.mark.parametrize("how", [{"step": 0.01}, {"integrator": "dopri5"}], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("watch", [False, True], ids=["", "watched"])
def test_the_last_row_is_the_end(how: dict[str, Any], watch: bool) -> None:
    """This also holds if the row interval does not divide the duration."""
    events = [bc.Event("never", lambda t, q, v, x, u: t + 1.0, "record")] if watch else []
    for q0 in ([0.3], [[0.3], [0.1]]):
        run = bc.simulate(pendulum(), 1.0, q0, every=0.3, events=events, **how)
        np.testing.assert_allclose(
            np.broadcast_to(run.t, (*run.batch, 5)),
            np.broadcast_to([0, 0.3, 0.6, 0.9, 1.0], (*run.batch, 5)),
            atol=1e-12,
        )
        assert np.isfinite(run.q).all()


def test_more_rows_than_there_was_room_for() -> None:
    """For some thousand steps with a row each, the record grows."""
    run = bc.simulate(pendulum(), 40.0, [2.0], integrator="rkf45", tolerance=1e-9, every="step")
    assert len(run) == run.provenance["steps"] + 1 > 1024
    assert np.abs(run.energy() - run.energy()[0]).max() < 1e-4


# -- events


def bounces(h: float, e: float, seconds: float) -> list[float]:
    """Bounce times of a ball dropped from h that keeps the fraction e of its speed."""
    t, v, found = math.sqrt(2 * h / G), math.sqrt(2 * G * h), []
    while t < seconds:
        found.append(t)
        v *= e
        t += 2 * v / G
    return found


def bounce(i: int = 0, e: float = 0.8) -> bc.Event:
    return bc.Event(
        f"bounce{i}", lambda t, q, v, x, u: q[i], "switch", -1, lambda t, q, v, x, u: {"v": {f"z{i}": -e * v[i]}}
    )


@every_way
def test_bouncing_ball(name: str, how: dict[str, Any]) -> None:
    exact = bounces(1.0, 0.8, 2.0)
    run = bc.simulate(balls(), 2.0, [1.0], integrator=name, events=[bounce()], every=0.01, **how)
    accuracy = 3e-2 if name == "euler" else 1e-5 if name == "abm4" else 1e-8
    assert len(exact) == len(times(run)) == 3
    assert np.abs(np.array(times(run)) - exact).max() < accuracy
    assert run["z0.q"].min() > -accuracy
    # height between two bounces, from the time since the first
    t = run.t[(run.t > exact[1]) & (run.t < exact[2])]
    speed = 0.8**2 * math.sqrt(2 * G)
    height = speed * (t - exact[1]) - G / 2 * (t - exact[1]) ** 2
    assert np.abs(run["z0.q"][(run.t > exact[1]) & (run.t < exact[2])] - height).max() < 20 * accuracy


def test_bounce_shorter_than_a_step_is_detected() -> None:
    """At e = 0.5 the flights become short relative to steps of 0.1 s; the ball stays above the floor in all of them."""
    run = bc.simulate(balls(), 1.3, [1.0], step=0.1, events=[bounce(0, 0.5)])
    exact = bounces(1.0, 0.5, 1.3)
    assert len(exact) == 5
    np.testing.assert_allclose(times(run), exact, atol=1e-9)
    assert run["z0.q"].min() > -1e-9


@every_way
def test_two_events_at_once(name: str, how: dict[str, Any]) -> None:
    """Two equal balls both bounce and stay equal."""
    run = bc.simulate(balls(2), 1.5, [1.0, 1.0], integrator=name, events=[bounce(0), bounce(1)], every=0.05, **how)
    assert len(times(run, "bounce0")) == len(times(run, "bounce1")) == 2
    assert times(run, "bounce0") == times(run, "bounce1")
    np.testing.assert_allclose(run["z0.q"], run["z1.q"], atol=1e-12)


@every_way
def test_two_events_in_one_step(name: str, how: dict[str, Any]) -> None:
    """The second ball is 1 mm higher: about 0.2 ms later."""
    run = bc.simulate(balls(2), 1.0, [1.0, 1.001], integrator=name, events=[bounce(1), bounce(0)], every=0.05, **how)
    accuracy = 3e-3 if name == "euler" else 1e-5 if name == "abm4" else 1e-8
    for i, h in ((0, 1.0), (1, 1.001)):
        np.testing.assert_allclose(times(run, f"bounce{i}"), bounces(h, 0.8, 1.0), atol=accuracy)
    assert times(run) == sorted(times(run))


def test_an_event_at_the_end_of_a_step() -> None:
    """t = 0.3 is the end of a step: no remainder is left, and the run continues with whole steps."""
    for name, how in SOME:
        kick = bc.Event("kick", lambda t, q, v, x, u: t - 0.3, "switch", 0, lambda t, q, v, x, u: {"v": [v[0] + 1.0]})
        run = bc.simulate(balls(), 0.6, [0.0], integrator=name, events=[kick], every=0.1, **how)
        assert np.isfinite(run.q).all()
        assert times(run) == pytest.approx([0.3], abs=1e-9)
        fall = -G / 2 * run.t**2 + np.maximum(run.t - 0.3, 0.0)
        assert np.abs(run["z0.q"] - fall).max() < (1e-2 if name == "euler" else 1e-6)


def quarter(amplitude: float) -> float:
    """Time of a pendulum of 1 m from rest to its lowest point."""
    a, b = 1.0, math.cos(amplitude / 2)
    for _ in range(8):
        a, b = (a + b) / 2, math.sqrt(a * b)
    return math.pi / (2 * a) / math.sqrt(G)


@every_way
def test_a_pendulum_passes_its_lowest_point(name: str, how: dict[str, Any]) -> None:
    T = quarter(1.2)
    events = [bc.Event("down", lambda t, q, v, x, u: q["hinge"], "record", d) for d in (0,)]
    events += [
        bc.Event("back", lambda t, q, v, x, u: q[0], "record", -1),
        bc.Event("forth", lambda t, q, v, x, u: q[0], "record", 1),
    ]
    run = bc.simulate(
        pendulum(),
        6 * T,
        [1.2],
        integrator=name,
        events=events,
        every=6 * T,
        **(how if "step" not in how else {"step": T / 60}),
    )
    accuracy = {"euler": 1e-2, "midpoint": 1e-2}.get(name, 1e-5)
    np.testing.assert_allclose(times(run, "down"), [T, 3 * T, 5 * T], atol=accuracy)
    np.testing.assert_allclose(times(run, "back"), [T, 5 * T], atol=accuracy)
    np.testing.assert_allclose(times(run, "forth"), [3 * T], atol=accuracy)
    for e in run.provenance["events"]:
        assert abs(e["y"][0]) < 1e-9
        assert abs(e["y"][1]) == pytest.approx(2 * math.sqrt(G) * math.sin(0.6), rel=20 * accuracy)


def test_recording_changes_nothing() -> None:
    e = bc.Event("down", lambda t, q, v, x, u: q[0], "record")
    for name, how in SOME:
        a = bc.simulate(pendulum(), 3.0, [1.2], integrator=name, every=0.1, **how)
        b = bc.simulate(pendulum(), 3.0, [1.2], integrator=name, every=0.1, events=[e], **how)
        close(a.q, b.q, 1e-12)
        assert len(times(b)) > 2


@every_way
def test_a_run_stops_at_an_event(name: str, how: dict[str, Any]) -> None:
    """Each lane stops at its own event, which is its last row."""
    floor = bc.Event("floor", lambda t, q, v, x, u: q[0])
    heights = np.array([[0.2], [1.0], [50.0]])
    run = bc.simulate(balls(), 1.0, heights, integrator=name, events=[floor], every=0.1, **how)
    accuracy = 2e-3 if name == "euler" else 1e-6
    assert [s.reason for s in run.stops] == ["event", "event", "end"]
    for k, h in enumerate((0.2, 1.0)):
        assert run.stops[k].time == pytest.approx(math.sqrt(2 * h / G), abs=accuracy)
        assert 'event "floor"' in run.stops[k].message
        rows = run.t[k][np.isfinite(run.t[k])]
        assert rows[-1] == run.stops[k].time
        assert abs(run["z0.q"][k][len(rows) - 1]) < 1e-9
        np.testing.assert_allclose(rows[:-1], np.arange(len(rows) - 1) * 0.1, atol=1e-12)
    assert run["z0.q"][2][-1] == pytest.approx(50.0 - G / 2, abs=10 * accuracy)


def test_an_event_that_is_zero_at_the_start() -> None:
    """A ball thrown from the floor leaves the floor and comes back."""
    for name, how in SOME:
        run = bc.simulate(
            balls(), 2.0, [0.0], [3.0], integrator=name, events=[bc.Event("floor", lambda t, q, v, x, u: q[0])], **how
        )
        assert run.stops[0].reason == "event"
        assert run.stops[0].time == pytest.approx(2 * 3.0 / G, abs=2e-3 if name == "euler" else 1e-5)


def test_falling_from_zero_is_no_event() -> None:
    run = bc.simulate(balls(), 0.5, [0.0], events=[bc.Event("floor", lambda t, q, v, x, u: q[0])])
    assert run.stops[0].reason == "end"


def test_a_switch_can_set_any_part_of_the_state() -> None:
    """A ball is reset to the top by an array, another has a counter among its states."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [0.0], [0.0]

    s = bc.system(balls(), control=control, states={"count": 0.0})

    def top(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"q": [1.0], "v": {"z0": 0.0}, "x": {"count": x["count"] + 1.0}}

    back = bc.Event("back", lambda t, q, v, x, u: q["z0"], "switch", -1, top)
    run = bc.simulate(s, 2.0, [1.0], events=[back], step=0.01)
    T = math.sqrt(2 / G)
    np.testing.assert_allclose(times(run), [T, 2 * T, 3 * T, 4 * T], atol=1e-9)
    assert run.x[-1, 0] == 4.0


def test_an_event_that_jumps() -> None:
    """A function with only two values defeats interpolation, but its jump is located to a thousandth of a step."""
    from bellcrank.scalar import where

    e = bc.Event("jump", lambda t, q, v, x, u: where(q[0] < 0.3, -1.0, 1.0), "stop")
    run = bc.simulate(balls(), 1.0, [1.0], step=0.05, events=[e])
    assert run.stops[0].time == pytest.approx(math.sqrt(2 * 0.7 / G), abs=5e-5)


def test_events_in_a_batch_are_those_of_each_run_alone() -> None:
    sim = bc.Simulator(balls(2), "dopri5", events=[bounce(0), bounce(1)])
    heights = np.random.default_rng(0).uniform(0.2, 2.0, (11, 2))
    batch = sim.run(1.5, heights, every=0.1)
    for k in (0, 3, 10):
        alone = sim.run(1.5, heights[k], every=0.1)
        np.testing.assert_array_equal(batch.q[k], alone.q)
        assert [e["time"] for e in batch.provenance["events"] if e["run"] == k] == times(alone)


def test_elliptic_functions_agree() -> None:
    """The closed form used above equals that of the integrators' tests."""
    m = math.sin(0.6) ** 2
    assert elliptic(quarter(1.2) * math.sqrt(G), m)[1] == pytest.approx(0.0, abs=1e-14)
