"""Dropped kernels: code that is still called stays in memory, and all other memory is freed.

Each case is a program of its own whose freed memory is overwritten at once (MALLOC_PERTURB_), so that every use after
free is a crash.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from bellcrank.emit.cpu.machine_code import hide_from_collector

HEAD = """
import gc, os, threading
import bellcrank as bc

m = bc.zoo.load("puma600")
state = m.random(0)
wanted = bc.kernel(m, "forward_dynamics")(*state).tobytes()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""
DROPPED = """
for _ in range(20):
    k = bc.kernel(m, "forward_dynamics")
    assert k(*state).tobytes() == wanted
    del k
    gc.collect()
"""
LAST_WORDS = """
class Owner:
    "In a cycle with its kernel, which it calls, one way or another, when it ends."
    def __init__(self, call):
        self.kernel, self.call, self.me = bc.kernel(m, "forward_dynamics"), call, self
    def __del__(self):
        said.append(self.call(self.kernel).tobytes())

said = []
for _ in range(10):
    for call in (lambda k: k(*state), lambda k: k.function(*state), lambda k: k.convert(*state)):
        Owner(call)
        gc.collect()
assert said == [wanted] * 30, len(said)
"""
RISEN = """
class Owner:
    "Comes back from the dead, and its kernel with it."
    def __init__(self):
        self.kernel, self.me = bc.kernel(m, "forward_dynamics"), self
    def __del__(self):
        risen.append(self.kernel)

risen = []
for _ in range(10):
    Owner()
    gc.collect()
others = [bc.kernel(m, "inverse_dynamics") for _ in range(10)]
assert len(risen) == 10 and all(k(*state).tobytes() == wanted for k in risen)
"""
THREADS = """
wrong = []
def work():
    try:
        for _ in range(30):
            assert bc.kernel(m, "forward_dynamics")(*state).tobytes() == wanted
    except BaseException as error:
        wrong.append(error)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong, wrong
"""
KEPT = """
def work(times):
    for i in range(times):
        bc.kernel(m, "forward_dynamics")(*state)
        if i % 20 == 0: gc.collect()
work(300)
before = resident()
work(200)
print(resident() - before)
"""
INTERRUPTED = """
import random, signal
from bellcrank.emit.cpu.thread_pool import shared_pool

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

k, states = bc.kernel(m, "forward_dynamics", threads=3), m.random(0, (20_000,))
chance, cut = random.Random(1), 0
for _ in range(150):
    shared_pool.cache_clear()  # so that its threads are started anew, and that is interrupted, too
    signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-2))
            k(*states)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one that is on its way comes too late
    except Interrupt:
        cut += 1
    states = tuple(x.copy() for x in states)  # the old ones are gone
assert cut
"""


def filled(code: str) -> str:
    """Return the output of a program that must end without error."""
    environment = os.environ | {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-X", "faulthandler", "-c", HEAD + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [DROPPED, LAST_WORDS, RISEN, THREADS, INTERRUPTED],
    ids=["dropped", "called", "risen", "threads", "interrupted"],
)
def test_the_end_of_a_kernel(code: str) -> None:
    filled(code)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="says how much memory there is")
def test_no_object_is_leaked() -> None:
    """200 dropped kernels leave nothing behind; each has at least one page of machine code."""
    assert int(filled(KEPT)) < 200 * 4096 / 2


def test_hidden_objects_are_not_tracked_by_the_collector() -> None:
    class Thing:
        pass

    thing = Thing()
    held = hide_from_collector(thing)
    assert not gc.is_tracked(held)
    assert held not in gc.get_referrers(thing)
