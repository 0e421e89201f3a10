"""The target threads(p) under faults: busy cores, signals, forks, dropped kernels. No thread waits for ever."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref

import pytest

import bellcrank as bc
from bellcrank.emit.cores.target import ParallelKernel
from cores import EVER, all_cpus, cut, same
from waiting import wait

__all__ = ["all_cpus"]  # a fixture
pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX threads")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity")
@pytest.mark.parametrize(
    ("processors", "patience", "states"), [(2, 0, 3000), (4, 0, 3000), (2, EVER, 30), (3, EVER, 10)]
)
def test_all_on_one_busy_cpu(processors: int, patience: int, states: int, all_cpus: None) -> None:
    """Thousands of states are computed while the workers share a CPU with the caller and with two busy processes."""
    m = bc.zoo.load("tree(15)")
    k = cut(m, processors)
    cpu = min(os.sched_getaffinity(0))
    k.team.pin([cpu] * (processors - 1), patience)  # type: ignore[union-attr]
    os.sched_setaffinity(0, {cpu})
    # they inherit the CPU affinity
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        same(k, m, states=states, together=0)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals")
def test_signals() -> None:
    m = bc.zoo.load("tree(15)")
    k = cut(m)
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        until = time.monotonic() + 60
        while len(seen) < 50 and time.monotonic() < until:
            same(k, m, together=0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) >= 50


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_fork() -> None:
    """A forked child starts its own workers, and those of the parent continue."""
    m = bc.zoo.load("tree(15)")
    k = cut(m)
    same(k, m)
    for _ in range(3):
        child = os.fork()
        if not child:
            try:
                same(k, m)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        same(k, m)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_child_does_not_read_its_parents_messages() -> None:
    """A child does not read messages of its parent.

    The parent has computed one state on several cores, and its messages stay in memory with a step number. The child
    computes another state, for which these messages must not be used.
    """
    m = bc.zoo.load("tree(15)")
    k = cut(m)
    first, second = (m.random(seed) for seed in (1, 2))
    until = time.monotonic() + 60
    while not k.counts[0] and time.monotonic() < until:
        k(*first)
    assert k.counts[0] == 1
    wanted = bc.kernel(m, "forward_dynamics", method=k.method)(*second).tobytes()
    child = os.fork()
    if not child:
        right = all(k(*second).tobytes() == wanted for _ in range(1000) if time.monotonic() < until)
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_calls_from_several_threads() -> None:
    m = bc.zoo.load("tree(15)")
    k, other = cut(m), cut(m, 3)
    wrong: list[BaseException] = []

    def work(kernel: ParallelKernel) -> None:
        try:
            same(kernel, m, states=200, together=0)
            q, v, tau = m.random(0, (500,))  # long enough for other threads to run
            single = bc.kernel(m, "forward_dynamics", method=kernel.method)
            assert (kernel(q, v, tau)[-1] == single(q[-1], v[-1], tau[-1])).all()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(kernel,)) for kernel in (k, other, k, k, other)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_idle_workers_sleep_and_wake() -> None:
    m = bc.zoo.load("tree(7)")
    k = cut(m)
    same(k, m)
    assert k.team is not None
    wait(lambda: k.team.awake == 0)
    same(k, m)


def test_a_forgotten_kernel_ends_its_threads() -> None:
    m = bc.zoo.load("tree(7)")
    k = cut(m)
    same(k, m)
    assert k.team is not None
    threads = list(k.team._threads)
    assert all(t.is_alive() for t in threads)
    gone = weakref.ref(k)
    del k
    gc.collect()
    assert gone() is None
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)


def test_the_interpreter_ends_in_the_middle_of_it() -> None:
    code = """
import bellcrank as bc
from bellcrank.scheduling import Machine
from bellcrank.scheduling.machines import complete
m = bc.zoo.load("tree(7)")
k = bc.kernel(m, "forward_dynamics", machine=Machine("x", complete(2), start=2.0))
if k.team: k.team.pin([0])
q, v, tau = m.random(0)
for _ in range(1000): k(q, v, tau)
print("done")
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
