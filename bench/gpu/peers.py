"""Forward dynamics on all cores of the same computer, and in JAX on the same GPU."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import bellcrank as bc
from bench.gpu import clock
from bench.gpu.mechanisms import robot


def table() -> None:
    print(f"{'side by side':34}{'per s':>10}{'error':>10}")
    cores = os.cpu_count() or 1
    for name in ("ur5", "panda", "talos"):
        m = robot(name)
        for dtype in ("float32", "float64"):
            k = bc.kernel(m, "forward_dynamics", dtype=dtype, threads=cores)
            given = [x.astype(dtype) for x in m.random(0, (2**20,))]
            out = k(*given)
            times = []
            for _ in range(clock.REPEATS):
                start = time.perf_counter()
                k(*given, out=out)
                times.append(time.perf_counter() - start)
            print(f"{f'{name} {dtype}, CPU, {cores} cores':34}{len(out) / np.median(times):10.3g}", flush=True)
            if name != "talos":
                _jax(name, m, dtype)


def _jax(name: str, m: Any, dtype: str) -> None:
    try:
        import jax

        from bench.gpu.jax_dynamics import forward_dynamics
    except ImportError as missing:
        print(f"{f'{name} {dtype}, JAX':34} not measured: {missing}", flush=True)
        return
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
    print(f"{f'{name} {dtype}, JAX, vmap':34}{len(got) / np.median(times):10.3g}{error:10.1e}", flush=True)
