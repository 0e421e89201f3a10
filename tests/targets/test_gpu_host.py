"""The host side of GPU runs, without a GPU: this processor emulates the kernel (emulated.py).

Starts are made where the kernel runs, one input line serves all runs where possible, parts that fit into memory are
joined again, and the results are those of the CPU.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cuda.device import DeviceError
from bellcrank.sim.run.gpu_runs import GpuProgram
from bellcrank.sim.run.record_builder import Interrupted
from emulated import Function, OutOfMemoryError, emulated

__all__ = ["emulated"]  # a fixture
Array = np.ndarray[Any, Any]
Emulated = Callable[[int], None]
TOLERANCE = {"float64": 1e-11, "float32": 2e-4}


def same(a: bc.Record, b: bc.Record, tolerance: float) -> None:
    assert a.columns == b.columns
    assert a.batch == b.batch
    assert [s.reason for s in a.stops] == [s.reason for s in b.stops]
    for name in a.columns:
        scale = max(1.0, float(np.nanmax(np.abs(b[name]))))
        if not name.startswith("t_"):
            np.testing.assert_allclose(a[name], b[name], rtol=0, atol=tolerance * scale, err_msg=name)


def system() -> bc.System:
    m = bc.zoo.chain(2).free("link2.mass")
    return bc.system(
        m, control=lambda t, q, v, x, u: [u["push"] - q[0], -v[1]], inputs={"push": 0.0},
        outputs={"effort": lambda t, q, v, x, u: u["push"] * u["push"] + v[0] * v[0]},
    )  # fmt: skip


ASKED = ["max(effort)", "min(effort)", "integral(effort)", "rms(*.v)", "t_max(energy)", "max(energy)"]
Q = np.random.default_rng(0).normal(size=(13, 2))
CASES: dict[str, dict[str, Any]] = {
    "one start for all": {"batch": 13},
    "starts": {"q0": Q},
    "inputs for all": {"batch": 5, "inputs": {"push": [1.0, 3.0, -4.0]}, "input_step": 0.01},
    "inputs for each": {"inputs": {"push": np.outer(np.arange(4.0), [1.0, 3.0])}, "input_step": 0.01},
    "parameters": {"parameters": {"link2.mass": [0.5, 1.0, 2.0]}, "q0": [0.3, 0.1]},
    "one run": {"q0": [0.3, 0.1]},
    "two axes": {"q0": Q[:12].reshape(3, 4, 2)},
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("keep", ["rows", "final", "summary"])
def test_gpu_run_equals_the_cpu_run(emulated: Emulated, case: str, keep: str, dtype: str) -> None:
    summary = ASKED if keep == "summary" else ()
    how: dict[str, Any] = {"step": 2e-3, **CASES[case]} | ({} if keep == "summary" else {"keep": keep})
    sim = bc.Simulator(system(), summary=summary)
    same(sim.run(0.04, target="cuda", dtype=dtype, **how), sim.run(0.04, **how), TOLERANCE[dtype])


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_parts_that_fit(emulated: Emulated, keep: str) -> None:
    """With memory for some runs only, the batch is divided, and the user sees one line about it."""
    emulated(15_000 if keep == "rows" else 5000)
    sim = bc.Simulator(system())
    with pytest.warns(RuntimeWarning, match="at a time"):
        run = sim.run(0.04, q0=Q, step=2e-3, target="cuda", keep=keep)
    same(run, sim.run(0.04, q0=Q, step=2e-3, keep=keep), 1e-11)


def test_inputs_and_parameters_of_each_run_take_memory(emulated: Emulated) -> None:
    """Inputs and parameters of each run count as memory: a long table for every run is larger than its state."""
    emulated(100_000)
    sim, how = bc.Simulator(system()), {"step": 1e-3, "input_step": 1e-3, "keep": "final"}
    tables = np.random.default_rng(0).normal(size=(10, 1000))
    with pytest.warns(RuntimeWarning, match="10 runs do not fit the GPU's memory; they are done 4 at a time"):
        run = sim.run(0.04, inputs={"push": tables}, target="cuda", **how)
    same(run, sim.run(0.04, inputs={"push": tables}, **how), 1e-11)


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_batches_shrink_until_memory_suffices(emulated: Emulated, keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If memory is taken by others meanwhile, the runs are repeated, fewer at a time, until they fit."""
    plain = GpuProgram.run_to_end

    def finish(self: GpuProgram, s: Array, *rest: Any) -> Any:
        if s.shape[1] > 4:
            raise OutOfMemoryError("Out of memory allocating 13 bytes")
        return plain(self, s, *rest)

    monkeypatch.setattr(GpuProgram, "run_to_end", finish)
    how: dict[str, Any] = {"q0": Q, "step": 2e-3, "keep": keep}
    with pytest.warns(RuntimeWarning) as said:
        run = bc.simulate(system(), 0.04, target="cuda", **how)
    assert [str(w.message).split("; ")[1] for w in said] == ["they are done 6 at a time.", "they are done 3 at a time."]
    assert all(w.filename == __file__ for w in said)
    same(run, bc.simulate(system(), 0.04, **how), 1e-11)


def test_not_even_one_run_fits(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(self: GpuProgram, *rest: Any) -> Any:
        raise OutOfMemoryError("Out of memory allocating 13 bytes")

    monkeypatch.setattr(GpuProgram, "run_to_end", finish)
    with pytest.raises(DeviceError, match=r"does not hold a single run \(Out of memory.*\)\. Keep fewer rows"):
        bc.Simulator(system()).run(0.04, step=2e-3, target="cuda")


def test_interrupted_while_the_gpu_is_at_work(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the GPU works, the usual case, returns the record until then."""
    plain, launches = Function.__call__, 0

    def launched(self: Function, *arguments: Any) -> None:
        nonlocal launches
        launches += 1
        plain(self, *arguments)
        if launches == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Function, "__call__", launched)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    try:
        with pytest.raises(Interrupted) as caught:
            bc.Simulator(system()).run(10.0, q0=Q, step=1e-3, target="cuda", progress=False)
    finally:
        signal.signal(signal.SIGINT, before)
    run = caught.value.record
    assert launches == 2
    assert 64 < run.t.shape[1] < 10_000
    assert (run.t[:, -1] == run.final["t"]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("step", "hold"), [(1e-4, 1e-3), (1e-3, 1e-3), (1e-3, 2.5e-3), (3e-4, 1e-3)])
def test_inputs_are_on_time(emulated: Emulated, step: float, hold: float, dtype: str) -> None:
    """Inputs change at the right step: in single precision 30 steps of 0.1 ms are less than 3 ms.

    The third line would come one step late.
    """
    sim = bc.Simulator(system())
    push = np.random.default_rng(1).normal(size=300)
    how: dict[str, Any] = {"step": step, "inputs": {"push": push}, "input_step": hold}
    run = sim.run(0.3, target="cuda", dtype=dtype, **how)
    line = np.minimum(np.floor(np.arange(run.t.shape[-1]) * (step / hold) + 1e-6).astype(int), 299)
    np.testing.assert_allclose(run["input.push"], push[line], rtol=1e-6)
    np.testing.assert_array_equal(sim.run(0.3, **how)["input.push"], push[line])


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_interrupted_before_its_turn(emulated: Emulated, keep: str) -> None:
    """Ctrl-C during the first part leaves the other runs at their starts, without rows."""
    emulated(5000 if keep == "final" else 100_000)

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="at a time"), pytest.raises(Interrupted) as caught:
        bc.Simulator(system()).run(1.0, q0=Q, step=2e-3, target="cuda", keep=keep, progress=stop)
    run = caught.value.record
    assert {s.reason for s in run.stops} == {"interrupted"}
    assert run.final["t"][0] > 0.0
    if keep == "rows":
        assert np.isnan(run.t[-1]).all()
    else:
        np.testing.assert_array_equal(run.t[-1], 0.0)
        np.testing.assert_array_equal(run.q[-1, 0], Q[-1])


def test_memory_of_a_deleted_record_is_reused(emulated: Emulated, monkeypatch: Any) -> None:
    """Memory of a deleted record is reused, and never that of a record in use."""
    monkeypatch.setattr("bellcrank.sim.run.batch_execution.REUSED_SIZE_NUMBERS", 100)
    m = bc.zoo.chain(1)
    sim = bc.Simulator(m)

    def made(q: float) -> bc.Record:
        return sim.run(0.001, q0=[q], batch=50, step=1e-3, target="cuda", keep="final")

    def place(run: bc.Record) -> int:
        found: int = run[f"{m.columns[0][0]}.q"].__array_interface__["data"][0]
        return found

    first = made(0.1)
    before = first.q.copy()
    second = made(0.7)
    np.testing.assert_array_equal(first.q, before)
    at = place(second)
    assert at != place(first)
    del second
    assert place(made(0.5)) == at
