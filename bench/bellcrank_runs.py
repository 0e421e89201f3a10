"""Times of Bellcrank in the comparison: batches and single states, from Python and from a native loop."""

from __future__ import annotations

import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_text

# Calls @one for every row, as a C program that links the kernel would do.
LOOP = """define void @loop(ptr %one, i64 %n, {parameters}) {{
  br label %next
next:
  %i = phi i64 [0, %0], [%j, %next]
{offsets}
  %status = call i64 %one({arguments})
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}"""


@cache
def loop(sizes: tuple[int, ...]) -> tuple[Library, Callable[..., None]]:
    names = [f"%a{i}" for i in range(len(sizes))]
    library = Library(
        compile_text(
            LOOP.format(
                parameters=", ".join(f"ptr {a}" for a in names),
                offsets="\n".join(
                    f"  %o{i} = mul i64 %i, {8 * size}\n  %p{i} = getelementptr i8, ptr %a{i}, i64 %o{i}"
                    for i, size in enumerate(sizes)
                ),
                arguments=", ".join(f"ptr %p{i}" for i in range(len(sizes))),
            )
        )
    )
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(sizes))
    return library, kind(library.address("loop"))


def best(call: Callable[[], Any], seconds: float) -> float:
    """Return the fastest of many calls, in ns: on a shared machine the minimum is the least disturbed."""
    call()
    fastest, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        t0 = time.perf_counter_ns()
        call()
        fastest = min(fastest, time.perf_counter_ns() - t0)
    return fastest


def inputs(m: bc.Mechanism, kernel: bc.Kernel, batch: tuple[int, ...]) -> list[Any]:
    q, v, tau = m.random(0, batch)
    known = {"q": q, "v": v, "tau": tau, "a": tau}
    return [np.ascontiguousarray(known[name]) for name in kernel.signature.inputs]


RESULTS = 2**20  # bytes of results: the computation is compared, and peers do not write their results to memory


def fitting(kernel: bc.Kernel, rows: int) -> int:
    """Return the number of rows whose results fit into RESULTS; otherwise a core would wait for the memory."""
    one = 8 * sum(math.prod(shape) for shape in kernel.signature.outputs.values())
    return min(rows, max(64, RESULTS // one))


def batch_ns(m: bc.Mechanism, kernel: bc.Kernel, rows: int = 4096, seconds: float = 0.2) -> float:
    """Return ns per state of one call from Python with row-major arrays, into an existing array.

    Fewer rows are used where results are large: three matrices of Talos are 35 kB.
    """
    rows = fitting(kernel, rows)
    arrays = inputs(m, kernel, (rows,))
    out = np.empty_like(kernel(*arrays))
    return best(lambda: kernel(*arrays, out=out), seconds) / rows


def native_ns(m: bc.Mechanism, kernel: bc.Kernel, rows: int = 1024, seconds: float = 0.2) -> float:
    """Return ns per state of a native loop over single states, at most as many as in a batch."""
    rows = fitting(kernel, rows)
    arrays = inputs(m, kernel, (rows,))
    arrays.append(np.empty_like(kernel(*arrays)))
    _, call = loop(tuple(a[0].size for a in arrays))
    pointers = [a.ctypes.data for a in arrays]
    one = kernel.library.address("one")
    return best(lambda: call(one, rows, *pointers), seconds) / rows


def python_ns(m: bc.Mechanism, seconds: float = 0.2) -> float:
    """Return ns of `m.forward_dynamics(q, v, tau)` on one state, called from Python."""
    states = list(zip(*m.random(0, (256,)), strict=True))
    call = m.forward_dynamics

    def many() -> None:
        for q, v, tau in states:
            call(q, v, tau)

    return best(many, seconds) / len(states)


COMPILE = """
import json, sys, time
import bellcrank as bc
spec = json.loads(sys.argv[1])
m = bc.zoo.load(spec["robot"]) if spec["zoo"] else bc.read(spec["robot"], **spec["options"])
m.tree
t0 = time.perf_counter()
k = bc.kernel(m, "forward_dynamics")
seconds = time.perf_counter() - t0
import resource
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"seconds": seconds, "cached": k.from_cache, "peak_gb": peak}))
"""


def compile_seconds(robot: str, zoo: bool = False, **options: Any) -> tuple[float, float, float]:
    """Return (cold, from the cache, peak GB), each in a fresh process with an empty and then a filled cache."""
    spec = json.dumps({"robot": robot, "zoo": zoo, "options": options})
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed packages do
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for _ in range(2):
            said = subprocess.run(
                [sys.executable, "-c", COMPILE, spec],
                env=environment | {"BELLCRANK_CACHE": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            found.append(json.loads(said.stdout))
    if found[0]["cached"] or not found[1]["cached"]:
        raise RuntimeError(f"the cache did not do what it should: {found}")
    return found[0]["seconds"], found[1]["seconds"], found[0]["peak_gb"]
