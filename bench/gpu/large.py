"""Runs of large mechanisms on the card: every run a thread that goes through loops over alike bodies, RK4.

By the wall clock, of whole calls that keep the end of each run. Beside it what one core of this computer takes for some
of the same runs, in lanes, and how far these are apart. A row that fails says why, and the next one is measured.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy, forget

STEP, STEPS = 1e-4, 200
SOME = 32  # runs that the CPU does, too
RUNS = {"chain:100": (4096, 65536), "chain:300": (4096, 65536), "chain:1000": (4096, 32768), "tree:255": (65536,)}
HEAD = ("runs", "made in s", "steps/s", "one core", "times", "off by", "registers", "bytes/run")


def table() -> None:
    print(f"{'RK4, 200 steps':22}" + "".join(f"{h:>11}" for h in HEAD))
    for name, counts in RUNS.items():
        m = bc.zoo.load(name)
        sim = bc.Simulator(m, integrator="rk4")
        q, v, _ = m.random(0, (max(counts),))
        given = {"q0": 0.3 * q, "v0": 0.1 * v}
        core, expected = _one_core(sim, given)
        for dtype in ("float64", "float32"):
            for runs in counts:
                tried(f"{name} {dtype}", lambda: _row(sim, dtype, runs, given, core, expected))  # noqa: B023 at once


def tried(title: str, row: Callable[[], list[str]]) -> None:
    try:
        cells = row()
        print(f"{title:22}" + "".join(f"{c:>11}" for c in cells), flush=True)
    except Exception as error:
        print(f"{title:22} failed: {type(error).__name__}: {error}", flush=True)
        traceback.print_exc(limit=-4)
    forget()


def _one_core(sim: bc.Simulator, given: dict[str, Any]) -> tuple[float, Any]:
    some = {key: x[:SOME] for key, x in given.items()}
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        run = sim.run(STEPS * STEP, step=STEP, keep="final", progress=False, **some)
        best = min(best, time.perf_counter() - began)
    return SOME * STEPS / best, _ends(run)


def _ends(run: bc.Record) -> Any:
    return np.concatenate([np.asarray(run.q)[:, -1], np.asarray(run.v)[:, -1]], -1)


def _row(sim: bc.Simulator, dtype: str, runs: int, given: dict[str, Any], core: float, expected: Any) -> list[str]:
    some = {key: x[:runs] for key, x in given.items()}
    times = []
    for _ in range(3):
        began = time.perf_counter()
        run = sim.run(STEPS * STEP, step=STEP, keep="final", target="cuda", dtype=dtype, progress=False, **some)
        cupy().cuda.runtime.deviceSynchronize()
        times.append(time.perf_counter() - began)
    if any(stop.reason != "end" for stop in run.stops):
        raise RuntimeError(next(f"run stopped: {s}" for s in run.stops if s.reason != "end"))
    off = np.abs(_ends(run)[:SOME] - expected).max() / np.abs(expected).max()
    best, code = min(times[1:]), next(x for x in sim._made.values() if getattr(x, "dtype", "") == dtype)
    rate = runs * STEPS / best
    return [f"{runs}", f"{times[0] - best:.1f}", f"{rate:.3g}", f"{core:.3g}", f"{rate / core:.0f}", f"{off:.1e}",
            f"{code.run.registers}", f"{code.loop.workspace * (8 if dtype == 'float64' else 4)}"]  # fmt: skip
