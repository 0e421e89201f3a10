"""Whole simulations in GPU code, emulated on this processor (emulated.py), agree with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import gpu_runs
from bellcrank.emit.cuda.run_kernel import RunKernel
from bellcrank.errors import InputError
from bellcrank.sim.run.gpu_runs import GpuProgram
from emulated import emulated
from ticking import AT, Spelled, begun, program

__all__ = ["emulated"]  # a fixture
Emulated = Callable[[int], None]


@pytest.mark.parametrize("capacity", [2, 100])
@pytest.mark.parametrize("kind", ["plain", "fed", "watched", "all"])
def test_run_kernel_equals_the_loop_in_python(emulated: Emulated, kind: str, capacity: int, monkeypatch: Any) -> None:
    """Launches of one tick, with too little space for rows, give the rows and states of the loop in Python."""
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.FIRST_TICKS", 1)
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.PAUSE_SECONDS", 0.0)
    p = program(kind)
    s, inputs = begun(7, [23, 0, 31, 7, 1])
    spelled = Spelled(p, s, inputs)
    while spelled.run(100, 1000):
        pass
    given = inputs if p.nu else np.zeros((7, 1, 0))
    final = np.ascontiguousarray(s)
    pieces = GpuProgram(p, "float64").run_to_end(final, given, np.zeros((7, 0)), capacity, lambda s: True)
    signs = [AT["due"]] if kind in ("plain", "fed") else []  # a written row is no longer due
    rest = [k for k in range(len(final)) if k not in signs]
    np.testing.assert_allclose(final[rest], spelled.s[rest], rtol=1e-13, atol=1e-13)
    assert (len(pieces) > 1) == (capacity == 2)
    for run in range(7):
        rows = np.concatenate([rows[: counts[run], :, run] for rows, counts in pieces])
        want = np.array(spelled.rows[run]).reshape(-1, p.row)
        np.testing.assert_allclose(rows, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", gpu_runs.CASES)
def test_a_run_is_that_of_the_cpu(emulated: Emulated, name: str) -> None:
    cpu, gpu = (gpu_runs.done(name, target) for target in ("cpu", "cuda"))
    gpu_runs.same(gpu, cpu)
    assert gpu.provenance["steps"] == cpu.provenance["steps"]


def test_more_bounces_than_rows() -> None:
    """The cases above have more bounces than the record has room for (8 of each event), so that full rows occur."""
    events = gpu_runs.done("bounces dopri5", "cpu").provenance["events"]
    assert sum(e["run"] == 0 for e in events) > 2 * 8 + 2


def test_linear_systems_that_are_loops_here_are_written_out_there(emulated: Emulated, monkeypatch: Any) -> None:
    monkeypatch.setattr("bellcrank.sim.program.tree_dynamics.OPERATOR_FROM_STATES", 1)
    given = {"q0": [0.3, -0.2], "step": 1e-3, "integrator": "rodas4"}
    cpu, gpu = (bc.simulate(bc.zoo.chain(2), 3e-3, target=target, **given) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.q, cpu.q, rtol=1e-12)


def test_partitions_are_changed_by_the_host(emulated: Emulated) -> None:
    cpu, gpu = (gpu_runs.done("rod dopri5", target) for target in ("cpu", "cuda"))
    assert gpu.provenance["partitions changed"] == cpu.provenance["partitions changed"] > 0


def test_runs_that_do_not_fit_are_done_in_parts(emulated: Emulated) -> None:
    whole = gpu_runs.done("bounces dopri5", "cuda")
    emulated(8 * 300 * 3)
    with pytest.warns(RuntimeWarning, match="do not fit the GPU's memory"):
        parts = gpu_runs.done("bounces dopri5", "cuda")
    np.testing.assert_array_equal(parts.q, whole.q)
    assert parts.provenance["events"] == whole.provenance["events"]


def test_failed_run_stops_alone(emulated: Emulated) -> None:
    """A run that fails stops alone: one of three diverges, and the others end as they would alone."""
    m = gpu_runs.ball()
    s = bc.system(m, control=lambda t, q, v, x, u: [u["k"] * v["z"] * v["z"] * v["z"]], inputs=["k"])
    given: dict[str, Any] = {"v0": [2.0], "inputs": {"k": np.array([[0.0], [5.0], [-1.0]])}, "input_step": 10.0}
    for how in ({"step": 1e-3}, {"integrator": "dopri5", "tolerance": 1e-8}):
        cpu, gpu = (bc.simulate(s, 1.0, target=target, every=0.1, **given, **how) for target in ("cpu", "cuda"))
        gpu_runs.same(gpu, cpu)
        assert [stop.reason == "end" for stop in gpu.stops] == [True, False, True]


@pytest.mark.parametrize("events", [False, True], ids=["plain", "watched"])
def test_steps_that_are_too_long_are_found_as_on_the_cpu(emulated: Emulated, events: bool) -> None:
    b = bc.Builder("oscillator", gravity=(0, 0, 0))
    b.body("mass", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "mass", axis=(1, 0, 0), stiffness=1e4, damping=0.5)
    turn = bc.Event("turn", lambda t, q, v, x, u: v["x"], "record")
    how: dict[str, Any] = {"v0": np.linspace(-1.0, 2.0, 5)[:, None], "events": [turn] if events else []}
    for step, reason in ((1.25e-2, "not resolved"), (1.25e-3, "end")):
        cpu, gpu = (bc.simulate(b.build(), 0.5, step=step, target=target, **how) for target in ("cpu", "cuda"))
        assert {stop.reason for stop in gpu.stops} == {reason}
        assert [stop.reason for stop in gpu.stops] == [stop.reason for stop in cpu.stops]
        one, other = (run.provenance["change by half the step"] for run in (cpu, gpu))
        assert (other["of"], other["run"]) == (one["of"], one["run"])
        assert other["change"] == pytest.approx(one["change"], rel=1e-6)


def test_single_precision_has_fixed_steps(emulated: Emulated) -> None:
    m, seconds, settings = gpu_runs.arm("rk4", False)
    cpu = bc.simulate(m, seconds, **settings)
    gpu = bc.simulate(m, seconds, target="cuda", dtype="float32", **settings)
    np.testing.assert_allclose(gpu.q, cpu.q, atol=1e-5)
    with pytest.raises(InputError, match='dtype="float64"'):
        gpu_runs.done("bounces rk4", "cuda", dtype="float32")
    with pytest.raises(InputError, match='dtype="float64"'):
        gpu_runs.done("arm dopri5 chosen", "cuda", dtype="float32")


def test_ctrl_c_keeps_recorded_rows(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.FIRST_TICKS", 5)
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.PAUSE_SECONDS", 0.0)
    what, seconds, settings = gpu_runs.bounces(**gpu_runs.CHOSEN)

    def progress(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        bc.simulate(what, seconds, target="cuda", progress=progress, **settings)
    record = caught.value.record  # type: ignore[attr-defined]
    cpu = bc.simulate(what, seconds, **settings)
    known = np.isfinite(record.q)
    assert known.any(axis=1).all()
    assert not known.all()
    np.testing.assert_allclose(record.q[known], cpu.q[:, : record.q.shape[1]][known], rtol=1e-9, atol=1e-9)


# -- registers


@pytest.mark.parametrize("shared", [400 * 1024, 20 * 1024])
def test_values_wait_where_there_is_room(emulated: Emulated, shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are spilled where there is room.

    With 80 registers to shared memory, else to local memory of the thread.
    """
    monkeypatch.setattr("bellcrank.emit.cuda.run_kernel.MAX_REGISTERS", 80)
    monkeypatch.setattr("bellcrank.emit.cuda.run_kernel.SHARED_BYTES", shared)
    tick = loop_of("arm dopri5 chosen").procedures[-1]
    assert tick.register_variables == 0
    assert (tick.crossing_variables > tick.shared_variables) == (shared == 20 * 1024)
    cpu, gpu = (gpu_runs.done("arm dopri5 chosen", target) for target in ("cpu", "cuda"))
    gpu_runs.same(gpu, cpu)


def loop_of(name: str) -> RunKernel:
    what, _, settings = gpu_runs.CASES[name]()
    simulator = bc.Simulator(what, settings["integrator"], events=settings.get("events", ()))
    return RunKernel(simulator.program((True, True)))


def test_rare_code_takes_no_registers_of_the_tick() -> None:
    """Rare code takes no registers of the tick.

    Values that live across calls in events, rows and starts are neither in registers nor in shared memory.
    """
    loop = loop_of("fed event dopri5")
    rare = [p for p in loop.procedures if p.name in ("start", "observe", "locate")]
    assert len(rare) == 3
    assert all(p.register_variables == p.slots == 0 for p in rare)
    assert any(p.crossing_variables for p in rare)


def test_a_step_leaves_its_polynomial_in_memory() -> None:
    """A step's polynomial is in memory: a tick writes it and does not read it, so it takes no registers."""
    what, _, settings = gpu_runs.CASES["bounces dopri5"]()
    simulator = bc.Simulator(what, "dopri5", events=settings["events"])
    made = simulator.program((True, True))
    dense = made.layout.span("dense")
    loop = RunKernel(made)
    assert set(range(dense.start, dense.stop)) <= loop.memory_elements
    assert not set(loop.register_elements) & loop.memory_elements
    assert len(loop.procedures[-1].early_stores) >= dense.stop - dense.start


def test_run_kernel_assembles(tmp_path: Path) -> None:
    from test_cuda import assembled

    text = loop_of("bounces dopri5").ptx
    assert text.count(".entry") == 1
    _, spilled = assembled(text, tmp_path)
    assert spilled < 600
