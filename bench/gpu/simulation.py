"""Whole runs in one kernel: 1000 steps of RK4 with the state in registers, and only the last state comes back."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bellcrank.graph.inline import inline
from bellcrank.sim.run.gpu_runs import GpuProgram
from bench.gpu import clock
from bench.gpu.mechanisms import four_bars, robot

STEPS = 1000
HEAD = ("runs", "steps/s", "must", "TFLOP/s", "TB/s", "roofline", "registers", "predicted", "spilled", "shared")


def table() -> None:
    peak, copy = {dtype: clock.arithmetic(dtype) for dtype in ("float32", "float64")}, clock.bandwidth()
    print(f"{'RK4, 1000 steps':26}" + "".join(f"{h:>10}" for h in HEAD))
    for name, m, dtype, runs, must in (
        ("panda", robot("panda"), "float32", 2**20, "4e+09"), ("panda", robot("panda"), "float64", 2**19, ""),
        ("panda_arm", robot("panda_arm"), "float32", 2**20, ""), ("ur5", robot("ur5"), "float32", 2**20, ""),
        ("talos", robot("talos"), "float32", 2**17, ""), ("2-four-bar", four_bars(2), "float64", 2**18, "1e+08"),
        ("8-four-bar", four_bars(8), "float64", 2**16, ""),
    ):  # fmt: skip
        cells = _row(m, dtype, runs, peak[dtype], copy)
        cells.insert(2, must)
        print(f"{name + ' ' + dtype:26}" + "".join(f"{c:>10}" for c in cells), flush=True)


def _row(m: Any, dtype: str, runs: int, peak: float, copy: float) -> list[str]:
    cp, s = cupy(), bc.Simulator(m)
    places, y = s.program(dtype=dtype).layout, np.zeros((runs, s.dynamics.size))
    if m.loops:
        speed = np.linspace(0.5, 1.5, 16)[np.arange(runs) % 16, None]
        y[:, m.nq : m.nq + m.nv] = speed * m.assemble(np.zeros(m.nq), np.ones(m.nv))[1]
    else:
        y[:, : m.nq] = np.random.default_rng(0).uniform(-0.5, 0.5, (runs, m.nq))
    group = s.dynamics.closure.grouped(y[:1], np.zeros((1, 0)))[0]
    code = GpuProgram(s.program(by=group.dynamics, dtype=dtype), dtype)
    first: dict[str, Any] = {"y": y, "live": 1.0, "h": 1e-4, "last": STEPS, "stride": 1.0, "next": 2.0 * STEPS}
    first["bound"] = 1e30  # for mechanisms with loops
    start = cp.asarray(places.array(runs, first), dtype)
    now, rows = cp.empty_like(start), cp.empty((1, code.program.row, runs), dtype)
    counts, none = cp.zeros(runs, cp.int64), cp.zeros(1, dtype)

    def work() -> None:
        cp.copyto(now, start)
        counts.fill(0)
        numbers = [np.int64(x) for x in (runs, 2 * STEPS, 0, 1, 1)]
        code.kernel(runs, numbers[0], numbers[1], now, none, none, numbers[2], numbers[3], rows, numbers[4], counts)

    took = clock.seconds(work)
    done = float(places.count(cp.asnumpy(now), "n").sum())
    if done != STEPS * runs:
        raise SystemExit(f"{m.name}: {done:g} steps of {STEPS * runs} were taken; the rest failed.")
    f, rate = code.kernel, done / took
    work_of_one = inline(code.program.tick).count().arithmetic  # additions, multiplications, divisions per step
    moved = 2 * len(start) * start.itemsize / STEPS  # a state is read and written once per run
    share = rate / min(peak / work_of_one, copy / moved)
    return [f"{runs}", f"{rate:.3g}", f"{work_of_one * rate / 1e12:.1f}", f"{moved * rate / 1e12:.2f}", f"{share:.0%}",
            f"{f.registers}", f"{code.loop.registers}", f"{f.local}", f"{f.shared}"]  # fmt: skip
