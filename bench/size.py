"""`python -m bench size`: how time to the first call, memory and time of a state grow with the number of bodies.

Each first call is a process of its own with an empty cache: its time is that of the processor, from the mechanism at
hand to the first result, and its memory the most that the process ever had. `python -m bench.size [FILE.svg]` prints
the table of docs/size.md, and draws it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench import baseline
from bench.row import CORE, Row

FIRST = {"chain:256": (1.5, 0.5), "chain:1024": (3.0, 1.0), "chain:10000": (10.0, 3.0)}  # seconds: promised, aimed at
MEMORY = 1000.0  # MB, of any of them
SIZES = (10, 30, 64, 100, 256, 512, 1024, 3000, 10_000)
MEASURE = """
import json, resource, sys, time
import numpy as np
import bellcrank as bc
m = bc.zoo.load(sys.argv[1])
q, v, tau = m.random(0)
start = time.process_time()
a = m.forward_dynamics(q, v, tau)
first = time.process_time() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
k = bc.kernel(m, "forward_dynamics")
best = np.inf
for _ in range(200):
    start = time.perf_counter()
    k(q, v, tau, out=a)
    best = min(best, time.perf_counter() - start)
print(json.dumps({"first": first, "memory": memory, "ns": 1e9 * best, "bytes": k.code_size, "bodies": m.nv}))
"""


TWO_CORES = """
import json, time
import numpy as np
import bellcrank as bc
m = bc.zoo.load("chain:10000")
state = m.random(0)
one = bc.kernel(m, "forward_dynamics", method="aba")
two = bc.kernel(m, "forward_dynamics", method="dca", machine="threads", processors=2)
best = {}
for _ in range(10):  # in turns: what else the computer does hurts both
    for k in (one, two):
        for _ in range(50):
            start = time.perf_counter()
            k(*state)
            best[k] = min(best.get(k, np.inf), time.perf_counter() - start)
off = float(np.abs(one(*state) - two(*state)).max() / np.abs(one(*state)).max())
print(json.dumps({"one": 1e9 * best[one], "two": 1e9 * best[two], "together": two.counts[0], "off": off}))
"""


def two_cores() -> dict[str, Any]:
    """One state of a long chain by aba on one core, and by dca on two."""
    done = subprocess.run([sys.executable, "-c", TWO_CORES], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["off"] < 1e-10
    return found


def measured(name: str) -> dict[str, Any]:
    """In a process of its own, with a cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", MEASURE, name]
        environment = os.environ | {"BELLCRANK_CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows() -> Iterator[Row]:
    seen = {name: measured(name) for name in ("chain:512", *FIRST)}
    for name, (must, aim) in FIRST.items():
        yield Row(f"first call, {name}", seen[name]["first"], None, "s", must, aim)
    worst = max(x["memory"] for x in seen.values())
    yield Row("memory while compiling, the most", worst, None, "MB", MEMORY, 300.0)
    each = {name: seen[name]["ns"] / seen[name]["bodies"] for name in seen}
    growth = each["chain:10000"] / each["chain:1024"]
    yield Row("time per body, 10,000 against 1,024", growth, None, "x", 1.4, 1.1)
    both = two_cores()
    yield Row("one state, chain:10000, two cores against one", both["two"], both["one"], "ns", 1.3, 1.6)
    if baseline.available():
        theirs = baseline.flavours_ns("chain:512", "aba", False, core=CORE)
        usual, fastest = theirs[0].ns_min, min(t.ns_min for t in theirs)
        yield Row("one state, chain:512, Pinocchio", seen["chain:512"]["ns"], usual, "ns", 8.0, 12.0, fastest)


def main(picture: str = "") -> None:
    seen = []
    print("| bodies | first call | memory | code | one state | of a body |")
    print("|---|---|---|---|---|---|")
    for n in SIZES:
        x = measured(f"chain:{n}")
        first, memory, code, state = x["first"], x["memory"], x["bytes"] / 1e3, x["ns"] / 1e3
        cells = (f"{n:,}", f"{first:.2f} s", f"{memory:.0f} MB", f"{code:.0f} kB", f"{state:.1f} us")
        print(f"| {' | '.join(cells)} | {x['ns'] / n:.0f} ns |", flush=True)
        seen.append((n, first, memory, code, state))
    if picture:
        plot(seen, picture)


def plot(seen: list[tuple[float, ...]], path: str) -> None:
    """Four curves over the number of bodies; all axes are logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5))
    axes = figure.add_subplot()
    n, *curves = zip(*seen, strict=True)
    for values, label in zip(curves, ("first call, s", "memory, MB", "machine code, kB", "one state, us"), strict=True):
        axes.loglog(n, values, marker="o", markersize=3, label=label)
    axes.set_xlabel("bodies of a chain")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
