"""Runs with inputs and variations: jumping inputs, parameters, sensitivities, actuators and controllers with states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD, PID, DCMotor
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from bellcrank.scalar import sin
from trees import close, random_tree

EVERY = sorted(INTEGRATORS)
TABLE = [2.0, -15.0, 8.0, 0.5]


def arm(mass: Any = 1.3, length: Any = 0.7) -> Mechanism:
    b = bc.Builder("arm")
    b.body("upper", mass=2.0, com=(0.3, 0, 0), inertia=(0.05, 0.2, 0.2))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.body("fore", mass=mass, com=(length, 0, 0), inertia=(0.02, 0.1, 0.1))
    b.joint("elbow", "revolute", "upper", "fore", point=(0.6, 0, 0), axis=(0, 1, 0))
    return b.build()


def pushed(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [u["push"] - 0.3 * v[0], 0.1 * u["push"] * sin(q[1])]


# -- inputs


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("watch", [False, True], ids=["", "watched"])
def test_inputs_that_jump_are_runs_one_after_the_other(name: str, watch: bool) -> None:
    """Each line of the table equals a separate run from the end of the previous one."""
    s = bc.system(arm(), control=pushed, inputs=["push"])
    never = [bc.Event("never", lambda t, q, v, x, u: t + 1.0, "record")] if watch else []
    sim = bc.Simulator(s, name, events=never, solver=bc.Solver(resolve=0.0))
    how: dict[str, Any] = {"step": 0.005, "every": 0.05}
    run = sim.run(0.5, [0.2, -0.4], inputs={"push": TABLE}, input_step=0.1, **how)
    q, v = [0.2, -0.4], [0.0, 0.0]
    for k in range(5):
        piece = sim.run(0.1, q, v, inputs={"push": TABLE[min(k, 3)]}, **how)  # the last line remains valid
        begins_anew = k < 4  # afterwards nothing jumps, and abm2 (second order) and abm4 keep their memory
        close(run.q[2 * k : 2 * k + 3], piece.q, 1e-11 if begins_anew else 1e-6 if name == "abm2" else 1e-8)
        q, v = piece.q[-1], piece.v[-1]
    np.testing.assert_array_equal(run["input.push"], [*np.repeat([*TABLE, 0.5], 2).tolist(), 0.5])


@pytest.mark.parametrize("how", [{"step": 1e-7}, {"step": 1e-4, "input_step": 1e12}])
def test_constant_inputs_hold_with_any_step(how: dict[str, Any]) -> None:
    plant = bc.system(arm(), control=pushed, inputs=["push"])
    held = [2.0] if "input_step" in how else 2.0
    run = bc.simulate(plant, 10 * how["step"], inputs={"push": held}, **how)
    close(run["shoulder.tau"], 2.0 - 0.3 * run.v[:, 0], 1e-12)


@pytest.mark.parametrize("name", [n for n in EVERY if INTEGRATORS[n].adaptive])
def test_adaptive_runs_do_not_step_over_a_jump(name: str) -> None:
    s = bc.system(arm(), control=pushed, inputs=["push"])
    exact = bc.simulate(
        s, 0.5, [0.2, -0.4], inputs={"push": TABLE}, input_step=0.1, step=5e-4, every=0.02, integrator="dopri5"
    )
    sim = bc.Simulator(s, name)
    run = sim.run(0.5, [0.2, -0.4], inputs={"push": TABLE}, input_step=0.1, every=0.02, tolerance=1e-8)
    close(run.q, exact.q, 1e-5)
    np.testing.assert_array_equal(run["input.push"], exact["input.push"])
    steps = sim.run(0.5, [0.2, -0.4], inputs={"push": TABLE}, input_step=0.1, every="step", tolerance=1e-8)
    for jump in (0.1, 0.2, 0.3):
        assert np.abs(steps.t - jump).min() < 1e-9


@pytest.mark.parametrize(("name", "how"), [("rk4", {"step": 0.01}), ("abm4", {"step": 0.01}), ("dopri5", {})])
def test_switch_before_a_jump_uses_the_old_inputs(name: str, how: dict[str, Any]) -> None:
    """The switch has no effect and occurs in the step that ends with the jump."""
    s = bc.system(arm(), control=pushed, inputs=["push"])
    given: dict[str, Any] = {"inputs": {"push": TABLE}, "input_step": 0.1, "every": 0.02, **how}
    e = bc.Event("nothing", lambda t, q, v, x, u: t - 0.0973, "switch", then=lambda t, q, v, x, u: {})
    with_it = bc.simulate(s, 0.4, [0.2, -0.4], integrator=name, events=[e], **given)
    without = bc.simulate(s, 0.4, [0.2, -0.4], integrator=name, **given)
    assert len(with_it.provenance["events"]) == 1
    close(with_it.q, without.q, 1e-5)
    np.testing.assert_array_equal(with_it["input.push"], without["input.push"])


def test_each_run_of_a_batch_has_separate_inputs() -> None:
    s = bc.system(arm(), control=pushed, inputs=["push"])
    sim = bc.Simulator(s)
    tables = np.random.default_rng(0).normal(size=(9, 4))
    batch = sim.run(0.4, inputs={"push": tables}, input_step=0.1, step=0.01)
    for k in (0, 8):
        alone = sim.run(0.4, inputs={"push": tables[k]}, input_step=0.1, step=0.01)
        np.testing.assert_array_equal(batch.q[k], alone.q)
        np.testing.assert_array_equal(batch["input.push"][k], alone["input.push"])


# -- parameters


def test_a_sweep_is_the_mechanisms_rebuilt() -> None:
    masses, lengths = np.linspace(0.5, 3.0, 5), np.array([[0.4], [0.9]])
    free = arm(bc.parameter("mass", 1.3, unit="kg"), bc.parameter("length", 0.7, unit="m"))
    sweep = bc.simulate(free, 0.5, [0.3, 0.1], step=0.005, parameters={"mass": masses, "length": lengths})
    assert sweep.batch == (2, 5)
    for i in range(2):
        for j in (0, 4):
            built = bc.simulate(arm(masses[j], lengths[i, 0]), 0.5, [0.3, 0.1], step=0.005)
            close(sweep.q[i, j], built.q, 1e-10)
            close(sweep.energy()[i, j], built.energy(), 1e-9)
            assert (sweep["parameter.mass"][i, j] == masses[j]).all()
    nominal = bc.simulate(free, 0.5, [0.3, 0.1], step=0.005)
    close(nominal.q, bc.simulate(arm(), 0.5, [0.3, 0.1], step=0.005).q, 1e-10)


def test_parameters_of_actuators_and_controls() -> None:
    gain, force = bc.parameter("gain", 20.0), bc.parameter("force", 1.0)

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [force * sin(t)]

    s = bc.system(arm(), [PD("elbow", gain, 1.0)], control, parameters=[force])
    swept = bc.simulate(s, 0.3, step=0.005, parameters={"gain": [5.0, 50.0], "force": 0.5})
    for k, g in enumerate((5.0, 50.0)):
        built = bc.simulate(
            bc.system(arm(), [PD("elbow", g, 1.0)], lambda t, q, v, x, u: [0.5 * sin(t)]), 0.3, step=0.005
        )
        close(swept.q[k], built.q, 1e-11)


# -- sensitivities


def motor_arm() -> tuple[bc.System, dict[str, float]]:
    """A spherical joint, a motor, a servo with an integral, a control with a state; all have free parameters."""
    m = random_tree(3, ["revolute", "spherical", "revolute"])
    k, kp, pull = bc.parameter("k", 0.3), bc.parameter("kp", 6.0), bc.parameter("pull", 0.8)

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"j0": 4.0 * sin(3.0 * t) + x["lag"], "j2": pull * q["j0"]}, [pull - 5.0 * x["lag"]]

    s = bc.system(
        m, [DCMotor("j0", k, 0.5, 0.01, 3.0), PID("j2", kp, 2.0, 0.2)], control, states={"lag": 0.1}, parameters=[pull]
    )
    return s, {"k": 0.3, "kp": 6.0, "pull": 0.8}


@pytest.mark.parametrize("name", EVERY)
def test_sensitivities_are_differences_of_runs(name: str) -> None:
    """Central differences of the same run. For euler, sensitivities use another step: see the docs."""
    s, nominal = motor_arm()
    m = s.mechanism
    q, v, _ = m.random(2)
    x = np.array([z.initial for z in s.states])
    wrt = ["k", "kp", "pull", "j0.q", "j1.vz.v" if "j1.vz" in m.columns[1] else f"{m.columns[1][1]}.v", "lag"]
    step = 2e-4 if name == "euler" else 2e-3
    run = bc.simulate(s, 0.1, q, 0.3 * v, integrator=name, step=step, every=0.02, sensitivities=wrt)
    plain, e = bc.Simulator(s, name), 1e-5
    for w in wrt:

        def moved(sign: float, w: str = w) -> bc.Record:
            p, start = dict(nominal), [q.copy(), 0.3 * v, x.copy()]
            names = [[f"{n}.q" for n in m.columns[0]], [f"{n}.v" for n in m.columns[1]], [z.name for z in s.states]]
            for part, own in zip(start, names, strict=True):
                if w in own:
                    part[own.index(w)] += sign * e
            if w in p:
                p[w] += sign * e
            return plain.run(0.1, *start, step=step, every=0.02, parameters=p)

        more, less = moved(1.0), moved(-1.0)
        for column in ("j0.q", "j2.q", "j2.v", "j0.current", "lag", *(f"{n}.q" for n in m.columns[0][1:4]), "j2.a"):
            slope = (more[column] - less[column]) / (2 * e)
            found = run[f"d({column})/d({w})"]
            scale = max(1.0, float(np.abs(slope).max()))
            assert np.abs(found - slope).max() < (2e-2 if name == "euler" else 2e-5) * scale, (w, column)


def test_sensitivities_do_not_change_the_run() -> None:
    s, _ = motor_arm()
    plain = bc.simulate(s, 0.1, step=0.002)
    varied = bc.simulate(s, 0.1, step=0.002, sensitivities=["k"])
    close(varied.q, plain.q, 1e-12)
    close(varied.x, plain.x, 1e-12)


# -- actuators and controllers with states


def test_a_controller_with_a_state_is_its_differential_equation() -> None:
    """x' = -2 x + t, from 3, has a closed form that does not depend on the arm."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [x["filter"], 0.0], [t - 2.0 * x["filter"]]

    s = bc.system(arm(), control=control, states={"filter": 3.0})
    run = bc.simulate(s, 1.0, step=0.005)
    exact = run.t / 2 - 0.25 + 3.25 * np.exp(-2.0 * run.t)
    close(run["filter"], exact, 1e-8)
    close(run["shoulder.tau"], exact, 1e-8)
    other = bc.simulate(s, 1.0, step=0.005, x0={"filter": [0.25, 3.0]})
    assert other["filter"][0, 0] == 0.25
    close(other["filter"][1], run["filter"], 1e-13)


def test_servo_holds_its_target() -> None:
    s = bc.system(
        arm(),
        [PID("shoulder", 400.0, 800.0, 40.0), PID("elbow", 200.0, 400.0, 15.0)],
        lambda t, q, v, x, u: [0.5, -0.3],
    )
    run = bc.simulate(s, 8.0, step=0.002, every=0.1)
    assert np.abs(run.q[-1] - [0.5, -0.3]).max() < 1e-3
    assert run["shoulder.command"][-1] == 0.5


def test_vectors_of_a_control_calculate_like_arrays() -> None:
    def by_element(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"shoulder": -2.0 * q[0] - v["shoulder"], "elbow": 1.0 - 2.0 * q["elbow"] - v[1]}

    def by_vector(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return np.array([0.0, 1.0]) - 2.0 * q - v

    a, b = (bc.simulate(arm(), 0.2, [0.4, 0.2], step=0.01, control=f) for f in (by_element, by_vector))
    close(a.q, b.q, 1e-13)
