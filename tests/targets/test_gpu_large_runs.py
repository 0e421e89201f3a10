"""Runs of large mechanisms in GPU code, emulated on this processor (emulated.py), agree with the CPU.

The code has loops over identical bodies, and the state is in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import gpu_runs
from bellcrank.emit.cuda.rolled_kernels import StateKernel
from bellcrank.emit.cuda.run_kernel import LargeRunKernel
from bellcrank.sim.run.gpu_runs import GpuProgram
from bellcrank.sim.stepper import gpu_stepper  # loaded before fixtures replace what it imports from CuPy
from crossing.thresholds import small_thresholds
from emulated import Function, emulated
from emulated_blocks import kernels_here
from ticking import Spelled, begun, program

__all__ = ["emulated"]  # a fixture
Emulated = Callable[[int], None]
# One of each kind of program: rows, rows between steps, events, inputs, closed loops, summaries, sensitivities.
KINDS = (
    "arm rk4", "arm abm4 chosen", "bounces rk4", "bounces dopri5", "limited dopri5", "stops final", "fed rk4",
    "fed event dopri5", "actuated rodas4", "rod dopri5", "summary fed rk4", "derivatives dopri5",
)  # fmt: skip


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small mechanisms use the same code path."""
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs._has_recursions", lambda program: True)


@pytest.mark.usefixtures("emulated", "all_large")
@pytest.mark.parametrize("name", KINDS)
def test_a_run_is_that_of_the_cpu(name: str) -> None:
    cpu, gpu = (gpu_runs.done(name, target) for target in ("cpu", "cuda"))
    gpu_runs.same(gpu, cpu)
    assert gpu.provenance["steps"] == cpu.provenance["steps"]


@pytest.mark.usefixtures("emulated", "all_large")
@pytest.mark.parametrize("kind", ["plain", "fed", "watched", "all"])
def test_run_kernel_equals_the_loop_in_python(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of one tick, with too little space for rows, give the rows of the loop in Python."""
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.FIRST_TICKS", 1)
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.PAUSE_SECONDS", 0.0)
    p = program(kind)
    s, inputs = begun(40, [23, 0, 31, 7, 1])
    spelled = Spelled(p, s, inputs)
    while spelled.run(100, 1000):
        pass
    made = GpuProgram(p, "float64")
    given = inputs if p.nu else np.zeros((40, 1, 0))
    pieces = made.run_to_end(np.ascontiguousarray(s), given, np.zeros((40, 0)), 2, lambda s: True)
    assert isinstance(made.loop, LargeRunKernel)
    for run in range(40):
        rows = np.concatenate([rows[: counts[run], :, run] for rows, counts in pieces])
        want = np.array(spelled.rows[run]).reshape(-1, p.row)
        np.testing.assert_allclose(rows, want, rtol=1e-13, atol=1e-13)


def started(m: bc.Mechanism, runs: int) -> dict[str, Any]:
    q, v, _ = m.random(0, (runs,))
    return {"q0": 0.3 * q, "v0": 0.1 * v, "step": 1e-3}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", ["chain:100", "tree:127"])
def test_identical_bodies_share_their_code(name: str) -> None:
    """Identical bodies share their code; results are equal to the last bit, with another memory layout."""
    m = bc.zoo.load(name)
    sim, given = bc.Simulator(m), started(m, 35)
    cpu, gpu = (sim.run(5e-3, every=2e-3, target=target, progress=False, **given) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.q, cpu.q, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(gpu.v, cpu.v, rtol=1e-14, atol=1e-12)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", ["midpoint", "rodas4"])
def test_linear_systems_of_implicit_steps(name: str, tmp_path: Path) -> None:
    """Linear systems of implicit steps are loops; their numbers are interleaved with those of the 31 other runs."""
    m = bc.zoo.chain(3)
    with small_thresholds("rolled", tmp_path):
        sim, given = bc.Simulator(m, name), started(m, 35)
        cpu, gpu = (sim.run(3e-3, target=target, progress=False, **given) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.q, cpu.q, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gpu.v, cpu.v, rtol=1e-12, atol=1e-11)


@pytest.mark.usefixtures("emulated")
def test_loops_that_close() -> None:
    """Loop equations work around recursions over the spanning tree."""
    m = bc.zoo.ring(90)
    given = {"q0": bc.zoo.start(m)[0][None].repeat(3, 0), "step": 1e-3, "progress": False}
    cpu, gpu = (bc.simulate(m, 5e-3, target=target, **given) for target in ("cpu", "cuda"))
    assert gpu.provenance["form"] == "projected"
    np.testing.assert_allclose(gpu.q, cpu.q, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gpu.v, cpu.v, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("emulated")
def test_single_precision() -> None:
    m = bc.zoo.load("chain:100")
    sim, given = bc.Simulator(m), started(m, 3)
    cpu = sim.run(5e-3, progress=False, **given)
    gpu = sim.run(5e-3, target="cuda", dtype="float32", progress=False, **given)
    np.testing.assert_allclose(gpu.q, cpu.q, atol=2e-5)


def test_the_workspace_is_counted(emulated: Emulated) -> None:
    """The workspace counts as memory: where it does not fit for all runs, the batch is divided."""
    m = bc.zoo.load("chain:100")
    sim, given = bc.Simulator(m), started(m, 40)
    whole = sim.run(2e-3, target="cuda", keep="final", progress=False, **given)
    emulated(10 * LargeRunKernel(sim.program(rows=False)).workspace * 8)
    with pytest.warns(RuntimeWarning, match="at a time"):
        parts = sim.run(2e-3, target="cuda", keep="final", progress=False, **given)
    np.testing.assert_array_equal(parts.q, whole.q)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("how", [
    {"step": 1e-3, "sensitivities": ["joint1.q"]},
    {"integrator": "dopri5", "tolerance": 1e-6, "summary": ["max(*.v)", "max(energy)"]},
])  # fmt: skip
def test_run_options_and_columns_equal_the_cpu_run(how: dict[str, Any]) -> None:
    m = bc.zoo.load("chain:70")
    given = started(m, 3) | {"step": None} | how
    cpu, gpu = (bc.simulate(m, 5e-3, target=target, progress=False, **given) for target in ("cpu", "cuda"))
    assert list(gpu.columns) == list(cpu.columns)
    for name in cpu.columns:
        np.testing.assert_allclose(gpu[name], cpu[name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.usefixtures("emulated")
def test_a_gradient() -> None:
    """A gradient equals the CPU's; the reverse pass over all bodies is a loop, too."""
    m = bc.zoo.load("chain:70")
    made = bc.Adjoint(m, None, lambda t, q, v, x, u: q[69] * q[69] + v[0] * v[1])
    cpu, gpu = (made.run(5e-3, target=target, checkpoints=3, **started(m, 3)) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.value, cpu.value, rtol=1e-13)
    np.testing.assert_allclose(gpu.q0, cpu.q0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gpu.v0, cpu.v0, rtol=1e-10, atol=1e-12)


@pytest.fixture
def stepping(emulated: Emulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Emulate a GPU for steppers: every numpy array counts as a GPU array."""
    cupy = kernels_here(monkeypatch)
    cupy.empty, cupy.arange, cupy.asarray = np.empty, np.arange, np.array
    for module in ("sim.stepper.gpu_stepper", "emit.cuda.gpu_kernel"):
        monkeypatch.setattr(f"bellcrank.{module}.on_gpu", lambda x: isinstance(x, np.ndarray))
        monkeypatch.setattr(f"bellcrank.{module}.to_cupy", lambda x, name: np.asarray(x))
    monkeypatch.setattr(gpu_stepper, "cupy", lambda: cupy)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.DeviceFunction", Function)
    monkeypatch.setattr("bellcrank.emit.cuda.lane_code.ptx", lambda text: text)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))


@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize("name", ["chain:70", "chain:700"])
def test_a_stepper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stepper of many coordinates has loops also before and after its steps."""
    m = bc.zoo.load(name)
    here = bc.stepper(m, 3, 2e-3, step=1e-3)
    there: Any = bc.stepper(m, 3, 2e-3, step=1e-3, target="cuda")
    kinds = {isinstance(k, StateKernel) for k in there._kernels.values()}
    assert kinds == {name == "chain:700"}
    monkeypatch.setattr(there, "_to_host", lambda x: x)
    for u in np.random.default_rng(0).normal(size=(3, 3, m.nv)):
        np.testing.assert_allclose(there.step(u), here.step(u), rtol=1e-13, atol=1e-13)


def test_code_assembles_and_grows_with_classes(tmp_path: Path) -> None:
    """The code assembles, and grows with the number of link classes, not of bodies."""
    from test_cuda import assembled

    small, large = (
        LargeRunKernel(bc.Simulator(bc.zoo.load(f"chain:{n}")).program(checks=False)).ptx for n in (100, 400)
    )
    assert small.count(".entry") == 1
    assert len(large) < 2 * len(small)
    _, spilled = assembled(small, tmp_path)
    assert spilled == 0
