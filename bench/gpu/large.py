"""Large mechanisms on the GPU: each state and each run is a thread that executes loops over identical bodies.

Wall times of whole calls: kernels of arrays that are on the GPU in rows; runs by RK4 that keep their ends; actions of
steppers; gradients of runs; kernels inside JAX and PyTorch, where they are installed. Beside each are the time of one
core of this computer for some of the same work, in lanes, and the difference of the results. A row that fails shows its
error, and the next one is measured.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda import run_kernel
from bellcrank.emit.cuda.device import cupy, release_pool
from bellcrank.sim.run import gpu_runs

STEP, STEPS = 1e-4, 100
SOME = 32  # runs or states that the CPU computes, too
ALL, FEW = 280.0, 95.0  # seconds; later rows are skipped
STATES = {"chain:100": 2**20, "chain:300": 2**18, "chain:1000": 2**17, "tree:255": 2**18}
RUNS = {"chain:100": (4096, 65536), "chain:300": (4096, 65536), "chain:1000": (4096, 32768), "tree:255": (65536,)}
HEAD = ("how many", "made in s", "per s", "one core", "times", "off by", "registers")
BOTH = ("float64", "float32")
Row = tuple[str, Callable[[], list[str]]]


def table() -> None:
    shown([*_runs(), *_kernels(), *_others(), *_changed()], ALL)


def briefly() -> None:
    """Measure the work around kernels and runs, and whether other code for runs would be faster."""
    kernels = [row for row in _kernels() if "chain:100 " in row[0] or "tree" in row[0]]
    shown([*_others(), *kernels, *_changed(), *_runs()], FEW)


def shown(rows: Sequence[Row], seconds: float) -> None:
    until = time.perf_counter() + seconds
    print(f"{'':36}" + "".join(f"{h:>11}" for h in HEAD))
    for title, row in rows:
        if time.perf_counter() > until:
            print(f"{title:36} left out: {seconds:.0f} s are over", flush=True)
            continue
        try:
            print(f"{title:36}" + "".join(f"{c:>11}" for c in row()), flush=True)
        except (ImportError, StopIteration) as error:
            print(f"{title:36} left out: {error or 'no GPU there'}", flush=True)
        except Exception as error:
            print(f"{title:36} failed: {type(error).__name__}: {error}", flush=True)
            traceback.print_exc(limit=-4)
        release_pool()


def _runs() -> list[Row]:
    found = ((name, dtype, n) for name, counts in RUNS.items() for dtype in BOTH for n in counts)
    return [(f"run {name} {dtype}, {n}", partial(_run, name, dtype, n)) for name, dtype, n in found]


def _kernels() -> list[Row]:
    return [(f"states {name} {dtype}", partial(_states, name, dtype)) for name in STATES for dtype in BOTH]


def _others() -> list[Row]:
    return [
        *((f"actions chain:300 {dtype}", partial(_actions, "chain:300", dtype)) for dtype in BOTH),
        ("gradient chain:100 float64", partial(_gradient, "chain:100")),
        ("jax chain:300 float64", partial(_jax, "chain:300")),
        ("torch chain:300 float64", partial(_torch, "chain:300")),
    ]


def _changed() -> list[Row]:
    """Time runs with other code: function by function, with fewer registers."""
    changes: dict[str, tuple[Callable[[str], str], bool]] = {
        "as it is": (str, True), "linked": (str, False), "128 registers": (_at_most(128), True),
    }  # fmt: skip
    counts = RUNS["chain:300"]
    return [
        (f"run chain:300 {what}, {n}", partial(_varied, "chain:300", n, *change))
        for what, change in changes.items()
        for n in counts
    ]


# -- clocks


def best(call: Callable[[], Any], times: int = 3) -> tuple[float, float, Any]:
    """Return the shortest of many in seconds, the additional time of the first, and the last result."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        found = call()
        cupy().cuda.runtime.deviceSynchronize()
        taken.append(time.perf_counter() - began)
    return min(taken[1:]), taken[0] - min(taken[1:]), found


def cells(n: int, took: float, first: float, core: float, got: Any, want: Any, registers: int | str = "") -> list[str]:
    """Return the cells of a row. n: how many were done in `took` seconds; core: how many a core does in one second."""
    off = np.abs(np.asarray(got, float) - want).max() / np.abs(want).max()
    return [
        f"{n}",
        f"{first:.1f}",
        f"{n / took:.3g}",
        f"{core:.3g}",
        f"{n / took / core:.0f}",
        f"{off:.1e}",
        f"{registers}",
    ]


# -- runs


@cache
def _given(name: str) -> tuple[bc.Mechanism, dict[str, Any], float, Any]:
    """Return the mechanism and starts for all runs, and one core's steps per second and ends for some of them."""
    m = bc.zoo.load(name)
    q, v, _ = m.random(0, (max(RUNS[name]),))
    given = {"q0": 0.3 * q, "v0": 0.1 * v}
    sim, some = bc.Simulator(m, integrator="rk4"), {key: x[:SOME] for key, x in given.items()}
    took, _, run = best(lambda: sim.run(STEPS * STEP, step=STEP, keep="final", progress=False, **some))
    return m, given, SOME * STEPS / took, _ends(run)


def _ends(run: bc.Record) -> Any:
    return np.concatenate([np.asarray(run.q)[:, -1], np.asarray(run.v)[:, -1]], -1)


def _run(name: str, dtype: str, runs: int) -> list[str]:
    m, given, core, expected = _given(name)
    sim = bc.Simulator(m, integrator="rk4")
    some = {key: x[:runs] for key, x in given.items()}
    settings: dict[str, Any] = {"step": STEP, "keep": "final", "target": "cuda", "dtype": dtype, "progress": False}
    took, first, run = best(lambda: sim.run(STEPS * STEP, **settings, **some), 2)
    if odd := [s for s in run.stops if s.reason != "end"]:
        raise RuntimeError(f"{len(odd)} runs stopped: {odd[0]}")
    code = next(x for x in sim._cache.values() if getattr(x, "dtype", "") == dtype)
    return cells(runs * STEPS, took, first, core, _ends(run)[:SOME], expected, code.run.registers)


def _varied(name: str, runs: int, change: Callable[[str], str], whole: bool) -> list[str]:
    """Return the row of runs with another text for the assembler: compiled as a whole, or function by function."""
    made, loaded = run_kernel.disable_unrolling, gpu_runs.DeviceFunction
    run_kernel.disable_unrolling = lambda text: change(made(text))  # type: ignore[assignment]
    if not whole:
        gpu_runs.DeviceFunction = lambda *given, **more: loaded(*given)  # type: ignore[assignment, misc]
    try:
        return _run(name, "float64", runs)
    finally:
        run_kernel.disable_unrolling, gpu_runs.DeviceFunction = made, loaded  # type: ignore[misc]


def _at_most(registers: int) -> Callable[[str], str]:
    return lambda text: text.replace(".maxntid 32", f".maxntid 32\n.maxnreg {registers}")


# -- kernels


def _states(name: str, dtype: str) -> list[str]:
    cp, m, n = cupy(), bc.zoo.load(name), STATES[name]
    given = m.random(0, (2000,))
    here = bc.kernel(m, "forward_dynamics", dtype=dtype)
    core, _, _ = best(lambda: here(*given))
    expected = bc.kernel(m, "forward_dynamics")(*given)
    arrays = [cp.tile(cp.asarray(x, dtype), (-(-n // 2000), 1))[:n].copy() for x in given]
    made: list[Any] = []

    def call() -> Any:
        made[:] = made or [bc.kernel(m, "forward_dynamics", target="cuda", dtype=dtype)]
        return made[0](*arrays)

    took, first, found = best(call)
    return cells(n, took, first, 2000 / core, cp.asnumpy(found[:2000]), expected, made[0].registers["given"])


# -- steppers and gradients


def _actions(name: str, dtype: str) -> list[str]:
    """Return the row of ten actions of four steps each."""
    cp, m, runs = cupy(), bc.zoo.load(name), 16384
    began = time.perf_counter()
    there = bc.stepper(m, runs, 4 * STEP, step=STEP, target="cuda", dtype=dtype)
    made = time.perf_counter() - began
    here = bc.stepper(m, SOME, 4 * STEP, step=STEP)
    u = 0.1 * np.random.default_rng(0).normal(size=(1, m.nv)).repeat(runs, 0)
    pushes = cp.asarray(u, dtype)

    def ten(env: Any, given: Any) -> Any:
        env.reset()
        for _ in range(10):
            y = env.step(given)
        return y

    core, _, expected = best(lambda: ten(here, u[:SOME]))
    took, first, found = best(lambda: ten(there, pushes))
    return cells(40 * runs, took, made + first, 40 * SOME / core, cp.asnumpy(found[:SOME]), expected)


def _gradient(name: str) -> list[str]:
    """Return the row of a gradient of steps, forward and backward."""
    m, runs, steps = bc.zoo.load(name), 8192, 100
    made = bc.Adjoint(m, None, lambda t, q, v, x, u: sum(w * w for w in v))
    q, v, _ = m.random(0, (runs,))
    start = {"q0": 0.3 * q, "v0": 0.1 * v}
    some = {key: x[:SOME] for key, x in start.items()}
    core, _, expected = best(lambda: made.run(steps * STEP, step=STEP, **some))
    took, first, found = best(lambda: made.run(steps * STEP, step=STEP, target="cuda", **start), 2)
    return cells(runs * steps, took, first, SOME * steps / core, found.q0[:SOME], expected.q0)


# -- inside JAX and PyTorch


def _jax(name: str) -> list[str]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # CuPy needs some of the memory, too
    import jax

    from bellcrank.jax import wrap

    jax.config.update("jax_enable_x64", True)
    place = next(d for d in jax.devices() if d.platform == "gpu")
    m, n = bc.zoo.load(name), 65536
    here, given = bc.kernel(m, "forward_dynamics"), m.random(0, (n,))
    core, _, expected = best(lambda: here(*(x[:2000] for x in given)))
    f = jax.jit(jax.vmap(wrap(here)))
    arrays = [jax.device_put(x, place) for x in given]
    took, first, found = best(lambda: f(*arrays).block_until_ready())
    slope = jax.grad(lambda q: (wrap(here)(q, *arrays[1:]) ** 2).sum())(arrays[0])
    want = here.vjp("q")(*(x[:SOME] for x in given), 2.0 * expected[:SOME])
    want = want["g_q"] if isinstance(want, dict) else want
    np.testing.assert_allclose(slope[:SOME], want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
    return cells(n, took, first, 2000 / core, np.asarray(found[:2000]), expected)


def _torch(name: str) -> list[str]:
    import torch

    from bellcrank.torch import wrap

    m, n = bc.zoo.load(name), 65536
    here, given = bc.kernel(m, "forward_dynamics"), m.random(0, (n,))
    core, _, expected = best(lambda: here(*(x[:2000] for x in given)))
    f, tensors = wrap(here), [torch.as_tensor(x, device="cuda") for x in given]
    took, first, found = best(lambda: f(*tensors))
    tensors[0].requires_grad_(True)
    (f(*tensors) ** 2).sum().backward()
    want = here.vjp("q")(*(x[:SOME] for x in given), 2.0 * expected[:SOME])
    want = want["g_q"] if isinstance(want, dict) else want
    np.testing.assert_allclose(tensors[0].grad[:SOME].cpu(), want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
    return cells(n, took, first, 2000 / core, found[:2000].cpu().numpy(), expected)
