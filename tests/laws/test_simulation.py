"""Compiled runs equal the integrator stepped in plain Python, agree with each other, and conserve invariants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics import METHODS, kinematics
from bellcrank.integrate import INTEGRATORS, Problem, State
from bellcrank.model import Mechanism
from bellcrank.sim.program.system_graphs import projection, quaternion_rotation
from bellcrank.sim.program.tree_dynamics import tree_dynamics
from bellcrank.sim.system.systems import system
from motions import drive
from trees import ALL, Array, close, few, random_tree, trees

seeds = st.integers(0, 1000)
small = trees(max_bodies=3, armature=st.booleans(), passive=st.booleans())
EVERY = sorted(INTEGRATORS)


def start(m: Mechanism, seed: int, batch: tuple[int, ...] = ()) -> tuple[Array, Array]:
    """Moderate speeds, so that some hundredths of a second contain a smooth motion."""
    q, v, _ = m.random(seed, batch) if batch else m.random(seed)
    return q, 0.5 * v


def plainly(m: Mechanism) -> Problem:
    """The reference uses the public kernel and the coordinate rates; from sim it uses only the Jacobian of f."""
    by = tree_dynamics(system(m), bc.Solver())
    slopes = by.state_jacobian, by.time_derivative

    def f(t: float, y: State) -> State:
        q, v = y[: m.nq], y[m.nq :]
        return [*kinematics.rate(m.tree, q, v), *m.forward_dynamics(q, v, np.zeros(m.nv)).tolist()]

    def jacobian(t: float, y: State) -> tuple[list[State], State]:
        J = slopes[0].evaluate(t=t, y=y)["ddy_dy"]
        return J.tolist(), [0.0] * len(y)

    def moved(q: State, d: State) -> State:
        return list(kinematics.integrate(m.tree, q, d))

    return Problem(f, m.nq, m.nv, 0, jacobian, moved, projection(system(m)), quaternion_rotation(system(m)))


@few(4)
@given(small, seeds, st.sampled_from(EVERY))
def test_a_run_is_the_integrator_step_by_step(m: Mechanism, seed: int, name: str) -> None:
    q, v = start(m, seed)
    run = bc.simulate(m, 0.1, q, v, integrator=name, step=0.005)
    steps = drive(INTEGRATORS[name], plainly(m), [*q.tolist(), *v.tolist()], 0.005, 20)
    np.testing.assert_allclose(run.t, np.arange(21) * 0.005, rtol=1e-15)
    close(np.concatenate([run.q, run.v], axis=-1)[1:], np.array([s.y for s in steps]), 1e-10)


@pytest.mark.parametrize("name", EVERY)
def test_every_integrator_step_by_step_on_a_tree_with_quaternions(name: str) -> None:
    m = random_tree(5, ["floating", "revolute", "spherical"], passive=True)
    q, v = start(m, 3)
    run = bc.simulate(m, 0.05, q, v, integrator=name, step=0.005)
    steps = drive(INTEGRATORS[name], plainly(m), [*q.tolist(), *v.tolist()], 0.005, 10)
    close(np.concatenate([run.q, run.v], axis=-1)[1:], np.array([s.y for s in steps]), 1e-11)


@few(3)
@given(small, seeds, st.sampled_from(EVERY))
def test_a_state_alone_is_its_lane_in_a_batch(m: Mechanism, seed: int, name: str) -> None:
    """Bit for bit, in a batch whose size is no multiple of the lanes."""
    q, v = start(m, seed, (11,))
    sim = bc.Simulator(m, name)
    batch = sim.run(0.05, q, v, step=0.005)
    assert batch.q.shape == (11, 11, m.nq)
    for k in (0, 7, 8, 10):
        alone = sim.run(0.05, q[k], v[k], step=0.005)
        np.testing.assert_array_equal(batch.q[k], alone.q)
        np.testing.assert_array_equal(batch.v[k], alone.v)


def test_adaptive_runs_choose_their_steps_lane_by_lane() -> None:
    m = random_tree(2, ["revolute", "revolute"])
    q, v = start(m, 1, (9,))
    v *= np.linspace(0.1, 4.0, 9)[:, None]
    for name in [n for n in EVERY if INTEGRATORS[n].adaptive]:
        sim = bc.Simulator(m, name)
        batch = sim.run(0.5, q, v, every=0.05, tolerance=1e-7)
        for k in (0, 8):
            alone = sim.run(0.5, q[k], v[k], every=0.05, tolerance=1e-7)
            np.testing.assert_array_equal(batch.q[k], alone.q)
            np.testing.assert_array_equal(batch.t[k], alone.t)


@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}], ids=["fixed", "adaptive"])
def test_threads_change_nothing(options: dict[str, Any]) -> None:
    m = random_tree(7, ["revolute", "prismatic", "spherical"])
    q, v = start(m, 4, (3, 9))
    a, b, c = (bc.simulate(m, 0.2, q, v, every=0.05, threads=n, **options) for n in (1, 2, 5))
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])
        np.testing.assert_array_equal(a[name], c[name])
    assert a.batch == (3, 9)
    assert a.stops == b.stops


@few(3)
@given(small, seeds)
def test_all_methods_give_the_same_run(m: Mechanism, seed: int) -> None:
    q, v = start(m, seed)
    able = [name for name, x in METHODS.items() if x.applies(m.tree, "forward_dynamics")]
    assert len(able) >= 4
    runs = [bc.simulate(m, 0.1, q, v, step=0.005, method=name) for name in able]
    for run in runs[1:]:
        close(run.q, runs[0].q, 1e-9)
    assert [run.provenance["method"] for run in runs] == able


# -- conserved quantities


@few(5)
@given(trees(max_bodies=3, armature=st.booleans()), seeds)
def test_energy_is_kept(m: Mechanism, seed: int) -> None:
    q, v = start(m, seed)
    run = bc.simulate(m, 0.3, q, v, integrator="dopri5", tolerance=1e-10, every=0.05)
    E = run.energy()
    scale = max(1.0, float(np.abs(run["kinetic_energy"]).max()))
    assert np.abs(E - E[0]).max() < 1e-7 * scale


@few(3)
@given(trees(max_bodies=3, passive=True), seeds)
def test_friction_and_dampers_only_take_energy(m: Mechanism, seed: int) -> None:
    q, v = start(m, seed)
    E = bc.simulate(m, 0.3, q, v, integrator="dopri5", tolerance=1e-9, every=0.02).energy()
    assert (np.diff(E) < 1e-6 * max(1.0, float(np.abs(E).max()))).all()


@few(4)
@given(trees(base="floating", max_bodies=3, gravity=False, passive=st.booleans()), seeds)
def test_momentum_is_kept_in_free_space(m: Mechanism, seed: int) -> None:
    """Springs, dampers and friction between the bodies do not change it."""
    loose = replace(m.joints[0], damping=0.0, friction=0.0, stiffness=0.0)  # nothing constrains the first body
    m = replace(m, joints=(loose, *m.joints[1:]))
    q, v = start(m, seed)
    run = bc.simulate(m, 0.3, q, v, integrator="dopri5", tolerance=1e-10, every=0.05)
    P = m.momentum(run.q, run.v)
    close(P, np.broadcast_to(P[0], P.shape), 1e-7)


@few(4)
@given(trees(max_bodies=3), seeds)
def test_the_midpoint_rule_runs_backwards(m: Mechanism, seed: int) -> None:
    """The rule is symmetric: with reversed speeds the motion returns, up to rounding and Newton's residual."""
    q, v = start(m, seed)
    sim = bc.Simulator(m, "midpoint")
    there = sim.run(0.1, q, v, step=0.002)
    back = sim.run(0.1, there.q[-1], -there.v[-1], step=0.002)
    close(back.q[::-1], there.q, 1e-8)
    close(-back.v[::-1], there.v, 1e-7)


def test_the_midpoint_rule_keeps_energy_where_others_lose_it() -> None:
    """A pendulum over 200 swings: the energy oscillates without a drift, also for semi-implicit Euler."""
    m = random_tree(0, ["revolute"])
    for name, h in (("midpoint", 0.02), ("euler", 0.005)):
        run = bc.simulate(m, 200.0, [0.4], integrator=name, step=h, every=h * 10)
        E = run.energy()
        n = len(E) // 4
        assert np.ptp(E[-n:]) < 1.05 * np.ptp(E[:n]) + 1e-9
        assert abs(E[-n:].mean() - E[:n].mean()) < 0.05 * np.ptp(E[:n]) + 1e-9


@pytest.mark.parametrize("name", EVERY)
def test_quaternions_stay_unit(name: str) -> None:
    m = random_tree(11, ["floating", "spherical", "revolute"], gravity=False)
    q, v = m.random(2)[:2]
    run = bc.simulate(m, 2.0, q, 3.0 * v, integrator=name, step=0.005)
    lengths = [x for key, x in run.residuals().items() if key.startswith("quaternion")]
    assert len(lengths) == 2
    assert max(lengths) < 1e-14


@few(2)
@given(trees(kinds=ALL, max_bodies=2), seeds)
def test_derived_columns_are_those_of_the_mechanism(m: Mechanism, seed: int) -> None:
    q, v = start(m, seed)
    run = bc.simulate(m, 0.05, q, v, step=0.005, control=lambda t, q, v, x, u: [0.1 * t] * m.nv)
    tau = np.repeat(0.1 * run.t[:, None], m.nv, axis=1)
    a = m.forward_dynamics(run.q, run.v, tau)
    for k, name in enumerate(m.columns[1]):
        close(run[f"{name}.tau"], tau[:, k], 1e-14)
        close(run[f"{name}.a"], a[:, k], 1e-10)
