"""Actions of steppers whose states stay on the GPU: a million Pandas, four RK4 steps per action, inputs from CuPy.

The rate is that of whole calls of `step` by wall time, with one wait for the GPU after many calls. Beside it is an
uninterrupted run of as many Pandas with the states in registers, in the same process.
"""

from __future__ import annotations

import time

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bench.gpu import clock
from bench.gpu.mechanisms import robot
from bench.gpu.simulation import _row

ARMS, TICKS, STEP, ACTIONS = 2**20, 4, 1e-4, 50


def table() -> None:
    peak, copy = clock.arithmetic("float32"), clock.bandwidth()
    print(f"{'1e6 actions of four steps':34}{'steps/s':>10}{'alone':>10}{'share':>8}{'must':>8}{'aim':>8}")
    for name in ("panda", "ur5"):
        m = robot(name)
        alone = float(_row(m, "float32", ARMS, peak, copy)[1])
        rate = stepped(m)
        print(f"{name + ' float32':34}{rate:>10.3g}{alone:>10.3g}{rate / alone:>8.0%}{'60%':>8}{'85%':>8}", flush=True)


def stepped(m: bc.Mechanism) -> float:
    """Return steps per second through `step`, the best of five sequences."""
    cp = cupy()
    env = bc.stepper(m, ARMS, TICKS * STEP, step=STEP, target="cuda", dtype="float32")
    u = cp.zeros((ARMS, m.nv), "float32")
    y = env.step(u)
    best = float("inf")
    for _ in range(5):
        cp.cuda.runtime.deviceSynchronize()
        began = time.perf_counter()
        for _ in range(ACTIONS):
            env.step(u, out=y)
        cp.cuda.runtime.deviceSynchronize()
        best = min(best, time.perf_counter() - began)
    return ARMS * TICKS * ACTIONS / best
