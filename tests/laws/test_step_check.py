"""Fixed steps that are too long say so: what the run estimates is what halving its steps changes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.forces import Contact, Plane, Sphere
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.sim.program import step_check
from bellcrank.sim.program.step_limits import check_steps, decay, is_unstable, oscillator
from bellcrank.sim.system.observed_columns import nominals
from bellcrank.sim.system.systems import System, system
from trees import few, random_tree

Array = np.ndarray[Any, Any]
STEPS = (1e-4, 5e-4, 1e-3, 4e-3, 1e-2, 2e-2, 5e-2)


def slider(**numbers: float) -> Mechanism:
    b = bc.Builder("slider", gravity=(0, 0, 0))
    b.body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "block", axis=(1, 0, 0), **numbers)
    return b.build()


def ball(stiffness: float) -> System:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    m = b.build()
    return bc.system(m, elements=[Contact("floor", "ground", "ball", Plane(), Sphere(0.1), stiffness, 0.3)])


def rubbing() -> System:
    """A block that is pushed by less than friction holds, whose slope a step of 1 ms cannot follow."""

    def pushed(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [2.0 - 6.0 * v["x"] / bc.sqrt(v["x"] * v["x"] + 1e-6)]

    return bc.system(slider(), control=pushed)


def damped() -> System:
    return bc.system(slider(), control=lambda t, q, v, x, u: [-2600.0 * v["x"]])


def step_error(run: Record) -> float:
    return float(run.provenance["change by half the step"]["change"])


def state(run: Record) -> Array:
    return np.concatenate([run.q, run.v, run.x], axis=-1)


def stiff(seed: int) -> Mechanism:
    """A short chain with springs, dampers and friction over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["revolute", "prismatic", "spherical", "universal"], rng.integers(1, 4)).tolist()
    spring, damper, rub, slow = (10.0 ** rng.uniform(*x) for x in ((-1, 5), (-2, 3), (-2, 1.5), (-4, 0)))
    joints = []
    m = random_tree(int(rng.integers(10**6)), kinds)
    for j in m.joints:
        more: dict[str, Any] = {"damping": damper} if rng.random() < 0.5 else {}
        more |= {"friction": rub, "friction_speed": slow} if rng.random() < 0.3 else {}
        if rng.random() < 0.5 and j.kind in ("revolute", "prismatic"):
            more |= {"stiffness": spring, "rest": 0.2}
        joints.append(replace(j, **more))
    return replace(m, joints=tuple(joints))


@given(st.integers(0, 10**6), st.sampled_from(sorted(INTEGRATORS)), st.sampled_from(STEPS))
def test_a_run_that_ends_does_not_change_with_half_the_step(seed: int, name: str, h: float) -> None:
    """More than twice the tolerance of its way, at the end of a run that is too short to be chaotic."""
    m = stiff(seed)
    steps = min(200, max(4, round(1.0 / h)))
    start = {"q0": m.random(seed)[0], "v0": 0.5 * np.random.default_rng(seed).normal(size=m.nv)}
    whole, half = (bc.simulate(m, steps * h, step=x, integrator=name, **start) for x in (h, h / 2))
    if "not finite" in (whole.stops[0].reason, half.stops[0].reason):
        assert whole.stops[0].reason != "end"
        return
    a, b = state(whole), state(half)[::2]
    way = np.abs(np.diff(a, axis=0)).sum(axis=0) + step_check.STILL_SHARE * nominals(system(m))
    changed = float((np.abs(a - b)[-(len(a) // 4 + 1) :].mean(axis=0) / way).max())
    if whole.stops[0].reason == "end":
        assert changed < 0.02
    else:
        assert whole.stops[0].reason == "not resolved"
        assert changed > 1e-4


TOO_LONG: dict[str, Callable[[], tuple[Any, float, dict[str, Any]]]] = {
    "spring": lambda: (slider(stiffness=2.25e6), 0.5, {"v0": [1.0], "step": 1e-3}),
    "a fast swing": lambda: (slider(stiffness=1.0e4), 1.0, {"q0": [1.0], "step": 1.25e-2}),
    "friction": lambda: (rubbing(), 0.5, {"step": 1e-3}),
    "friction, euler": lambda: (rubbing(), 0.5, {"step": 1e-3, "integrator": "euler"}),
    "impact": lambda: (ball(1e6), 1.5, {"q0": [1.0], "step": 1e-3, "integrator": "euler"}),
    "damper": lambda: (damped(), 0.5, {"v0": [1.0], "step": 1e-3}),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_excessive_step_is_not_resolved(name: str) -> None:
    plant, seconds, how = TOO_LONG[name]()
    with pytest.warns(RuntimeWarning, match="is not resolved: the step of .* is too long"):
        run = bc.simulate(plant, seconds, **how)
    stop = run.stops[0]
    assert (stop.reason, stop.time) == ("not resolved", seconds)
    assert run.provenance["change by half the step"]["of"] in stop.message
    # The proposed step is a guess: a few repetitions suffice.
    for _ in range(4):
        h = float(re.findall(r"Take a step of (\S+) s or less", stop.message)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stop = bc.simulate(plant, seconds, **{**how, "step": h}).stops[0]
        if stop.reason == "end":
            return
    raise AssertionError(stop.message)


@pytest.mark.filterwarnings("ignore:.*is not resolved:RuntimeWarning")
@given(
    st.sampled_from(["0.0125", "0.01", "0.003", "1/60", "1/240", "1/3000"]),
    st.integers(1, 40),
    st.integers(1, 200),
    st.sampled_from([None, "step", "rows", "final"]),
    st.floats(1e-9, 1e-2),
)
def test_the_proposed_step_divides_the_run(h: str, stride: int, rows: int, kept: str | None, resolve: float) -> None:
    """The run with it begins: it divides the seconds, the time between rows and the periods of samples."""
    step, n = float(Fraction(h)), stride * rows
    m = slider(stiffness=(1.5 / step) ** 2)
    held = bc.Sampled(lambda t, q, v, x, u: [-0.1 * v["x"]], every=stride * step, delay=2 * stride * step)
    plant = bc.system(m, control=held)
    how: dict[str, Any] = {"keep": "final"} if kept == "final" else {}
    how |= {"every": {"step": "step", "rows": stride * step}[kept]} if kept in ("step", "rows") else {}
    solver = bc.Solver(resolve=resolve)
    stop = bc.simulate(plant, n * step, q0=[1.0], step=step, solver=solver, **how).stops[0]
    if stop.reason == "end":  # a few steps of it are resolved
        return
    (proposed,) = re.findall(r"Take a step of (\S+) s or less", stop.message)
    again = bc.simulate(plant, n * step, q0=[1.0], step=float(proposed), solver=solver, **how)
    assert float(proposed) < step
    assert again.stops[0].time == pytest.approx(n * step)
    if kept == "rows":
        assert len(again.t) == rows + 1


@pytest.mark.filterwarnings("error:.*is not resolved:RuntimeWarning")
def test_resolved_runs_reach_their_end() -> None:
    """Jumps of inputs between the steps, samples, events, bounces, rest, and a motion that is chaotic."""
    m = slider()
    pushed = bc.system(m, control=lambda t, q, v, x, u: [u["f"]], inputs=["f"])
    jumps = np.random.default_rng(0).choice([-50.0, 50.0], (40, 1))
    sampled = bc.system(m, control=bc.Sampled(lambda t, q, v, x, u: [-30.0 * q["x"] - 4.0 * v["x"]], every=0.02))
    steps = bc.system(m, control=lambda t, q, v, x, u: [bc.where(bc.sin(5.0 * t) > 0.0, 3.0, -2.0)])
    bounce = bc.Event("bounce", lambda t, q, v, x, u: q["x"], "switch", -1, lambda t, q, v, x, u: {"v": -0.9 * v})
    falls = bc.system(m, control=lambda t, q, v, x, u: [-9.81])
    runs = {
        "jumps": bc.simulate(pushed, 2.0, inputs={"f": jumps[:, 0]}, input_step=0.05),
        "samples": bc.simulate(sampled, 2.0, q0=[1.0]),
        "kinks": bc.simulate(steps, 4.0),
        "events": bc.simulate(falls, 2.0, q0=[0.5], events=[bounce]),
        "bounces": bc.simulate(ball(1e4), 3.0, q0=[1.0], step=2e-4),
        "rest": bc.simulate(bc.zoo.chain(2), 1.0),
        "free": bc.simulate(m, 1.0, v0=[3.0]),
        "chaos": bc.simulate(bc.zoo.chain(2), 60.0, q0=[2.5, 1.0], every=0.1),
    }
    assert {name: run.stops[0].reason for name, run in runs.items()} == dict.fromkeys(runs, "end")
    assert max(map(step_error, runs.values())) < 0.005


@pytest.mark.parametrize("name", sorted(INTEGRATORS))
def test_the_estimate_is_that_of_every_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps that are looked at stand for all of them."""
    how: dict[str, Any] = {"q0": [2.0], "integrator": name, "step": 4e-2, "solver": bc.Solver(resolve=1.0)}
    some = step_error(bc.simulate(bc.zoo.pendulum(), 40.0, **how))
    monkeypatch.setattr(step_check, "CHECK_INTERVAL_STEPS", 1)
    every = step_error(bc.simulate(bc.zoo.pendulum(), 40.0, **how))
    assert every / 3.0 < some < 3.0 * every


def test_step_check_changes_no_state_and_agrees_in_lanes() -> None:
    m, v0 = slider(stiffness=1e4), np.linspace(0.2, 2.0, 11)[:, None]
    how: dict[str, Any] = {"v0": v0, "step": 1.25e-2, "every": 0.125}
    with pytest.warns(RuntimeWarning, match=r"run \d+, the worst of 11 that are not resolved, of 11"):
        batch = bc.simulate(m, 1.0, **how)
    off = bc.simulate(m, 1.0, solver=bc.Solver(resolve=0.0), **how)
    np.testing.assert_array_equal(batch.q, off.q)
    assert "change by half the step" not in off.provenance
    assert {stop.reason for stop in off.stops} == {"end"}
    worst = batch.provenance["change by half the step"]
    with pytest.warns(RuntimeWarning, match="is not resolved"):
        alone = bc.simulate(m, 1.0, **{**how, "v0": v0[worst["run"]]})
    assert step_error(alone) == worst["change"]
    assert batch.stops[worst["run"]].message == alone.stops[0].message


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_the_tolerance_is_a_number(value: float) -> None:
    with pytest.raises(InputError, match="resolve"):
        bc.Solver(resolve=value)


@pytest.mark.parametrize("every", [1.25e-2, 6.25e-2])
def test_stepper_and_run_have_the_same_step_error(every: float) -> None:
    """The error does not depend on the length of actions, and a restarted run has none."""
    m, v0 = slider(stiffness=1e4, damping=0.5), np.linspace(0.2, 2.0, 5)
    run = bc.simulate(m, 1.25, v0=v0[:, None], step=1.25e-2)
    env = bc.stepper(bc.system(m), batch=5, every=every, step=1.25e-2, resolve=0.01, outputs=["x.q"])
    env.reset(start={"x.v": v0})
    for _ in range(round(1.25 / every)):
        env.step()
    worst = run.provenance["change by half the step"]
    np.testing.assert_array_equal(env.state[:, 0], run.q[:, -1, 0])
    assert env.step_error[worst["run"]] == worst["change"] == env.step_error.max() > 0.01
    env.reset(np.arange(5) == worst["run"])
    assert env.step_error[worst["run"]] == 0.0
    assert (env.step_error > 0.0).sum() == 4
    with pytest.raises(InputError, match="make it with resolve"):
        _ = bc.stepper(bc.system(m), outputs=["x.q"]).step_error


def thrown_arm(**contact: float) -> System:
    """Return an arm whose tip falls on the ground, and a cart with a force as input that does not touch it."""
    b = bc.Builder("arm")
    for k, name in enumerate(("upper", "lower")):
        b.body(name, mass=1.0, com=(0, 0, k + 0.5), inertia=(0.05, 0.05, 0.05))
    b.joint("A", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("B", "revolute", "upper", "lower", point=(0, 0, 1), axis=(0, 1, 0))
    b.frame("tip", "lower", point=(0, 0, 2))
    b.body("cart", mass=1.0, com=(9, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "cart", point=(9, 0, 0), axis=(1, 0, 0))
    floor = Contact("floor", "ground", "tip", Plane(), Sphere(0.03), friction=0.2, **contact)
    return bc.system(
        b.build(), control=lambda t, q, v, x, u: {"x": u["force"]}, inputs={"force": 0.0}, elements=[floor]
    )


@pytest.mark.parametrize("period", [0.05, 0.02, 0.01])
def test_jumps_of_another_part_hide_no_impact(period: float) -> None:
    plant, q, v = thrown_arm(bristles=5e3), [0.4, -0.226, 0.0], [-0.562, -0.546, 0.0]
    force = np.zeros(round(0.8 / period))
    force[1::2] = 300.0
    runs = [
        bc.simulate(plant, 0.8, q, v, **inputs)
        for inputs in ({"inputs": {"force": 0.0}}, {"inputs": {"force": force}, "input_step": period})
    ]
    assert [run.stops[0].reason for run in runs] == ["not resolved"] * 2
    np.testing.assert_allclose(step_error(runs[1]), step_error(runs[0]), rtol=0.05)


def beside_swing(rate: float) -> System:
    """Return the thrown arm beside a block that swings with `rate` rad/s and does not touch it."""
    arm = thrown_arm(bristles=5e3)
    joints = [replace(j, stiffness=rate * rate) if j.name == "x" else j for j in arm.mechanism.joints]
    return bc.system(replace(arm.mechanism, joints=tuple(joints)), elements=arm.elements)


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "euler"])
def test_a_large_fast_machine_hides_no_impact_of_a_small_part(integrator: str) -> None:
    """Two machines that do not touch: the check of both finds what the check of one alone finds."""
    sizes = np.array([0.0, 1.0, 1e2, 1e4, 1e7])
    q0, v0 = (np.tile([*x, 0.0], (len(sizes), 1)) for x in ([0.4, -0.226], [-0.562, -0.546]))
    q0[:, 2] = sizes
    with pytest.warns(RuntimeWarning, match="is not resolved"):
        runs = bc.simulate(beside_swing(50.0), 0.8, q0, v0, integrator=integrator, saving=bc.Saving(keep="final"))
    assert [stop.reason for stop in runs.stops] == ["not resolved"] * len(sizes)


def test_fast_turn_of_a_linkage_hides_no_impact() -> None:
    b = bc.Builder("linkage")
    b.body("crank", mass=1.0, com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.001))
    b.body("coupler", mass=2.0, com=(0.3, 0, 0.3), inertia=(0.001, 0.05, 0.05))
    b.body("rocker", mass=1.0, com=(0.5, 0, 0.15), inertia=(0.01, 0.01, 0.001))
    b.joint("A", "revolute", "ground", "crank", axis=(0, 1, 0))
    b.joint("B", "revolute", "crank", "coupler", point=(0, 0, 0.3), axis=(0, 1, 0))
    b.joint("D", "revolute", "ground", "rocker", point=(0.6, 0, -0.05), axis=(0, 1, 0))
    b.close("C", "revolute", "coupler", "rocker", point=(0.6, 0, 0.32), axis=(0, 1, 0))
    b.frame("tip", "coupler", point=(0.3, 0, 0.45))
    b.frame("floor", "ground", point=(0, 0, 0.1))
    m = b.build()
    floor = Contact("contact", "floor", "tip", Plane(), Sphere(0.03), friction=0.2, bristles=5e3)
    q, v = m.assemble({"A": 0.1}, {"A": 3.0}, fixed=["A"])
    assert bc.simulate(bc.system(m, elements=[floor]), 0.8, q, v).stops[0].reason == "not resolved"


def test_spikes_that_were_not_checked_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    force = np.zeros(40)
    force[1::2] = 300.0
    settings: Any = {"inputs": {"force": force}, "input_step": 0.02}
    plant, q, v = thrown_arm(), [0.4, -0.6, 0.0], [0.0, 0.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bc.simulate(plant, 0.2, q, v, **settings)
    monkeypatch.setattr(step_check, "SPIKE_BUDGET", 2.0)
    monkeypatch.setattr(step_check, "SPIKE_SHARE", 0.0)
    with pytest.warns(RuntimeWarning, match=r"changes abruptly in so many steps that \d+ of them were not checked"):
        bc.simulate(thrown_arm(), 0.2, q, v, **settings)


@few(3)
@given(
    st.integers(1, 3), st.floats(0.3, 3.0), st.floats(1.0, 3.0), st.sampled_from(["damping", "stiffness"]),
    st.sampled_from(["rk4", "euler", "abm4"]),
)  # fmt: skip
def test_steps_too_long_for_a_spring_between_points_are_refused_beforehand(
    bodies: int, mass: float, far: float, kind: str, method: str
) -> None:
    """A step is refused if and only if it is unstable with the mass that the spring moves, r M^-1 r^T."""
    b = bc.Builder("sprung", gravity=(0.0, 0.0, 0.0))
    for i in range(bodies):
        b.body(f"link{i}", mass=mass, com=(i + 0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"joint{i}", "revolute", f"link{i - 1}" if i else "ground", f"link{i}", point=(i, 0, 0), axis=(0, 1, 0))
    b.spring(
        "spring", "ground", f"link{bodies - 1}", point_a=(bodies, 0.0, far), point_b=(bodies, 0.0, 0.0),
        **{kind: bc.parameter("size", 1.0)},
    )  # fmt: skip
    m = b.build()
    r = np.arange(bodies, 0.0, -1.0)  # the spring is vertical, and each joint lifts its end by its distance
    compliance = float(r @ np.linalg.solve(m.mass_matrix(m.neutral(), p=[1.0]), r))
    step, integrator = 1e-3, INTEGRATORS[method]
    test_problem, power = (decay, 1) if kind == "damping" else (oscillator, 2)
    for size in (0.1, 1.0, 2.0, 4.0):
        z = float(size)
        plain = bc.system(m.at({"size": (z / step) ** power / compliance}))
        if is_unstable(integrator, z, test_problem):
            with pytest.raises(InputError, match=r'Spring "spring" (damps|oscillates) .*with a step of 0.001 s'):
                check_steps(plain, integrator, step, np.zeros(plain.size))
        else:
            check_steps(plain, integrator, step, np.zeros(plain.size))


@pytest.mark.parametrize("bodies", [1, 200])
def test_stiff_damper_between_points_is_refused_by_a_run(bodies: int) -> None:
    """Such a run once ended with "not finite"; rodas4 and midpoint take the same step."""
    b = bc.Builder("damped")
    for i in range(bodies):
        b.body(f"link{i}", mass=1.0, com=(i + 0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"joint{i}", "revolute", f"link{i - 1}" if i else "ground", f"link{i}", point=(i, 0, 0), axis=(0, 1, 0))
    b.spring("s", "ground", "link0", point_a=(1.0, 0.0, 1.0), point_b=(1.0, 0.0, 0.0), stiffness=100.0, damping=1e4)
    with pytest.raises(InputError, match=r'Spring "s" damps what it moves within .*integrator=rodas4 or midpoint'):
        bc.simulate(b.build(), 0.01, integrator="rk4", step=1e-3)
