"""Whole runs with adaptive steps and events in each thread: a warp takes as long as its slowest thread.

Tries are steps including rejected ones, which are repeated with a shorter length. `uneven` is the mean over warps of
the tries of the slowest thread, divided by the mean of all: the loss by waiting for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bellcrank.emit.cuda.run_kernel_code import START_TICKS
from bellcrank.model import Mechanism
from bellcrank.sim.run.gpu_runs import GpuProgram
from bench.gpu import clock
from bench.gpu.mechanisms import robot

HEAD = ("runs", "tries/s", "per run", "uneven", "registers", "spilled", "shared")
TOLERANCE = 1e-6
ROOM = 32  # rows of a run: those of its events, and the last
BOUNCE = bc.Event("bounce", lambda t, q, v, x, u: q["z"], "switch", -1, lambda t, q, v, x, u: {"v": -0.9 * v})


def table(scale: int = 1) -> None:
    """Print the table. scale: a fraction of the runs, for a quick check."""
    print(f"{'chosen steps, events':26}" + "".join(f"{h:>10}" for h in HEAD))
    for name, m, seconds, integrator, runs, events in (
        ("panda dopri5", robot("panda"), 1.0, "dopri5", 2**17, ()),
        ("panda_arm dopri5", robot("panda_arm"), 1.0, "dopri5", 2**17, ()),
        ("bouncing ball dopri5", ball(), 2.0, "dopri5", 2**20, (BOUNCE,)),
        ("bouncing ball rk4", ball(), 2.0, "rk4", 2**20, (BOUNCE,)),
    ):
        cells = _row(m, seconds, integrator, max(1, runs // scale), events)
        print(f"{name:26}" + "".join(f"{c:>10}" for c in cells), flush=True)


def ball() -> Mechanism:
    b = bc.Builder("ball", gravity=(0, 0, -9.81))
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


def _row(m: Mechanism, seconds: float, integrator: str, runs: int, events: Any) -> list[str]:
    cp, s = cupy(), bc.Simulator(m, integrator, events=events)
    program = s.program((s.integrator.adaptive, True))
    code = GpuProgram(program, "float64")
    y = np.zeros((runs, s.dynamics.size))
    y[:, : m.nq] = np.random.default_rng(0).uniform(0.2, 0.5, (runs, m.nq))
    first = {
        "y": y, "live": 1.0, "h": 1e-3, "step": 1e-3, "every": seconds, "end": seconds, "next": 1.0,
        "rtol": TOLERANCE, "atol": TOLERANCE, "h_old": 1.0,
    }  # fmt: skip
    start = cp.asarray(program.layout.array(runs, first), "float64")
    now, rows = cp.empty_like(start), cp.empty((ROOM, program.row, runs), "float64")
    counts, none = cp.zeros(runs, cp.int64), cp.zeros(1, "float64")

    def launch(ticks: int) -> None:
        n, given, room = np.int64(runs), [np.int64(x) for x in (0, 1)], np.int64(ROOM)
        code.kernel(runs, n, np.int64(ticks), now, none, none, *given, rows, room, counts)

    def work() -> None:
        now[:] = start
        counts.fill(0)
        if code.loop.needs_start:
            launch(START_TICKS)
        launch(10**9)

    took = clock.seconds(work)
    state = cp.asnumpy(now)
    short = int((np.abs(state[program.layout.place("t")] - seconds) > 1e-6).sum())
    if short:
        raise SystemExit(f"{m.name}: {short} of {runs} runs did not come to their ends.")
    tried = state[program.layout.place("tried")]
    warps = np.resize(tried, (-(-runs // 32), 32))
    uneven, f = warps.max(axis=1).mean() / tried.mean(), code.kernel
    cells = (f"{tried.sum() / took:.3g}", f"{tried.mean():.4g}", f"{uneven:.2f}")
    return [f"{runs}", *cells, f"{f.registers}", f"{f.local}", f"{f.shared}"]
