"""After a fork at any time, while other threads trace, compile and drop kernels, the child makes and calls kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")

CODE = """
import os, random, signal, sys, threading, time, warnings
import numpy as np
import bellcrank as bc
from bellcrank.emit.llvm.host import compile_cached

warnings.simplefilter("ignore")
how, forks = sys.argv[1], int(sys.argv[2])
over = threading.Event()
shared = bc.zoo.load("excavator")
simulator = bc.Simulator(bc.zoo.load("puma600")) if how == "simulator" else None

def new(seed):
    "A kernel that nobody has made yet, and what it should give."
    m = bc.zoo.random_tree(seed, n=3)
    k = bc.kernel(m, "forward_dynamics", method="aba")
    q, v, tau = m.random(0)
    assert not k.from_cache
    a = k(q, v, tau)
    assert np.allclose(bc.kernel(m, "inverse_dynamics", method="rnea")(q, v, a), tau)

def work(seed):
    "Work until it is over, from a seed that is this thread's own: no two threads make one kernel."
    first = seed
    while not over.is_set():
        seed += 1
        if how == "kernels":
            new(seed)
        elif how == "properties":
            m = bc.zoo.random_tree(seed, n=8)
            m.fingerprint, bc.kernel(m, "inverse_dynamics", method="rnea").graph
        else:
            with simulator._lock:
                time.sleep(0.01)
            bc.simulate(simulator.system.mechanism, seconds=0.001, step=1e-3 / (seed - first + 1))

threads = [threading.Thread(target=work, args=(10_000 * n,), daemon=True) for n in (1, 2)]
for t in threads: t.start()
chance = random.Random(1)
for n in range(forks):
    time.sleep(chance.uniform(0.0, 0.1))
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            new(n)
            if simulator is not None:
                simulator.program()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        print(f"child {n} ended with {status}", file=sys.stderr)
        os._exit(1)
over.set()
for t in threads: t.join()
print("done")
"""


def run(how: str, forks: int, folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "BELLCRANK_CACHE": str(folder)}
    command = [sys.executable, "-c", CODE, how, str(forks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


IMPORTS = """
import os, signal, sys, threading, time
import bellcrank
names = ["bellcrank.zoo", "bellcrank.sim", "bellcrank.build.equations", "bellcrank.build.schedules", "bellcrank.record"]

def work():
    for name in names:
        __import__(name)

worker = threading.Thread(target=work)
worker.start()
while True:
    last = not worker.is_alive()
    child = os.fork()
    if not child:
        signal.alarm(60)
        work()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not status, status
    if last:
        break
print("done")
"""


def test_imports_under_way(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("how", ["kernels", "properties", "simulator"])
def test_a_child_compiles_and_calls(how: str, tmp_path: Path) -> None:
    run(how, 5, tmp_path)
