"""`python -m bench size`: growth of first-call time, memory and time per state with the number of bodies.

Each first call is a process of its own with an empty cache: its time is processor time, from the given mechanism to the
first result, and its memory the peak of the process. `python -m bench.size [FILE.svg]` prints the table of
docs/size.md, and draws it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bellcrank.papers.fijany import MEASUREMENTS_FILE
from bench import baseline
from bench.row import CORE, Row

FIRST = {"chain:256": (1.5, 0.5), "chain:1024": (3.0, 1.0), "chain:10000": (10.0, 3.0)}  # seconds: promised, aimed at
MEMORY = 1000.0  # MB, of any of them
SIZES = (1, 3, 10, 30, 64, 100, 256, 1024, 3000, 10_000, 30_000, 100_000)
# Loops: the cost of a step must grow linearly with the number of bodies.
LOOPS: dict[str, tuple[str, ...]] = {
    "a ring, one loop": tuple(f"ring:{n}" for n in (100, 200, 300, 400)),
    "a track, one loop": tuple(f"track:{n}" for n in (90, 180, 270, 360)),
    "a scissor lift, a loop for each stage": tuple(f"scissor:{n}" for n in (20, 30, 40, 50)),
    "four-bars side by side": tuple(f"four_bars:{n}" for n in (10, 20, 30, 40)),
    "a tree with 32 loops": tuple(f"tied_tree:{n}:32" for n in (511, 1023, 2047, 4095)),
}
MEASURE = """
import json, sys, time
import numpy as np
import bellcrank as bc
m = bc.zoo.load(sys.argv[1])
q, v, tau = m.random(0)
start = time.process_time()
a = m.forward_dynamics(q, v, tau)
first = time.process_time() - start
memory = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1e3  # ru_maxrss knows who forked us
k = bc.kernel(m, "forward_dynamics")
k.whole()  # the code of a batch, too
best = np.inf
clock = time.perf_counter if m.nv < 10_000 else time.thread_time  # milliseconds are never left alone
for _ in range(200):
    start = clock()
    k(q, v, tau, out=a)
    best = min(best, clock() - start)
print(json.dumps({"first": first, "memory": memory, "ns": 1e9 * best, "bytes": k.code_size, "bodies": m.nv}))
"""


TALOS = """
import json, sys, time
import bellcrank as bc
from bench.row import robot
import bellcrank.build.graphs, bellcrank.dynamics.denoc, bellcrank.emit.cpu.kernel_module  # imports are not compiling
from bellcrank.emit.llvm.host import host
m = robot("talos", floating=True)
state = m.random(0)
host()
start = time.process_time()
m.forward_dynamics(*state)
print(json.dumps(time.process_time() - start))
"""

AGREEMENT = """
import json
import numpy as np
import bellcrank as bc
from bellcrank.build import graphs, policy
m = bc.zoo.load("chain:100")
q, v, tau = m.random(0)
worst = 0.0
for quantity, method in (("forward_dynamics", "aba"), ("inverse_dynamics", "rnea")):
    policy.MAX_STRAIGHT_OPERATIONS = 1
    shared = bc.kernel(m, quantity, method=method)
    assert shared.graph.opaque
    policy.MAX_STRAIGHT_OPERATIONS = 10**9
    straight = graphs.graph(m, quantity, method)
    assert not straight.opaque
    want = straight.evaluate(q=q, v=v, **{x: tau for x in straight.inputs if x not in "qv"})[quantity]
    worst = max(worst, float(np.abs(shared(q, v, tau) - want).max() / np.abs(want).max()))
print(json.dumps(worst))
"""

ALLOWED = os.sched_getaffinity(0)  # before the process is pinned
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
    """Time one state of a long chain by aba on one core, and by dca on two cores other than the pinned one."""
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, ALLOWED)
    try:
        found: dict[str, Any] = apart(TWO_CORES)
    finally:
        os.sched_setaffinity(0, pinned)
    assert found["off"] < 1e-10
    assert found["together"], "two cores never were at work together"
    return found


def measured(name: str) -> dict[str, Any]:
    """Return the first call of a chain, and the time of later ones."""
    found: dict[str, Any] = apart(MEASURE, name)
    return found


def apart(script: str, *arguments: str) -> Any:
    """Return what a script prints in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", script, *arguments]
        environment = {
            k: x for k, x in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
        }  # as installed packages do
        environment |= {"BELLCRANK_CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def step_work(name: str) -> tuple[int, int]:
    """Return bodies, and the operations of a step by rk4: four rates and the projection onto the loops."""
    import bellcrank as bc
    from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics
    from bellcrank.sim.run.simulator import Simulator

    m = bc.zoo.load(name)
    by = Simulator(m, "rk4").dynamics
    assert isinstance(by, LoopedDynamics)
    return len(m.bodies), 4 * by.f.count().arithmetic + by.correction.count().arithmetic


def loop_rows() -> Iterator[Row]:
    for what, names in LOOPS.items():
        seen = [step_work(name) for name in names]
        (n, first), (m, last) = seen[0], seen[-1]
        each = ", ".join(f"{work / bodies:,.0f}" for bodies, work in seen)
        yield Row(f"{what}: operations of a step for a body ({each})", (last / m) / (first / n), None, "x", 1.1, 1.02)


def rows() -> Iterator[Row]:
    yield from loop_rows()
    seen = {name: measured(name) for name in ("chain:512", *FIRST)}
    for name, (must, aim) in FIRST.items():
        yield Row(f"first call, {name}", seen[name]["first"], None, "s", must, aim)
    worst = max(x["memory"] for x in seen.values())
    yield Row("memory while compiling, the most", worst, None, "MB", MEMORY, 300.0)
    each = {name: seen[name]["ns"] / seen[name]["bodies"] for name in seen}
    growth = each["chain:10000"] / each["chain:1024"]
    yield Row("time per body, 10,000 against 1,024", growth, None, "x", 1.4, 1.1)
    talos = min(apart(TALOS) for _ in range(3))  # the best of some, as the computer may be busy
    yield Row("first call, Talos with a floating base", talos, None, "s", 0.8, 0.4)
    yield Row("loops against straight-line code, relative, chain:100", apart(AGREEMENT), None, "", 1e-10, 1e-12)
    recorded = json.loads(MEASUREMENTS_FILE.read_text())["rows"]  # by bench.size_gpu, where there is a GPU
    gpu = next(row for row in recorded if row["bodies"] == 100_000)
    yield Row(
        "one state, chain:100000, H200 against one core", 1e3 * gpu["gpu_us"], 1e3 * gpu["one_core_us"], "ns", 10, 40
    )
    both = two_cores()
    yield Row("one state, chain:10000, two cores against one", both["two"], both["one"], "ns", 1.3, 1.6)
    if baseline.available():
        theirs = baseline.flavours_ns("chain:512", "aba", False, core=CORE)
        usual, fastest = theirs[0].ns_min, min(t.ns_min for t in theirs)
        yield Row("one state, chain:512, Pinocchio", seen["chain:512"]["ns"], usual, "ns", 8.0, 12.0, fastest)


# One call of a peer in a process of its own, which ends if it runs out of memory or refuses.
PEERS = {
    "Pinocchio": """
import pinocchio
from bench.peers import pinocchio_model
model = pinocchio_model(m)
data = model.createData()
call = lambda: pinocchio.aba(model, data, q, v, tau)
""",
    "MuJoCo": """
import mujoco
from bench.peers import mjcf
model = mujoco.MjModel.from_xml_string(mjcf(m, 1e-3))
data = mujoco.MjData(model)
data.qpos, data.qvel, data.qfrc_applied = q, v, tau
call = lambda: mujoco.mj_forward(model, data)
""",
}
PEER = """
import json, resource, sys, time
import bellcrank as bc
sys.setrecursionlimit(100_000)
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
m = bc.zoo.load(sys.argv[1])
q, v, tau = m.random(0)
{made}
call()
times = []
for _ in range(30):
    start = time.perf_counter()
    call()
    times.append(time.perf_counter() - start)
print(json.dumps({{"ns": 1e9 * min(times), "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}}))
"""


def peer(name: str, mechanism: str, patience: float = 60.0) -> dict[str, float] | None:
    """Return None where the peer fails."""
    command = [sys.executable, "-c", PEER.format(made=PEERS[name]), mechanism]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=patience)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(picture: str = "") -> None:
    seen, theirs = [], {name: dict[int, float]() for name in PEERS}
    print(f"| bodies | first call | memory | code | one state | of a body | {' | '.join(PEERS)} |")
    print("|---" * (6 + len(PEERS)) + "|")
    for n in SIZES:
        x = measured(f"chain:{n}")
        first, memory, code, state = x["first"], x["memory"], x["bytes"] / 1e3, x["ns"] / 1e3
        cells = [f"{n:,}", f"{first:.2f} s", f"{memory:.0f} MB", f"{code:.0f} kB", f"{state:.1f} us"]
        cells.append(f"{x['ns'] / n:.0f} ns")
        for name, times in theirs.items():
            found = peer(name, f"chain:{n}") if n == 1 or (times and max(times) == seen[-1][0]) else None
            if found is not None:
                times[n] = found["ns"] / 1e3
            cells.append(f"{times[n]:.1f} us" if n in times else "")
        print(f"| {' | '.join(cells)} |", flush=True)
        seen.append((n, first, memory, code, state))
    if picture:
        plot(seen, theirs, picture)


def plot(seen: list[tuple[float, ...]], theirs: dict[str, dict[int, float]], path: str) -> None:
    """Plot four curves over the number of bodies, and the peers as far as they go; all axes are logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5))
    axes = figure.add_subplot()
    n, *curves = zip(*seen, strict=True)
    for values, label in zip(curves, ("first call, s", "memory, MB", "machine code, kB", "one state, us"), strict=True):
        axes.loglog(n, values, marker="o", markersize=3, label=label)
    for name, times in theirs.items():
        axes.loglog(list(times), list(times.values()), "--", marker="x", markersize=4, label=f"one state, us: {name}")
    axes.set_xlabel("bodies of a chain")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
