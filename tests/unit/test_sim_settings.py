"""Settings in groups and by shortcuts, a program stepped without the simulator, and a stored choice of method."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.kernels import auto_method
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError


def test_groups_and_shortcuts_are_equivalent() -> None:
    m = bc.zoo.chain(2)
    short = bc.simulate(m, 0.1, [0.3, 0.1], integrator="dopri5", tolerance=1e-8, every=0.01, threads=2)
    how = bc.Solver("dopri5", tolerance=1e-8)
    groups: dict[str, Any] = {"saving": bc.Saving(every=0.01), "where": bc.Where(threads=2)}
    grouped = bc.simulate(m, 0.1, [0.3, 0.1], solver=how, **groups)
    mixed = bc.simulate(m, 0.1, [0.3, 0.1], solver=bc.Solver("dopri5"), tolerance=1e-8, **groups)
    kept = bc.Simulator(m, solver=how).run(0.1, [0.3, 0.1], every=0.01, threads=2)
    for run in (grouped, mixed, kept):
        np.testing.assert_array_equal(run.q, short.q)
        assert run.provenance["threads"] == 2


def test_run_overrides_settings_of_its_simulator() -> None:
    sim = bc.Simulator(bc.zoo.chain(2), solver=bc.Solver(step=1e-2), saving=bc.Saving(every=2e-2))
    assert len(sim.run(0.1)) == 6
    assert len(sim.run(0.1, step=5e-3, every=5e-3)) == 21
    assert len(sim.run(0.1)) == 6
    with pytest.raises(TypeError, match=r"run\(\) got 'tolerence'; settings of a run are step, tolerance"):
        sim.run(0.1, tolerence=1e-3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"solver": bc.Solver(step=1e-3), "step": 1e-2}, r"step is given twice: step=0.01, and solver=Solver\(step="),
        ({"saving": bc.Saving(keep="final"), "keep": "final"}, "keep is given twice"),
        ({"where": bc.Where(threads=2), "threads": 3}, "threads is given twice"),
        ({"solver": "rk4"}, r"solver is 'rk4'; expected Solver\(integrator, step,"),
        ({"where": bc.Where(machine="threads")}, "runs are distributed by threads="),
    ],
)
def test_duplicate_or_misplaced_settings_raise(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        bc.simulate(bc.zoo.chain(2), 0.1, **given)


def test_a_program_is_all_that_a_stepper_needs() -> None:
    """A program is sufficient for a stepper: names, starts, graphs and the places of their results."""
    s = bc.system(bc.zoo.chain(2), control=lambda t, q, v, x, u: [u["push"], -v[1]], inputs={"push": 0.5})
    simulator = bc.Simulator(s)
    program = simulator.program()
    ports, layout = program.ports, program.layout
    assert ports.elements == {"joint1.q": "rad", "joint2.q": "rad", "joint1.v": "rad/s", "joint2.v": "rad/s"}
    u = np.array(list(ports.inputs.values()))
    state = program.start.evaluate(s=program.initial_states(np.array([ports.rest]), 1e-3)[:, 0], u=u)["s"]
    for _ in range(50):
        state = program.tick.evaluate(s=state, u=u)["s"]
    run = simulator.run(0.05)
    np.testing.assert_allclose(state[layout.span("y")], np.concatenate([run.q[-1], run.v[-1]]), rtol=1e-12)
    seen = ports.outputs.evaluate(t=state[layout.place("t")], y=state[layout.span("y")], u=u)
    for name in ("joint1.a", "joint2.tau"):
        key, i = ports.columns[name]
        np.testing.assert_allclose(seen[key][i], run[name][-1], rtol=1e-12)


@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_program_of_loops_is_stepped(form: str) -> None:
    """A program with loops is stepped in the same way: it stays at rest with its loops closed."""
    simulator = bc.Simulator(bc.zoo.four_bar(), form=form)
    program = simulator.program()
    state = program.start.evaluate(s=program.initial_states(program.ports.rest[None], 1e-3)[:, 0])["s"]
    for _ in range(50):
        state = program.tick.evaluate(s=state)["s"]
    run = simulator.run(0.05, q0=program.ports.rest[: bc.zoo.four_bar().nq])
    assert state[program.live] == 1.0
    assert np.abs(run.v[-1]).max() > 0.1
    np.testing.assert_allclose(state[program.layout.span("y")], np.concatenate([run.q[-1], run.v[-1]]), atol=1e-9)


def test_a_method_is_chosen_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice of a method is stored on disk with all its inputs, so the second start traces nothing.

    A user-defined method leads to a new choice.
    """
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    m, request, traces = bc.zoo.chain(9, twist="general"), Request("forward_dynamics"), 0

    def counted(frame: FrameType, event: str, _: Any) -> None:
        nonlocal traces
        traces += event == "call" and frame.f_code.co_qualname == "trace"

    def chosen() -> tuple[str, int]:
        nonlocal traces
        traces = 0
        sys.setprofile(counted)
        try:
            return auto_method(m, request).name, traces
        finally:
            sys.setprofile(None)

    (first, some), (again, none) = chosen(), chosen()
    assert first == again
    assert some > 1
    assert none == 0
    monkeypatch.setitem(METHODS, "own", METHODS["aba"])
    assert chosen()[1] > 1
