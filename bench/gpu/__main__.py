"""The table of docs/gpu.md: python -m bench.gpu [dynamics simulation peers]"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bellcrank.sim.gpu import GpuProgram
from bench.gpu import clock
from bench.gpu.mechanisms import four_bars, robot

CALLS = 8  # behind each other in one measurement, so that Python is done with a call before the GPU is
STATES = {"ur5": 2**24, "panda": 2**24, "talos": 2**22}
MUST = {
    ("ur5", "float32"): 3.1e10, ("panda", "float32"): 2.0e10, ("talos", "float32"): 2.2e9,
    ("ur5", "float64"): 1.8e10, ("panda", "float64"): 1.15e10, ("talos", "float64"): 7e8,
}  # fmt: skip


def states(m: Any, count: int, dtype: str, rows: bool) -> list[Any]:
    """Random q, v, tau of so many states, rows or columns side by side."""
    cp = cupy()
    random = cp.random.RandomState(1)
    made = []
    for n in (m.nq, m.nv, m.nv):
        x = random.uniform(-1.5, 1.5, (count, n) if rows else (n, count)).astype(dtype)
        made.append(x if rows else x.T)
    return made


def dynamics() -> None:
    peak = {dtype: clock.arithmetic(dtype) for dtype in ("float32", "float64")}
    copy = clock.bandwidth()
    print(f"ceilings: copy {copy / 1e12:.2f} TB/s, float32 {peak['float32'] / 1e12:.1f} TFLOP/s, "
          f"float64 {peak['float64'] / 1e12:.1f} TFLOP/s")  # fmt: skip
    print(f"{'forward dynamics':32}{'per s':>10}{'must':>9}{'TB/s':>6}{'TFLOP/s':>8}{'roofline':>9}"
          f"{'registers':>10}{'predicted':>10}{'spilled':>8}{'shared':>7}{'error':>9}")  # fmt: skip
    for (name, dtype), must in MUST.items():
        m = robot(name)
        k = bc.kernel(m, "forward_dynamics", target="cuda", dtype=dtype)
        for rows in (False, True):
            count = STATES[name]
            given = states(m, count, dtype, rows)
            out = k(*given)
            some = [cupy().asnumpy(x[:1000]).astype(float) for x in given]
            want = bc.kernel(m, "forward_dynamics", method=k.method)(*some)
            got = cupy().asnumpy(out[:1000])
            error = float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())
            del out, got
            place = k(*given)
            rate = CALLS * count / clock.seconds(lambda given=given, place=place: [k(*given, out=place) for _ in range(CALLS)])
            del place
            size = 8 if dtype == "float64" else 4
            moved, work = (m.nq + 3 * m.nv) * size, k.graph.count().arithmetic
            roof = min(peak[dtype] / work, copy / moved)
            f = k.tiled if rows and "tiled" in k.texts else k.strided
            print(f"{name + ' ' + dtype + (' rows' if rows else ' columns'):32}{rate:10.3g}{'' if rows else f'{must:.3g}':>9}"
                  f"{moved * rate / 1e12:6.2f}{work * rate / 1e12:8.1f}{rate / roof:9.0%}{f.registers:10}"
                  f"{k.texts['strided']['registers']:10}{f.local:8}{f.shared:7}{error:9.1e}", flush=True)  # fmt: skip
            del given
            cupy().get_default_memory_pool().free_all_blocks()


def simulation() -> None:
    """Steps per second of whole runs in one kernel, all 1000 steps, only the last state comes back."""
    print(f"{'RK4, 1000 steps':32}{'runs':>9}{'steps/s':>10}{'registers':>10}{'predicted':>10}{'spilled':>8}{'shared':>7}")
    for m, dtype, runs in (
        (robot("panda"), "float32", 2**20), (robot("panda"), "float64", 2**19), (robot("ur5"), "float32", 2**20),
        (four_bars(2), "float64", 2**17), (four_bars(8), "float64", 2**15),
    ):  # fmt: skip
        s = bc.Simulator(m)
        places, program = s.program(None, s.traced)
        code = GpuProgram(program, dtype)
        y0 = np.zeros((runs, s.traced.size))
        if m.loops:
            speed = np.linspace(0.5, 1.5, 16)
            y0[:, m.nq : m.nq + m.nv] = speed[np.arange(runs) % 16, None] * m.assemble(np.zeros(m.nq), np.ones(m.nv))[1]
        else:
            y0[:, : m.nq] = np.random.default_rng(0).uniform(-0.5, 0.5, (runs, m.nq))
        by = next(iter(s.traced.grouped(places.array(1, {"y": y0[:1]}), places.places["y"], np.zeros((1, 0)))))
        if by is not s.traced:
            code = GpuProgram(s.program(None, by)[1], dtype)
        first: dict[str, Any] = {"y": y0, "live": 1.0, "h": 1e-4, "last": 1000.0, "stride": 1.0, "next": 2000.0}
        if "bound" in places.places:
            first["bound"] = 1e30
        state = places.array(runs, {key: x for key, x in first.items() if key in places.places})
        cp = cupy()
        s0 = cp.asarray(state, dtype)
        rows, counts, none = cp.empty((1, program.row, runs), dtype), cp.zeros(runs, cp.int64), cp.zeros(1, dtype)
        now = cp.empty_like(s0)

        def work(s0: Any = s0, now: Any = now, counts: Any = counts, code: Any = code, rows: Any = rows,
                 none: Any = none, runs: int = runs) -> None:  # fmt: skip
            cp.copyto(now, s0)
            counts.fill(0)
            code.run(runs, np.int64(runs), np.int64(2000), now, none, none, np.int64(0), np.int64(1), rows, np.int64(1), counts)

        took = clock.seconds(work, 5)
        status = cp.asnumpy(now[places.place("status")])
        done = float(cp.asnumpy(now[places.place("n")]).sum())
        print(f"{m.name[:22] + ' ' + dtype:32}{runs:9}{done / took:10.3g}{code.run.registers:10}{code.loop.registers:10}"
              f"{code.run.local:8}{code.run.shared:7}  statuses {np.unique(status)}", flush=True)  # fmt: skip


def peers() -> None:
    """The same batch on all cores of this computer, and in JAX on the same GPU."""
    print(f"{'side by side, forward dynamics':32}{'per s':>10}{'error':>9}")
    for name in ("ur5", "panda", "talos"):
        m = robot(name)
        for dtype in ("float32", "float64"):
            cores = os.cpu_count() or 1
            k = bc.kernel(m, "forward_dynamics", dtype=dtype, threads=cores)
            given = [x.astype(dtype) for x in m.random(0, (2**19,))]
            out = k(*given)
            times = []
            for _ in range(5):
                start = time.perf_counter()
                k(*given, out=out)
                times.append(time.perf_counter() - start)
            print(f"{f'{name} {dtype} CPU, {cores} cores':32}{len(given[0]) / np.median(times):10.3g}", flush=True)
            if name != "talos":
                _jax(name, m, dtype)


def _jax(name: str, m: Any, dtype: str) -> None:
    try:
        import jax
        from bench.gpu.jax_dynamics import forward_dynamics

        f = forward_dynamics(m, dtype)
        given = [jax.device_put(x.astype(dtype)) for x in m.random(0, (2**18,))]
        got = np.asarray(f(*given).block_until_ready())
        want = m.forward_dynamics(*(np.asarray(x, float) for x in given))
        error = float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())
        times = []
        for _ in range(clock.REPEATS):
            start = time.perf_counter()
            f(*given).block_until_ready()
            times.append(time.perf_counter() - start)
        print(f"{f'{name} {dtype} JAX, vmap':32}{2**18 / np.median(times):10.3g}{error:9.1e}", flush=True)
    except Exception as problem:
        print(f"{f'{name} {dtype} JAX, vmap':32} not measured: {str(problem)[:200]}", flush=True)


if __name__ == "__main__":
    parts = {"dynamics": dynamics, "simulation": simulation, "peers": peers}
    for part in sys.argv[1:] or parts:
        parts[part]()
