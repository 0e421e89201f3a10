"""`python -m bench exported`: a step of the C package, by gcc -O3 -march=native, against the run of bc.simulate.

Both take the same steps from the same rest, one state on one pinned core, in CPU time of its thread. "Ours" here is the
exported package and "theirs" our run, so a ratio is the share of its rate: at most 1.3 times slower is 0.77. They are
measured in turns, and the fastest counts. The steps of a run are the time of a long run minus that of a short one: a
call of a run takes a varying few milliseconds before its first step. A long run has so many steps that these
milliseconds are a hundredth of it. The steps are short, so that no run reaches a singular configuration.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bellcrank as bc
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting.export_content import effort_driven
from bench.row import Row, robot

STEP, FEW, SECONDS, ROUNDS, SLOWER = 1e-6, 100, 0.1, 8, 1.3
SYSTEMS = (
    "ur5", "panda", "excavator", "excavator_linkage", "chain(300)", "four_bar", "slider_fourbar", "n_four_bar",
    "parallel_cranks", "rod_pendulum", "andrews", "delta", "double_wishbone", "bricard", "stewart",
)  # fmt: skip
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared", "-D_POSIX_C_SOURCE=199309L")
TIMED = """
#include "{name}.h"
#include <time.h>
double timed(int steps);
double timed(int steps)
{{
    {rooms}
    struct timespec a, b;
    int k, status = 0;
    {name}_init({given});
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (k = 0; k < steps && status == 0; ++k) status = {name}_step({given});
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return status ? -1.0 : (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}}
"""


def rows() -> Iterator[Row]:
    if shutil.which("gcc") is None:
        return
    yield from map(one, SYSTEMS)


def plant(name: str) -> bc.System:
    if name in MACHINES:
        return MACHINES[name]().system
    return effort_driven(robot(name) if name in ("ur5", "panda") else bc.zoo.load(name))


def one(name: str) -> Row:
    made = plant(name)
    step = compiled(made)
    steps = int(SECONDS / step(10 * FEW))
    run = simulated(made, steps)
    theirs, ours = (1e9 * min(times) for times in zip(*((run(), step(steps)) for _ in range(ROUNDS)), strict=True))
    return Row(f"one state, {name}, step in C, in bc.simulate", ours, theirs, "ns", 1 / SLOWER)


def simulated(made: bc.System, steps: int) -> Callable[[], float]:
    """Return seconds per step of a run."""
    run = bc.Simulator(made, "rk4", form="projected") if made.mechanism.loops else bc.Simulator(made, "rk4")
    rest = run.program().ports.rest[: made.mechanism.nq]

    def taken(count: int) -> float:
        began = time.thread_time()
        run.run(count * STEP, step=STEP, keep="final", q0=rest)
        return time.thread_time() - began

    taken(FEW)
    return lambda: (min(taken(steps) for _ in range(2)) - min(taken(FEW) for _ in range(2))) / (steps - FEW)


def compiled(made: bc.System) -> Callable[[int], float]:
    """Return seconds per step of the C package."""
    folder = Path(tempfile.mkdtemp())
    bc.export(made, folder / "it", to="c", name="it", step=STEP, integrator="rk4")
    header = (folder / "it" / "it.h").read_text()
    kinds = [(x, w) for x, w in (("s", "state"), ("u", "inputs"), ("p", "parameters")) if f"}} it_{w};" in header]
    rooms, given = " ".join(f"it_{w} {x};" for x, w in kinds), ", ".join(f"&{x}" for x, _ in kinds)
    (folder / "it" / "timed.c").write_text(TIMED.format(name="it", rooms=rooms, given=given))
    command = ["gcc", *FLAGS, "it.c", "timed.c", "-o", "it.so", "-lm"]
    subprocess.run(command, cwd=folder / "it", check=True)
    code = ctypes.CDLL(str(folder / "it" / "it.so"))
    shutil.rmtree(folder)
    code.timed.restype = ctypes.c_double

    def taken(steps: int) -> float:
        found = float(code.timed(steps))
        if found < 0.0:
            raise RuntimeError(f"{made.mechanism.name}: a step in C failed.")
        return found / steps

    return taken
