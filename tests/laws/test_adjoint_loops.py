"""Gradients of runs with closed loops and sampled controllers equal central differences of whole runs.

The runs do not use the adjoint: simulate closes loops, chooses coordinates and takes samples with its own program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.excavators.linkage_system import holding, hydraulics
from loops import FRAMED, Closed, at_random, looped
from trees import few

Array = np.ndarray[Any, Any]
E = 1e-4
SMOOTH = {"rel": 2e-6, "abs": 1e-7}  # accuracy of central differences with E on these runs


def running(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return u["a"] * u["a"] + q[0] * q[0] + v[-1] * v[-1] + bc.sin(t) * q[-1]


def final(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return q[-1] * v[0] + q[0] + v[-1] * v[-1]


def pushed(m: bc.Mechanism, **more: Any) -> bc.System:
    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [u["a"] / (k + 1.0) - 0.2 * w for k, w in enumerate(v)]

    return bc.system(m, control=control, inputs=["a"], outputs={"r": running, "f": final}, **more)


class Valued:
    """The scalar result of a whole run."""

    def __init__(self, plant: bc.System, seconds: float, **how: Any) -> None:
        own = {key: how.pop(key) for key in ("integrator", "form") if key in how}
        self.sim = bc.Simulator(plant, summary=["integral(r)", "final(f)"], **own)
        self.how, self.seconds = how, seconds

    def __call__(self, *start: Any, **given: Any) -> float:
        run = self.sim.run(self.seconds, *start, **self.how, **given)
        return float(run["integral(r)"][0] + run["final(f)"][0])


@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_a_linkage_by_every_form(form: str) -> None:
    """Gradients by inputs, by a free parameter that also changes the closure, and by the start along the null space."""
    m = bc.zoo.four_bar().free("coupler.mass")
    plant, a = pushed(m), np.random.default_rng(0).normal(size=4)
    how: dict[str, Any] = {"step": 0.005, "input_step": 0.02}
    value = Valued(plant, 0.08, form=form, **how)
    found = bc.gradient(plant, 0.08, running="r", final="f", form=form, inputs={"a": a}, **how)
    assert found.value == pytest.approx(value(inputs={"a": a}), rel=1e-13)
    for k in (0, 3):
        e = E * np.eye(4)[k]
        told = (value(inputs={"a": a + e}) - value(inputs={"a": a - e})) / (2 * E)
        assert found.inputs["a"][k] == pytest.approx(told, **SMOOTH)
    mass = m.parameters.nominal[0]
    told = [value(inputs={"a": a}, parameters={"coupler.mass": mass + e}) for e in (E, -E)]
    assert found.parameters["coupler.mass"] == pytest.approx((told[0] - told[1]) / (2 * E), **SMOOTH)
    start_agrees(m, found, value, m.assemble()[0], {"inputs": {"a": a}})


def start_agrees(m: bc.Mechanism, found: bc.Gradient, value: Valued, q: Array, given: dict[str, Any]) -> None:
    """Move each independent joint; all others follow the loops."""
    names = list(m.columns[1])
    places = [names.index(n) for n in found.independent]
    others = np.array([0.0 if i in places else 1.0 for i in range(m.nv)])
    tree = m.tree if not m.parameters else m.at().tree
    for i in places:
        ends = []
        for e in (E, -E):
            moved = m.at().assemble(q + e * np.eye(m.nq)[i], fixed=list(found.independent))[0]
            ends.append(value(moved, **given))
        assert found.q0[i] == pytest.approx((ends[0] - ends[1]) / (2 * E), **SMOOTH)
        ends = [value(q, consistent_velocity(tree, q, e * np.eye(m.nv)[i], free=others), **given) for e in (E, -E)]
        assert found.v0[i] == pytest.approx((ends[0] - ends[1]) / (2 * E), **SMOOTH)
    rest = [i for i in range(m.nv) if i not in places]
    assert not found.v0[rest].any()
    assert np.abs(found.q0[rest]).max(initial=0.0) < 1e-10


@at_random
@few(4)
@given(looped(FRAMED, most=1, max_bodies=3), st.integers(0, 1000))
def test_random_loops(example: Closed, seed: int) -> None:
    m, q = example
    if not m.loops or not m.loop_analysis.mobility:
        return
    plant, how = pushed(m), {"step": 0.005, "inputs": {"a": 0.7}}
    try:
        run = bc.simulate(plant, 0.02, q, **how)
    except bc.InputError:  # a configuration that no run can start from
        return
    if run.stops[0].reason != "end" or np.abs(run.v).max() > 20.0:
        return
    found, value = bc.gradient(plant, 0.02, q, running="r", final="f", **how), Valued(plant, 0.02, step=0.005)
    ends = [value(q, inputs={"a": 0.7 + e}) for e in (E, -E)]
    size = 1.0 + abs(float(found.value))
    assert found.inputs["a"] == pytest.approx((ends[0] - ends[1]) / (2 * E), rel=1e-5, abs=1e-6 * size)


def test_a_batch_of_linkages_and_checkpoints() -> None:
    m = bc.zoo.four_bar()
    adjoint = bc.Adjoint(pushed(m), running, final)
    q = np.array([m.assemble([a, 0.0, 0.0], fixed=["A"])[0] for a in (-0.1, 0.0, 0.1, 0.2, 0.3)])
    how: dict[str, Any] = {"inputs": {"a": np.linspace(0.0, 1.0, 5)}, "step": 0.01}
    many, cut = adjoint.run(0.1, q, **how), adjoint.run(0.1, q, checkpoints=3, **how)
    np.testing.assert_array_equal(many.q0, cut.q0)
    np.testing.assert_array_equal(many.inputs["a"], cut.inputs["a"])
    one = adjoint.run(0.1, q[3], inputs={"a": 0.75}, step=0.01)
    np.testing.assert_allclose(many.q0[3], one.q0, atol=1e-10)
    np.testing.assert_allclose(many.inputs["a"][3], one.inputs["a"], rtol=1e-10)


@pytest.mark.parametrize(("name", "delay"), [("rk4", 0.0), ("abm4", 0.015)])
def test_samples_of_a_controller_with_states(name: str, delay: float) -> None:
    def digital(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [u["a"] - 3.0 * q[0] * q[0] - v[0], -2.0 * q[1] * u["a"] - 0.1 * x["sum"]], [x["sum"] + q[0]]

    m = bc.zoo.load("chain(2)")
    sampled = bc.Sampled(digital, every=0.02, states={"sum": 0.0}, delay=delay)
    plant = bc.system(m, control=sampled, inputs=["a"], outputs={"r": running, "f": final})
    a, q, how = np.random.default_rng(0).normal(size=5), np.array([0.3, 0.5]), {"input_step": 0.03, "step": 0.005}
    found = bc.gradient(plant, 0.13, q, running="r", final="f", integrator=name, inputs={"a": a}, **how)
    value = Valued(plant, 0.13, integrator=name, **how)
    assert found.value == value(q, inputs={"a": a})
    for k in range(5):
        e = E * np.eye(5)[k]
        told = (value(q, inputs={"a": a + e}) - value(q, inputs={"a": a - e})) / (2 * E)
        assert found.inputs["a"][k] == pytest.approx(told, **SMOOTH)
    for k in range(2):
        e = E * np.eye(2)[k]
        told = (value(q + e, inputs={"a": a}) - value(q - e, inputs={"a": a})) / (2 * E)
        assert found.q0[k] == pytest.approx(told, **SMOOTH)


def test_an_actuator_at_its_limit_has_no_slope() -> None:
    """The derivative belongs to the active branch: a saturated motor does not respond."""
    plant = bc.system(
        bc.zoo.load("pendulum"),
        control=lambda t, q, v, x, u: [bc.minimum(bc.maximum(u["a"], -1.0), 1.0)],
        inputs=["a"],
    )
    a = np.array([0.5, 3.0, -3.0, -0.5])
    found = bc.gradient(plant, 0.04, final="hinge.q", inputs={"a": a}, input_step=0.01)
    assert (found.inputs["a"] != 0.0).tolist() == [True, False, False, True]


def test_partition_changes_where_the_first_is_singular() -> None:
    """For a ball on a rod, height and lateral position take turns as independent coordinate."""
    b = bc.Builder("ball")
    b.body("slide", mass=0.3, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "slide", axis=(1, 0, 0))
    b.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "slide", "ball", axis=(0, 0, 1))
    b.close("rod", "distance", "ground", "ball", point_a=(0, 0, 1.0), point_b=(0, 0, 0))
    m = b.build()
    q, above = (m.assemble([np.sin(a), 1.0 - np.cos(a)])[0] for a in (1.3, 1.8))
    value = Valued(pushed(m), 0.8, step=0.005)
    found = bc.gradient(pushed(m), 0.8, q, running=running, final=final, inputs={"a": 0.3}, step=0.005)
    ends = [value(q, inputs={"a": 0.3 + e}) for e in (E, -E)]
    assert found.inputs["a"] == pytest.approx((ends[0] - ends[1]) / (2 * E), **SMOOTH)
    start_agrees(m, found, value, q, {"inputs": {"a": 0.3}})
    told = value.sim.run(0.8, q, inputs={"a": 0.3}, step=0.005).provenance
    assert (found.independent, told["partitions changed"]) == (("x",), 1)
    with pytest.warns(RuntimeWarning, match='form="projected" needs no such choice'):
        whole = bc.gradient(pushed(m), 1.5, above, final=final, inputs={"a": 0.3}, step=0.005)
    assert np.isnan(whole.inputs["a"])
    assert np.isnan(whole.q0).all()
    value = Valued(pushed(m), 1.5, step=0.005, form="projected")
    found = bc.gradient(
        pushed(m), 1.5, above, running=running, final=final, form="projected", inputs={"a": 0.3}, step=0.005
    )
    ends = [value(above, inputs={"a": 0.3 + e}) for e in (E, -E)]
    assert found.inputs["a"] == pytest.approx((ends[0] - ends[1]) / (2 * E), **SMOOTH)


def test_the_hydraulic_excavator() -> None:
    """Four loops and four valves with spools and oil, differentiated by all commands over time."""
    drives = [replace(a, valve=replace(a.valve, overlap=0.0)) for a in holding(hydraulics())]
    machine = bc.zoo.excavator_linkage()
    rest = bc.equilibrium(bc.system(machine, drives), hold="q")
    names = ["swing", "boom", "stick", "bucket"]
    plant = bc.system(
        machine,
        drives,
        lambda t, q, v, x, u: [u[n] for n in names],
        inputs=names,
        outputs={"r": lambda t, q, v, x, u: q["boom"] ** 2, "f": lambda t, q, v, x, u: q["stick"] + v["bucket"]},
    )
    commands = {n: np.full(5, u0 + 0.05) for n, u0 in zip(names, rest.inputs.values(), strict=True)}
    how: dict[str, Any] = {"x0": rest.x, "input_step": 0.01}
    found = bc.gradient(plant, 0.05, rest.q, running="r", final="f", inputs=commands, **how)
    value = Valued(plant, 0.05, **how)
    for name in ("boom", "stick"):
        e = E * np.eye(5)[2]
        ends = [value(rest.q, inputs={**commands, name: commands[name] + d}) for d in (e, -e)]
        assert found.inputs[name][2] == pytest.approx((ends[0] - ends[1]) / (2 * E), rel=1e-5)
