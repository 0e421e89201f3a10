"""Runs of mechanisms with closed loops: all forms give one motion, and a change of coordinates does not show.

Batches, inputs, parameters, adaptive steps and events work as without loops.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import zoo
from bellcrank.actuators import PD
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.absolute import absolute, state
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.errors import BellcrankError, InputError
from bellcrank.sim.settings import FORMS
from loops import Closed, at_random, closed, looped
from trees import close, few, random_tree

Array = np.ndarray[Any, Any]
STARTS: dict[str, dict[str, float]] = {
    "four_bar": {"A": 6.0},
    "rod_pendulum": {},
    "andrews": {"beta": 20.0},
    "bricard": {"R1": 0.4},
    "n_four_bar(3)": {"A0": -1.0},
    "slider_fourbar(forces=True)": {"R2": 0.4},
    "double_wishbone": {"lower_pivot": 1.0},
    "delta": {"shoulder1": 0.5},
    "stewart": {"P1": 0.2},
}
SMALL = ("four_bar", "rod_pendulum", "bricard", "n_four_bar(3)", "double_wishbone")


@cache
def started(name: str) -> tuple[bc.Mechanism, Array, Array]:
    m = zoo.load(name)
    q, v = m.assemble(zoo.start(m)[0], STARTS[name])
    return m, q, v


def finished(run: bc.Record) -> bc.Record:
    assert all(stop.reason == "end" for stop in run.stops), run.stops
    return run


def swinging() -> bc.Mechanism:
    """A four-bar in which no bar can turn fully (Grashof), so that crank and rocker both reach dead centres."""
    return zoo.four_bar(ground=0.5, crank=0.3, coupler=0.2, rocker=0.3)


# -- one motion


@pytest.mark.parametrize("name", STARTS)
def test_all_forms_are_one_motion(name: str) -> None:
    """The difference is the integrator's error, and half the step makes it smaller."""
    m, q, v = started(name)
    seconds, h = (0.002, 1e-5) if name == "andrews" else (0.2, 1e-3)
    ends = {form: finished(bc.simulate(m, seconds, q, v, step=h, form=form)) for form in FORMS}
    scale = 1.0 + np.abs(ends["minimal"].v).max()
    for form in FORMS[1:]:
        close(ends[form].q[-1], ends["minimal"].q[-1], 1e-7)
        assert np.abs(ends[form].v[-1] - ends["minimal"].v[-1]).max() < 1e-6 * scale


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8)])
@pytest.mark.parametrize("angle", [0.1, 2.0, np.pi, -2.5])
def test_absolute_coordinates_have_the_poses_of_the_mechanism(axis: tuple[float, float, float], angle: float) -> None:
    b = bc.Builder("turned")
    b.body("disc", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("ball", "spherical", "ground", "disc")
    b.body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "disc", "arm", point=(0.3, 0.1, 0.2), axis=(0, 1, 0))
    m = b.build()
    q = np.array([*(np.sin(angle / 2) * np.array(axis)), np.cos(angle / 2), 0.4])
    places, _ = state(m, q, np.array([0.3, -0.2, 0.5, 0.7]))
    for name in ("disc", "arm"):
        close(absolute(m).pose(places, name), m.pose(q, name), 1e-12)


@pytest.mark.parametrize("name", ["four_bar", "double_wishbone", "n_four_bar(3)", "slider_fourbar(forces=True)"])
@pytest.mark.parametrize("form", FORMS)
def test_absolute_coordinates_are_the_same_motion(name: str, form: str) -> None:
    m, q, v = started(name)
    free = absolute(m)
    joint = finished(bc.simulate(m, 0.1, q, v, step=5e-4))
    run = finished(bc.simulate(free, 0.1, *state(m, q, v), step=5e-4, form=form))
    for b in m.bodies:
        close(free.pose(run.q[-1], b.name), m.pose(joint.q[-1], b.name), 1e-8)


@at_random
@few(4)
@given(looped(most=2, springs=1, max_bodies=4), st.integers(0, 10**6))
def test_all_forms_agree_on_random_loops(case: Closed, seed: int) -> None:
    m, q0 = case
    q = np.array(q0)
    try:
        found = analysis(m, q)
    except BellcrankError:
        assume(False)
    assume(found.mobility > 0 and not found.more and found.kept)
    C = m.closure_jacobian(q)[list(found.kept)]
    assume(np.linalg.cond(C) < 50)
    v = consistent_velocity(m.tree, q, 0.3 * np.random.default_rng(seed).normal(size=m.nv))
    runs = [bc.simulate(m, 0.02, q, v, step=1e-3, form=form) for form in FORMS]
    assume(all(run.stops[0].reason == "end" for run in runs))
    for run in runs[1:]:
        close(run.q[-1], runs[0].q[-1], 1e-7)
        close(run.v[-1], runs[0].v[-1], 1e-5)


@pytest.mark.parametrize("form", ["minimal", "projected"])
@pytest.mark.parametrize("name", ["rk4", "dopri5", "abm4", "euler", "midpoint", "rkf45", "rodas4"])
def test_integrators_keep_their_order(name: str, form: str) -> None:
    """Newton's method inside a step and the projection at its end keep the order."""
    from bellcrank.integrate import INTEGRATORS

    m, q, v = started("four_bar")
    exact = bc.simulate(m, 0.4, q, v, step=1.25e-4, every=0.01, integrator="dopri5", form="projected").q
    h = 1e-3 if INTEGRATORS[name].order < 3 else 0.01
    s = bc.Simulator(m, name, form=form)
    coarse, fine = (np.abs(finished(s.run(0.4, q, v, step=h / k, every=0.01)).q - exact).max() for k in (1, 4))
    assert np.log2(coarse / fine) > 2 * INTEGRATORS[name].order - 0.7


# -- partitions


def test_change_of_partition_leaves_no_trace() -> None:
    m = swinging()
    q, v = m.assemble({}, {"A": 3.0})
    s = bc.Simulator(m)
    h = 2.5e-4
    run = finished(s.run(10, q, v, step=h))
    assert run.provenance["partitions changed"] > 20
    assert run.residuals()["energy"] < 1e-8
    np.testing.assert_allclose(np.diff(run.t), h, rtol=1e-7)  # every row once, in order
    jumps = np.abs(np.diff(run.q, axis=0) - 0.5 * h * (run.v[1:] + run.v[:-1])).max()
    assert jumps < 1e-5
    other = finished(bc.simulate(m, 10, q, v, step=h, form="projected", every=0.1))
    close(run.q[::400], other.q, 1e-6)  # no change of partition there


def test_a_partition_is_made_once() -> None:
    m = zoo.rod_pendulum()
    s = bc.Simulator(m)
    first = s.run(5.0)
    made = len(s.dynamics.others)  # type: ignore[attr-defined]
    again = s.run(5.0)
    assert first.provenance["partitions changed"] > made == len(s.dynamics.others)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(first.q, again.q)


def test_lanes_have_separate_partitions() -> None:
    """In one batch, each run equals the single run."""
    m = zoo.rod_pendulum()
    angles = np.linspace(0.1, 3.0, 11)
    q = np.array([m.assemble([1 - np.cos(a), -np.sin(a), 0.0])[0] for a in angles])
    s = bc.Simulator(m)
    together = finished(s.run(2.0, q, step=1e-3))
    assert together.q.shape == (11, 2001, 3)
    for k in range(len(angles)):
        close(together.q[k], finished(s.run(2.0, q[k], step=1e-3)).q, 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SMALL)
def test_batch_equals_single_runs(name: str, form: str) -> None:
    m, q, v = started(name)
    speeds = np.linspace(0.2, 1.0, 3)[:, None] * v
    s = bc.Simulator(m, form=form)
    batch = finished(s.run(0.1, q, speeds, step=1e-3))
    for k, speed in enumerate(speeds):
        close(batch.q[k], s.run(0.1, q, speed, step=1e-3).q, 1e-10)


# -- drives


def test_actuators_and_control() -> None:
    """A crank under PD control follows its target, and the other joints follow the crank."""
    m, q, _ = started("four_bar")
    driven = bc.system(m, [PD("A", 5.0, 0.3)], lambda t, q, v, x, u: {"A": u["target"]}, inputs=["target"])
    runs = [finished(bc.simulate(driven, 3.0, q, inputs={"target": 1.0}, form=form)) for form in FORMS]
    for run in runs:
        assert run["A.q"][-1] == pytest.approx(1.0, abs=0.2)
        close(run.q[-1], runs[0].q[-1], 1e-7)
        assert np.abs(m.closure(run.q)).max() < 1e-8


def test_parameters_change_loops_too() -> None:
    """A loop length may vary over a batch: each run equals the mechanism with that length."""
    m = zoo.rod_pendulum().free("rod.value", "ball.mass")
    lengths = np.array([1.0, 1.2, 0.9])
    q = np.array([[1.0 - x, 0.0, 0.0] for x in lengths])
    run = finished(bc.simulate(m, 1.0, q, parameters={"rod.value": lengths}, step=1e-3))
    for k, x in enumerate(lengths):
        fixed = m.at({"rod.value": float(x)})
        close(run.q[k], bc.simulate(fixed, 1.0, q[k], step=1e-3).q, 1e-10)
        P = fixed.pose(run.q[k], "P")[:, :2, 3]
        np.testing.assert_allclose(np.linalg.norm(P, axis=1), x, atol=1e-12)


def test_accelerations_and_forces_are_columns() -> None:
    m, q, v = started("four_bar")
    run = bc.simulate(m, 0.1, q, v, step=1e-3)
    a = np.stack([run[f"{name}.a"] for name in m.columns[1]], axis=-1)
    close(a, m.forward_dynamics(run.q, run.v, np.zeros(m.nv)), 1e-9)


# -- adaptive steps and events


@pytest.mark.parametrize("form", ["minimal", "projected"])
@pytest.mark.parametrize("integrator", ["rkf45", "dopri5", "abm4", "rodas4"])
def test_steps_that_are_chosen(integrator: str, form: str) -> None:
    m, q, v = started("four_bar")
    exact = bc.simulate(m, 1.0, q, v, step=2e-4, every=0.1)
    run = finished(bc.simulate(m, 1.0, q, v, tolerance=1e-9, integrator=integrator, form=form, every=0.1))
    close(run.q, exact.q, 1e-5)
    assert np.abs(m.closure(run.q)).max() < 1e-10  # also in the rows between steps


def test_chosen_steps_through_dead_points() -> None:
    m = zoo.rod_pendulum()
    run = finished(bc.simulate(m, 5.0, tolerance=1e-10, integrator="dopri5", every=0.5))
    assert run.provenance["partitions changed"] > 5
    close(run.q, bc.simulate(m, 5.0, step=2e-4, form="projected", every=0.5).q, 1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_events(form: str) -> None:
    m, q, v = started("four_bar")
    stop = bc.Event("there", lambda t, q, v, x, u: q["A"] + 0.7)
    run = bc.simulate(m, 5.0, q, v, step=1e-3, events=[stop], form=form)
    assert run.stops[0].reason == "event"
    (event,) = run.provenance["events"]
    assert event["y"][m.columns[0].index("A")] == pytest.approx(-0.7, abs=1e-9)
    assert np.abs(m.closure(np.array(event["y"][: m.nq]))).max() < 1e-8


def test_impulse_acts_through_loops() -> None:
    """A velocity that violates the loops is projected to the nearest allowed one in the kinetic-energy norm."""
    m, q, v = started("four_bar")
    after = {"v": [9.0, 0.0, 0.0]}
    knock = bc.Event("knock", lambda t, q, v, x, u: t - 0.05, "switch", 1, lambda t, q, v, x, u: after)
    run = finished(bc.simulate(m, 0.1, q, v, step=1e-3, events=[knock]))
    speed = np.einsum("...mk,...k->...m", m.closure_jacobian(run.q), run.v)
    assert np.abs(speed).max() < 1e-9
    k = int(np.argmax(np.abs(np.diff(run["A.v"]))))
    M, at = m.mass_matrix(run.q[k]), run.q[k]
    free = np.linalg.svd(m.closure_jacobian(at)[list(m.loop_analysis.kept)])[2][-1:]  # the only allowed motion
    expected = free.T @ np.linalg.solve(free @ M @ free.T, free @ M @ [9.0, 0.0, 0.0])
    close(run.v[k + 1], expected, 0.05)  # a step later


# -- refused requests


def test_sensitivities_with_loops_raise() -> None:
    m = zoo.four_bar().free("crank.mass")
    with pytest.raises(InputError, match='sensitivities do not support closed loops, which "four_bar" has'):
        bc.simulate(m, 0.1, sensitivities=["crank.mass"])


def test_unsupported_method_of_a_form_raises() -> None:
    with pytest.raises(InputError, match='method "aba": the minimal form'):
        bc.Simulator(zoo.four_bar(), method="aba")
    assert bc.Simulator(zoo.four_bar(), method="aba", form="projected").dynamics.method.name == "aba"
    with pytest.raises(InputError, match="form"):
        bc.Simulator(zoo.four_bar(), form="reduced")


def test_springs_of_joints_count() -> None:
    m = zoo.four_bar()
    sprung = replace(m, joints=tuple(replace(j, stiffness=2.0) for j in m.joints))
    q, v = sprung.assemble({}, {"A": 2.0})
    assert finished(bc.simulate(sprung, 2.0, q, v, step=2.5e-4)).residuals()["energy"] < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_identically_satisfied_loops_change_nothing(form: str) -> None:
    """A slider whose axis lies in its constraint plane: all equations are rounding error, and none is kept."""
    m, q0 = closed(random_tree(2480, ["prismatic"], [], rooted=False), 2480, ["planar"])
    found = analysis(m, np.array(q0))
    assert not found.kept
    assert found.mobility == 1
    free = replace(m, loops=())
    runs = [finished(bc.simulate(x, 0.05, q0, [0.3], step=1e-3, form=form)) for x in (m, free)]
    close(runs[0].q, runs[1].q, 1e-12)
    close(m.forward_dynamics(q0, [0.3], [0.2]), free.forward_dynamics(q0, [0.3], [0.2]), 1e-12)
