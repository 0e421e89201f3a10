"""Time and limits of a GPU, by its own clock: medians of 20, warm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import cupy

REPEATS = 20
FMA = """extern "C" __global__ void fma_peak(REAL* out, REAL a, REAL b) {
  REAL x[16];
  for (int i = 0; i < 16; ++i) x[i] = threadIdx.x + i;
  for (int k = 0; k < 2048; ++k)
    #pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = fma(x[i], a, b);
  REAL s = 0;
  for (int i = 0; i < 16; ++i) s += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}"""


def seconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median time after two warm-up runs."""
    cp = cupy()
    work(), work()
    times = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end) * 1e-3)
    return float(np.median(times))


def bandwidth() -> float:
    """Return the bytes per second that a copy reads and writes."""
    cp = cupy()
    x = cp.random.random(2**28, dtype=cp.float64)
    y = cp.empty_like(x)
    return float(2 * x.nbytes / seconds(lambda: cp.copyto(y, x)))


def arithmetic(dtype: str) -> float:
    """Return the operations per second of fused multiply-adds, two each."""
    cp = cupy()
    real, scalar = ("double", np.float64) if dtype == "float64" else ("float", np.float32)
    k = cp.RawKernel(FMA.replace("REAL", real), "fma_peak")
    blocks, threads = 132 * 16, 256
    out = cp.empty(blocks * threads, dtype)
    took = seconds(lambda: k((blocks,), (threads,), (out, scalar(0.999), scalar(1e-3))))
    return 2.0 * 16 * 2048 * blocks * threads / took
