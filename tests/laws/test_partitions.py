"""The minimal form in steppers and C, which cannot stop to choose other dependent coordinates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.graph import trace
from bellcrank.graph.inline import inline_small
from bellcrank.scalar import where
from bellcrank.sim.constraints.loop_closure import MAX_E
from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics
from bellcrank.sim.constraints.multi_partition_program import LARGEST_PARTITION_COUNT, chosen_partitions
from targets.test_c99 import needs_cc
from targets.test_export_c import ran
from targets.test_export_wasm import given, needs_node, row, said

RUNS = host().lanes("float64") + 1
SECONDS = 2.0  # a rod pendulum changes its coordinates several times in this time


@pytest.fixture(scope="module")
def plant() -> bc.System:
    return bc.system(bc.zoo.rod_pendulum())


@pytest.fixture(scope="module")
def fall(plant: bc.System) -> bc.Record:
    run = bc.simulate(plant, SECONDS, form="minimal", step=1e-3, every=0.02)
    assert run.provenance["partitions changed"] > 1
    return run


def test_stepper_changes_partitions_as_a_run(plant: bc.System, fall: bc.Record) -> None:
    env = bc.stepper(plant, every=0.02, step=1e-3, form="minimal")
    found = [env.step().copy() for _ in range(len(fall.t) - 1)]
    np.testing.assert_array_equal(found, np.column_stack([fall.q, fall.v])[1:])
    with pytest.raises(bc.InputError, match="form=projected"):
        _ = env.transition


def swinging_bars() -> bc.Mechanism:
    """Return a four-bar in which two choices of dependent coordinates are good from the start."""
    b = bc.Builder("bars")
    b.body("crank", mass=1, com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.001))
    b.body("coupler", mass=2, com=(0.3, 0, 0.3), inertia=(0.001, 0.05, 0.05))
    b.body("rocker", mass=1, com=(0.5, 0, 0.15), inertia=(0.01, 0.01, 0.001))
    b.joint("A", "revolute", "ground", "crank", axis=(0, 1, 0))
    b.joint("B", "revolute", "crank", "coupler", point=(0, 0, 0.3), axis=(0, 1, 0))
    b.joint("D", "revolute", "ground", "rocker", point=(0.6, 0, -0.05), axis=(0, 1, 0))
    b.close("C", "revolute", "coupler", "rocker", point=(0.6, 0, 0.32), axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize("integrator", ["euler", "midpoint", "rk4"])
def test_stepper_starts_with_the_dependent_coordinates_of_a_run(integrator: str) -> None:
    """With other dependent coordinates, the states differ by the error of the steps, which is largest for euler."""
    m = swinging_bars()
    s = bc.system(m)
    env = bc.stepper(s, every=0.05, step=1e-3, form="minimal", integrator=integrator)
    for angle, speed in ((0.1, 1.0), (-1.0, 3.0), (1.5, -3.0)):
        q, v = m.assemble({"A": angle}, {"A": speed}, fixed=["A"])
        run = bc.simulate(s, 0.4, q, v, step=1e-3, every=0.05, form="minimal", integrator=integrator)
        env.reset(start=np.concatenate([q, v]))
        rows = [env.step().copy() for _ in range(len(run.t) - 1)]
        np.testing.assert_allclose(rows, np.column_stack([run.q, run.v])[1:], rtol=0, atol=1e-12)


def test_every_lane_has_a_separate_partition(plant: bc.System, fall: bc.Record) -> None:
    """Lanes that start at different times of the fall change at different times, each as if it were alone."""
    first = np.column_stack([fall.q, fall.v])[: 5 * RUNS : 5]
    env = bc.stepper(plant, RUNS, 0.02, step=1e-3, form="minimal")
    env.reset(start=first)
    for _ in range(40):
        env.step()
    many, one = env.state, bc.stepper(plant, every=0.02, step=1e-3, form="minimal")
    for start, end in zip(first, many, strict=True):
        one.reset(start=start)
        for _ in range(40):
            one.step()
        np.testing.assert_allclose(one.state, end, rtol=0, atol=1e-12 * np.abs(end).max())


def test_a_drawn_start_is_closed_and_has_a_partition(plant: bc.System) -> None:
    angle = plant.mechanism.columns[0][0]
    start = {f"{angle}.q": 3.0}
    env = bc.stepper(
        plant, RUNS, 0.02, step=1e-3, form="minimal", limit=0.1, restart=True, outputs=[f"{angle}.q", "plane.1.a"],
        start=lambda random: {f"{angle}.q": random.uniform(-0.5, 0.5)},
    )  # fmt: skip
    for k in range(12):
        closed = plant.mechanism.closure(env.state[:, : plant.mechanism.nq])
        assert np.abs(closed).max() < 1e-10
        assert np.isfinite(env.step()).all()
        assert set(env.reasons) == {"limit" if k % 5 == 4 else ""}
    with pytest.raises(bc.InputError, match="does not close the loops"):
        env.reset(start=start)


@needs_cc
def test_in_c_as_well(plant: bc.System, fall: bc.Record, tmp_path: Path) -> None:
    rows = np.column_stack([fall.q, fall.v])
    bc.export(plant, tmp_path / "it", form="minimal", step=1e-3)
    y, status = ran(tmp_path / "it", plant.mechanism.name, rows.shape[1], round(SECONDS / 1e-3), rows[0], np.zeros(0))
    assert status == 0
    np.testing.assert_allclose(y, rows[-1], rtol=0, atol=1e-9 * np.abs(rows).max())  # the fall is chaotic


@needs_node
def test_in_webassembly_as_well(plant: bc.System, fall: bc.Record, tmp_path: Path) -> None:
    rows, (q, v) = np.column_stack([fall.q, fall.v]), plant.mechanism.columns
    names = [*(f"{n}.q" for n in q), *(f"{n}.v" for n in v)]
    bc.export(plant, tmp_path / "it", to="wasm", form="minimal", step=1e-3)
    script = f"""{given(dict(zip(names, rows[0].tolist(), strict=True)))}
        m.start();
        const rows = [{row(names)}];
        for (let k = 1; k < {len(rows)}; k++) {{
          if (m.step(20)) throw new Error("it stopped");
          rows.push({row(names)});
        }}
        console.log(JSON.stringify(rows));"""
    np.testing.assert_allclose(said(tmp_path / "it", script), rows, rtol=0, atol=1e-9 * np.abs(rows).max())


def test_guarded_calls_run_only_when_needed() -> None:
    """A guarded call runs only if some lane needs its result; otherwise its result is undefined."""
    inner = trace("inner", lambda x, go: {"y": [x[0] * x[0]]}, {"x": (1,), "go": ()})
    guarded = replace(inner, only="go")

    def outer(x: Any) -> dict[str, Any]:
        go = where(x[0] > 1.0, 1.0, 0.0)
        return {"y": [where(go > 0.0, guarded.call(x=x, go=go)["y"][0], -1.0)]}

    graph = trace("outer", outer, {"x": (1,)})
    x = np.linspace(-3.0, 3.0, 23)[:, None]
    np.testing.assert_array_equal(graph.evaluate(x=x)["y"], np.where(x > 1.0, x * x, -1.0))
    assert routines({"outer": graph}, 4, 4, "float64").text.count("label %idle") == 1
    assert inline_small(graph) is graph  # otherwise it would be computed inline everywhere


@pytest.mark.parametrize("name", ["four_bar", "bricard", "ring"])
def test_some_partition_is_well_conditioned_in_every_pose(name: str) -> None:
    """A ring of twelve bodies that collapses moves far from its start, and some partition stays well conditioned.

    Without a good partition, dependent coordinates move many times as far as the others, and steps are less accurate by
    that factor: with two partitions, chosen near the start, it was 22 times, and a stepper had 200 times the error of a
    run.
    """
    m = bc.zoo.load(name)
    by = bc.Simulator(bc.system(m), form="minimal").dynamics
    assert isinstance(by, LoopedDynamics)
    parts = chosen_partitions(by)
    assert len(parts) <= LARGEST_PARTITION_COUNT
    run = bc.simulate(m, 1.0, form="projected", every=0.02)
    assert run.stops[0].reason == "end"
    for C in evaluate_constraints(m.tree, run.q).C[:, list(by.rank.rows)]:
        assert min(by.closure.partition_cost(C, x.part.order) for x in parts) <= MAX_E
