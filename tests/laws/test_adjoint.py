"""Gradients of runs by the adjoint equal those by tangents, by sensitivities and by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.actuators import PID, DCMotor, SpringDamper
from bellcrank.graph import CustomPullbackGraph
from bellcrank.graph.inline import inline
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from bellcrank.sim.run import adjoint_sweeps as sweeps
from trees import HOLONOMIC, close, few, trees

Array = np.ndarray[Any, Any]
H = 0.01


def pushed(m: Mechanism, **more: Any) -> bc.System:
    """A system in which two inputs push all joints, one of them through a function that is nonlinear in the state."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [
            (k + 1.0) * u["a"] - 0.3 * w + bc.sin(t + k) * u["b"] * bc.cos(w) for k, w in enumerate(v)
        ]  # fmt: skip

    return bc.system(m, control=control, inputs=["a", "b"], **more)


def running(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return u["a"] * u["a"] + sum(a * a for a in v) + bc.sin(t) * q[0]


def final(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return sum((k + 1.0) * a for k, a in enumerate(q)) + v[0] * v[-1] + u["b"] * u["a"]


def tangent(adjoint: bc.Adjoint, steps: int, hold: int, start: Array, table: Array, p: Array, rng: Any) -> Any:
    """Directional derivative of the scalar by tangents, step by step.

    The direction contains the start, the inputs and the parameters.
    """
    moves = [rng.normal(size=x.shape) for x in (start, table, p)]
    along, n = inline(adjoint.steps.step).jvp(), adjoint.dynamics.plain_size
    y, dy = (np.concatenate([x, np.zeros(n - len(start))]) for x in (start, moves[0]))
    memory = dmemory = np.zeros(adjoint.steps.memory_size)
    line = 0
    for k in range(steps):
        before, line = line, min(k // hold, len(table) - 1)
        now = {"t": k * H, "y": y, "h": H, "u": table[line], "memory": memory, "p": p}
        now |= {"d_t": 0.0, "d_y": dy, "d_h": 0.0, "d_u": moves[1][line], "d_memory": dmemory, "d_p": moves[2]}
        now |= {"fresh": float(k == 0 or line != before), "d_fresh": 0.0}
        found = along.evaluate(**{name: now[name] for name in along.inputs})
        y, dy = found["y"], found["d_y"]
        memory, dmemory = (found.get(name, memory) for name in ("memory", "d_memory"))
    line = min(steps // hold, len(table) - 1)
    given = {"t": steps * H, "y": y, "u": table[line], "p": p, "w_value": 1.0}
    end = adjoint.end.evaluate(**{name: given[name] for name in adjoint.end.inputs})
    slope = end["g_y"] @ dy + end.get("g_u", 0.0) @ moves[1][line]
    slope += end["g_p"] @ moves[2] if "g_p" in end else 0.0
    return moves, float(end["value"]), float(slope)


def agrees(adjoint: bc.Adjoint, seed: int, steps: int = 6, hold: int = 1, lines: int = 6) -> None:
    s, rng = adjoint.system, np.random.default_rng(seed)
    m = s.mechanism
    q, v, _ = m.random(seed)
    x = np.array([z.initial + 0.1 * rng.normal() for z in s.states])
    table, p = rng.normal(size=(lines, 2)), np.array(s.parameters.nominal)
    moves, value, slope = tangent(adjoint, steps, hold, np.concatenate([q, v, x]), table, p, rng)
    inputs = {"a": table[:, 0], "b": table[:, 1]}
    found = adjoint.run(steps * H, q, v, x, inputs=inputs, input_step=hold * H, step=H)
    close(found.value, value, 1e-10)
    start = np.concatenate([found.q0, found.v0, found.x0])
    total = start @ moves[0] + found.inputs["a"] @ moves[1][:, 0] + found.inputs["b"] @ moves[1][:, 1]
    total += sum(g * d for g, d in zip(found.parameters.values(), moves[2], strict=True))
    size = np.abs(start) @ np.abs(moves[0]) + sum(np.abs(g).sum() for g in found.inputs.values())
    assert abs(total - slope) <= 1e-10 * max(1.0, abs(slope), size)


@few(8)
@given(trees(max_bodies=4, passive=True, armature=True), st.integers(0, 1000))
def test_weights_and_directions_agree_on_random_trees(m: Mechanism, seed: int) -> None:
    agrees(bc.Adjoint(pushed(m), running, final), seed, steps=3, lines=3)


@few(10)
@given(trees(HOLONOMIC, max_bodies=5, passive=True, armature=True, coupled=True), st.integers(0, 1000))
def test_the_short_way_back_is_the_chain_rule(m: Mechanism, seed: int) -> None:
    """The direct reverse pass equals the chain rule.

    The example has an integral of accelerations and a parameter in the mass matrix.
    """
    m = m.free("b0.mass")
    f = bc.Adjoint(pushed(m), f"{m.columns[1][-1]}.a", "energy").dynamics.f
    rng = np.random.default_rng(seed)
    q, v, _ = m.random(seed)
    at = {"t": 0.3, "y": np.concatenate([q, v, [0.2]]), "u": rng.normal(size=2), "p": np.array(m.parameters.nominal)}
    w = rng.normal(size=len(at["y"]))
    short = f.pullback.evaluate(**at, r_dy=f.evaluate(**at)["dy"], w_dy=w)
    assert isinstance(f, CustomPullbackGraph)
    for name, want in f.vjp().evaluate(**at, w_dy=w).items():
        close(short[name], want, 1e-9)


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize(("hold", "lines"), [(1, 8), (3, 2), (2, 5)])
def test_weights_and_directions_agree_for_every_integrator(name: str, hold: int, lines: int) -> None:
    """Lines of inputs may last several steps, end early or stay unused, and one begins at the end of the run."""
    agrees(bc.Adjoint(pushed(bc.zoo.load("chain(2)")), running, final, name), 3, hold=hold, lines=lines)


def test_weights_and_directions_agree_with_actuators_parameters_and_a_floating_base() -> None:
    b = bc.Builder("crane")
    b.body("hull", mass=bc.parameter("hull", 5.0), com=(0, 0.1, 0), inertia=(1, 2, 3))
    b.joint("base", "floating", "ground", "hull")
    b.body("boom", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.2))
    b.joint("boom", "revolute", "hull", "boom", axis=(0, 1, 0), damping=bc.parameter("damping", 0.3))
    b.body("jib", mass=0.7, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.2))
    b.joint("jib", "revolute", "boom", "jib", point=(0.6, 0, 0), axis=(0, 1, 0))
    b.body("hook", mass=0.3, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01))
    b.joint("hook", "spherical", "jib", "hook", point=(0.6, 0, 0))
    plant = bc.system(
        b.build(),
        [PID("boom", 80.0, 10.0, 5.0), DCMotor("jib", 0.3, 1.0, 0.02, 10.0)],
        lambda t, q, v, x, u: {"boom": u["a"], "jib": 3.0 * u["b"]},
        inputs=["a", "b"],
    )
    for name in ("rk4", "euler"):
        agrees(bc.Adjoint(plant, running, final, name), 5)


def test_gradient_equals_sensitivities() -> None:
    m = bc.zoo.load("excavator").free("boom.mass", "stick.mass")
    plant = bc.system(m, control=lambda t, q, v, x, u: [-3.0 * a - b + bc.sin(t) for a, b in zip(q, v, strict=True)])
    q, v, _ = m.random(2)
    names = [*m.parameters, *(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1])]
    how: dict[str, Any] = {"q0": 0.3 * q, "v0": 0.1 * v}
    run = bc.simulate(plant, 0.3, sensitivities=names, every=0.3, **how)
    for column in ("boom.q", "stick.v", "bucket.a"):
        found = bc.gradient(plant, 0.3, final=column, **how)
        ours = [*found.parameters.values(), *found.q0, *found.v0]
        close(found.value, run[column][-1], 1e-11)
        close(ours, [run[f"d({column})/d({name})"][-1] for name in names], 1e-10)


def test_gradient_equals_finite_differences() -> None:
    """Central differences of whole runs and their summaries, which do not use the adjoint, give the same gradient."""
    plant = pushed(bc.zoo.load("stanford"), outputs={"cost": running})
    a, b = np.random.default_rng(0).normal(size=(2, 10))
    found = bc.gradient(plant, 0.1, running="cost", inputs={"a": a, "b": b}, input_step=0.01)

    def value(a: Array, b: Array) -> float:
        run = bc.simulate(plant, 0.1, inputs={"a": a, "b": b}, input_step=0.01, summary=["integral(cost)"])
        return float(run["integral(cost)"][0])

    assert found.value == pytest.approx(value(a, b), rel=1e-12)
    for k in (0, 4, 9):
        e = 1e-4 * np.eye(10)[k]
        assert found.inputs["a"][k] == pytest.approx((value(a + e, b) - value(a - e, b)) / 2e-4, rel=1e-6, abs=1e-9)
        assert found.inputs["b"][k] == pytest.approx((value(a, b + e) - value(a, b - e)) / 2e-4, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["rk4", "dopri5", "abm4"])
def test_checkpoints_change_nothing(name: str) -> None:
    """The result is equal to the last bit: steps between checkpoints are repeated with the integrator's memory."""
    adjoint = bc.Adjoint(pushed(bc.zoo.load("chain(2)")), running, final, name)
    rng = np.random.default_rng(1)
    given = {"q0": rng.normal(size=(9, 2)), "inputs": {"a": rng.normal(size=8), "b": 0.3}, "input_step": 0.03}
    whole, *cut = (adjoint.run(0.23, step=H, checkpoints=n, **given) for n in (1, 2, 5, 7, 23))
    for other in cut:
        for key in ("value", "q0", "v0"):
            np.testing.assert_array_equal(getattr(other, key), getattr(whole, key))
        for key in "ab":
            np.testing.assert_array_equal(other.inputs[key], whole.inputs[key])


def test_checkpoints_beyond_memory_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    adjoint = bc.Adjoint(pushed(bc.zoo.load("chain(2)")), running)
    given: dict[str, Any] = {"inputs": {"a": 0.4, "b": 0.3}, "step": H}
    whole = adjoint.run(1.0, **given)
    rooms = []
    made = adjoint.steps.forward_program
    monkeypatch.setattr("bellcrank.sim.run.adjoint_sweeps.NOTE_BYTES", 8 * 30 * adjoint.steps.note_layout.size)
    swept = sweeps.LaneSweeps.sweep

    def counted(self: Any, program: Any, state: Any, table: Any, parameters: Any, room: int) -> Any:
        rooms.extend([room] if program is made else [])
        return swept(self, program, state, table, parameters, room)

    monkeypatch.setattr(sweeps.LaneSweeps, "sweep", counted)
    cut = adjoint.run(1.0, **given)
    assert len(rooms) > 3
    assert rooms[0] + max(rooms[1:]) <= 31
    np.testing.assert_array_equal(cut.q0, whole.q0)
    assert cut.inputs["a"] == whole.inputs["a"]


@pytest.mark.parametrize("threads", [1, 2])
def test_batch_equals_single_runs(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts and on threads, with starts, inputs and parameters of each run."""
    monkeypatch.setattr("bellcrank.sim.run.adjoint_sweeps.CACHE_BYTES", 1)
    m = bc.zoo.puma600()
    m = m.free(f"{m.bodies[2].name}.mass")
    (mass,) = m.parameters
    adjoint = bc.Adjoint(pushed(m), running, final)
    rng = np.random.default_rng(4)
    q, a, masses = rng.normal(size=(21, 6)), rng.normal(size=(21, 5)), rng.uniform(1, 8, 21)
    common: dict[str, Any] = {"input_step": 0.02, "step": H}
    many = adjoint.run(
        0.1, q, inputs={"a": a, "b": 0.1}, parameters={mass: masses}, threads=threads, **common
    )  # fmt: skip
    assert many.value.shape == (21,)
    assert many.inputs["a"].shape == (21, 5)
    for k in (0, 7, 20):
        one = adjoint.run(0.1, q[k], inputs={"a": a[k], "b": 0.1}, parameters={mass: masses[k]}, **common)
        close(many.value[k], one.value, 1e-12)
        close(many.q0[k], one.q0, 1e-11)
        close(many.inputs["a"][k], one.inputs["a"], 1e-11)
        close(many.inputs["b"][k], one.inputs["b"], 1e-11)
        close(many.parameters[mass][k], one.parameters[mass], 1e-11)


def test_actuators_without_commands() -> None:
    plant = bc.system(
        bc.zoo.load("chain(3)"),
        [SpringDamper(n, 20.0, 1.0) for n in bc.zoo.load("chain(3)").columns[1][:2]],
        inputs={"a": 0.0, "b": 0.0},
    )
    agrees(bc.Adjoint(plant, running, final), 2)


def test_forces_from_outside_and_states_of_the_control() -> None:
    m = bc.zoo.load("excavator")

    def soil(t: Any, pose: Any, velocity: Any) -> Any:
        return [-20.0 * velocity[0], bc.sin(t), 5.0 * pose[0][3]], [0.0, 0.1 * velocity[3], 0.0]

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [100.0 * (u["a"] - a) + x["lag"] for a in q], [u["b"] * q[0] - x["lag"]]

    plant = bc.system(m, control=control, inputs=["a", "b"], states={"lag": 0.3}, forces={"bucket": soil})
    agrees(bc.Adjoint(plant, running, final), 4)
