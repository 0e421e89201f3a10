"""How long a quantity takes here: to compile, to load again, to call for one state and for many.

Every number is the least of several repeats: what the machine can do when nothing disturbs it.
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

import numpy as np

from bellcrank.build import graphs, kernels
from bellcrank.dynamics.requests import Request
from bellcrank.emit import cache as store
from bellcrank.emit.cpu.costs import costs
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.errors import InputError
from bellcrank.model import Mechanism

ROWS = 4096
REPEATS = 7
SECONDS = 0.02  # of one repeat


@dataclass(frozen=True)
class Timing:
    """How long a quantity took by a method; all times in seconds."""

    quantity: str
    method: str
    operations: int
    compile: float  # trace, spell, compile, load; nothing in the cache
    from_cache: float  # the same again, in a mechanism that knows nothing
    call: float  # one state, called from Python with numpy arrays
    batch: float  # for each of many states, one thread
    batch_all_cores: float  # the same of `rows_all_cores` states: enough to keep every core busy
    rows_all_cores: int


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def room(mechanism: Mechanism, rows: int) -> None:
    """An error where a batch of so many states does not fit into memory."""
    needed = 8 * rows * (mechanism.nq + (3 + mechanism.nv) * mechanism.nv)  # inputs, and at most a matrix of results
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else needed
    if needed > have / 2:
        most = max(1, int(rows * have / 2 / needed))
        raise InputError(
            f"{rows:,} rows of {mechanism.name} take up to {needed / 1e9:,.1f} GB, and this computer has "
            f"{have / 1e9:,.1f} GB; at most {most:,}."
        )


def measure(
    mechanism: Mechanism, quantity: str, method: str = "auto", frame: str = "", dtype: str = "float64", rows: int = ROWS
) -> Timing:
    able = graphs.considered(mechanism, Request(quantity, method, frame))
    [m.file for m in able], host(), store.package_fingerprint(), costs(dtype)  # loading and learning is not compiling
    with _empty_cache():
        make = partial(kernels.kernel, name=quantity, method=method, dtype=dtype, frame=frame)
        made, cold = _once(lambda: make(replace(mechanism)))  # a copy, that has derived nothing yet
        _, warm = _once(lambda: make(replace(mechanism)), repeats=3)
        wide = make(mechanism, threads=cores()) if cores() > 1 else made
    one, many = _arguments(mechanism, made, ()), _arguments(mechanism, made, (rows,))
    enough = max(rows, 4 * cores() * wide.signature.rows_per_thread)  # with fewer, some threads are left asleep
    batch = _call(made, many) / rows
    return Timing(
        quantity,
        made.method,
        made.graph.count().arithmetic,
        cold,
        warm,
        _call(made, one),
        batch,
        _call(wide, _arguments(mechanism, made, (enough,))) / enough if cores() > 1 else batch,
        enough,
    )


def batch(mechanism: Mechanism, kernel: Kernel, rows: int = 1024) -> float:
    """Seconds for each of many states, one thread; for tables of many kernels, so not for long."""
    return _call(kernel, _arguments(mechanism, kernel, (rows,)), SECONDS / 5) / rows


@contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ.get("BELLCRANK_CACHE")
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder:
        os.environ["BELLCRANK_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["BELLCRANK_CACHE"]
            else:
                os.environ["BELLCRANK_CACHE"] = before


def _once(make: Callable[[], Kernel], repeats: int = 1) -> tuple[Kernel, float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        made = make()
        times.append(time.perf_counter() - start)
    return made, min(times)


def _arguments(mechanism: Mechanism, kernel: Kernel, batch: tuple[int, ...]) -> dict[str, Any]:
    q, v, tau = (np.ascontiguousarray(x, kernel.signature.dtype) for x in mechanism.random(1, batch))
    return {name: {"q": q, "v": v}.get(name, tau) for name in kernel.signature.inputs}


def _call(kernel: Kernel, arguments: Mapping[str, Any], enough: float = SECONDS) -> float:
    timer = Timer(f"kernel({', '.join(arguments)})", globals={"kernel": kernel, **arguments})
    n = 1
    while (spent := timer.timeit(n)) < enough:
        n = max(2 * n, int(1.2 * n * enough / max(spent, 1e-9)) if spent > enough / 100 else 10 * n)
    return min(spent, *timer.repeat(REPEATS, n)) / n
