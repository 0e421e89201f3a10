"""Measurement of kernels and of simulation steps, beside their predictions.

A kernel's are the times to compile, to load from the cache, and to compute one state and a batch.

Every time is the minimum of several repeats, the time of an undisturbed machine.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from timeit import Timer
from typing import Any
from unittest.mock import patch

import numpy as np

from bellcrank.build import kernels, policy
from bellcrank.dynamics.quantities import Request
from bellcrank.emit import cache as store
from bellcrank.emit.cpu.costs import costs
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.llvm.host import host
from bellcrank.model import Mechanism
from bellcrank.sim.run.simulator import Simulator

BATCH_ROWS = 4096
REPEATS = 7
REPEAT_SECONDS = 0.02  # duration of one repeat
STEP_SECONDS = 1e-7  # s, size of the timed steps


@dataclass(frozen=True)
class Timing:
    """Times of a quantity by one method, in seconds."""

    quantity: str
    method: str
    operations: int
    compile: float  # trace, generate, compile and load, with an empty cache
    from_cache: float  # with a full cache, for a copy of the mechanism without derived data
    call: float  # one state, called from Python with NumPy arrays
    batch: float  # per state of a batch, one thread
    batch_all_cores: float  # per state of `rows_all_cores` states, which keep all cores busy
    rows_all_cores: int


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure_quantity(
    mechanism: Mechanism,
    quantity: str,
    method: str = "auto",
    frame: str = "",
    dtype: str = "float64",
    rows: int = BATCH_ROWS,
) -> Timing:
    """Compile and time a quantity.

    Parameters
    ----------
    mechanism
        Mechanism.
    quantity
        Name of the quantity.
    method
        Name of the method.
    frame
        Name of the frame, for quantities that need one.
    dtype
        "float64" or "float32".
    rows
        States in the batch.
    """
    strategy = policy.choose(mechanism, Request(quantity, method, frame))
    # Loaded before: imports and the measurement of costs are no part of the compile time.
    [p.method.file for p in strategy.plans], host(), store.package_fingerprint(), costs(dtype)
    with _empty_cache():
        make = partial(kernels.kernel, name=quantity, method=method, dtype=dtype, frame=frame)
        kernel, cold = _timed(lambda: make(replace(mechanism)))  # a copy without derived data
        _, warm = _timed(lambda: make(replace(mechanism)), repeats=3)
        threaded_kernel = make(mechanism, threads=cores()) if cores() > 1 else kernel
    one, many = _arguments(mechanism, kernel, ()), _arguments(mechanism, kernel, (rows,))
    # With fewer, some threads have no work.
    busy_rows = max(rows, 4 * cores() * threaded_kernel.signature.rows_per_thread)
    operations, single = kernel.graph.count().arithmetic, _call_time(kernel, one)
    batch = all_cores = _call_time(kernel, many) / rows
    if cores() > 1:
        all_cores = _call_time(threaded_kernel, _arguments(mechanism, kernel, (busy_rows,))) / busy_rows
    return Timing(quantity, kernel.method, operations, cold, warm, single, batch, all_cores, busy_rows)


def batch_time(mechanism: Mechanism, kernel: Kernel, rows: int = 1024) -> float:
    """Return the seconds of `kernel` per state for a batch of `rows` states of `mechanism`; short, for large tables."""
    return _call_time(kernel, _arguments(mechanism, kernel, (rows,)), REPEAT_SECONDS / 5) / rows


@contextmanager
def _empty_cache() -> Iterator[None]:
    folder = tempfile.TemporaryDirectory(prefix="bellcrank-")
    with folder as name, patch.dict(os.environ, BELLCRANK_CACHE=name):
        yield


def _timed(make: Callable[[], Kernel], repeats: int = 1) -> tuple[Kernel, float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        kernel = make()
        times.append(time.perf_counter() - start)
    return kernel, min(times)


def _arguments(mechanism: Mechanism, kernel: Kernel, batch: tuple[int, ...]) -> dict[str, Any]:
    q, v, tau = (np.ascontiguousarray(x, kernel.signature.dtype) for x in mechanism.random(1, batch))
    return {name: {"q": q, "v": v}.get(name, tau) for name in kernel.signature.inputs}


def _call_time(kernel: Kernel, arguments: Mapping[str, Any], min_seconds: float = REPEAT_SECONDS) -> float:
    timer = Timer(f"kernel({', '.join(arguments)})", globals={"kernel": kernel, **arguments})
    n = 1
    while (spent := timer.timeit(n)) < min_seconds:
        n = max(2 * n, int(1.2 * n * min_seconds / max(spent, 1e-9)) if spent > min_seconds / 100 else 10 * n)
    return min(spent, *timer.repeat(REPEATS, n)) / n


@dataclass(frozen=True)
class StepTiming:
    """Predicted and measured time of a step of a simulation, in seconds."""

    integrator: str
    predicted: float  # for a single run, before anything is compiled
    one: float  # for a single run
    batch: float  # per run of a batch, one thread


def measure_step(mechanism: Mechanism, integrator: str, rows: int = BATCH_ROWS) -> StepTiming:
    """Predict and measure a step without recording, as the difference of two runs of different length.

    The steps are so short that the mechanism hardly moves, so the time does not depend on its motion.

    Parameters
    ----------
    mechanism
        Mechanism to simulate.
    integrator
        Name of the integrator.
    rows
        Runs in the batch.
    """
    simulator = Simulator(mechanism, integrator)
    predicted = simulator.predicted

    def run_seconds(steps: int, batch: int | None) -> float:
        began = time.perf_counter()
        seconds = steps * STEP_SECONDS
        simulator.run(seconds, step=STEP_SECONDS, every=seconds, batch=batch, threads=1)
        return time.perf_counter() - began

    def measured(batch: int | None, guess: float) -> float:
        runs = batch or 1
        steps = max(2, int(REPEAT_SECONDS / (guess * runs)))
        run_seconds(steps, batch)  # compiles
        short, long = (min(run_seconds(n, batch) for _ in range(REPEATS)) for n in (steps, 3 * steps))
        return (long - short) / (2 * steps * runs)

    return StepTiming(integrator, predicted.one, measured(None, predicted.one), measured(rows, predicted.batch))
