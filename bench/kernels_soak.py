"""`python -m bench.kernels_soak [--minutes 10]`: kernels made, called, dropped, forked, interrupted from eight threads.

The threads are in a process of its own whose freed memory is overwritten at once (MALLOC_PERTURB_), so that a use after
free is a crash. It prints every few seconds how far each thread is, and this process checks the progress. The report
has the work done, a crash, a hang with the stacks of all threads, and the growth of memory in the second half.

Memory is measured while no thread works: from time to time all threads meet, garbage is collected, and free pages are
returned. All threads share one arena of the allocator. With one arena each, as usual, resident memory grows as long as
threads collide by chance (2 to 4 MiB a minute in the first minutes), while the allocated memory stays the same.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.scheduling import Machine
from bellcrank.scheduling.machines import complete

THREADS = 8
EVERY = 2.0  # seconds between reports
MEETING = 10.0  # seconds between measurements of memory
# Otherwise each thread caches some freed memory, which counts as allocated, and has an arena of its own. Pages of an
# arena are returned only if they are completely free, so resident memory would depend on the timing of threads.
TUNABLES = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"
PATIENCE = 120.0  # seconds without progress of any thread
NAMES = ("pendulum", "puma600", "excavator")
TREE = bc.zoo.load("tree(15)")  # once: ast.parse from several threads may fail in Python before 3.11.8 (gh-106905)
COST = {**Machine("", complete(1)).cost, "neg": 0.0}


class InterruptError(Exception):
    """Raised by a signal, anywhere in a call."""


class _Mallinfo(ctypes.Structure):
    _fields_ = [(f"field{k}", ctypes.c_size_t) for k in range(10)]


def weighed() -> dict[str, int]:
    """Return bytes of this process: resident, allocated (malloc), and taken from the system for all arenas."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.malloc_trim(0)
    libc.mallinfo2.restype = _Mallinfo
    found = libc.mallinfo2()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    held, mapped, arenas = found.field7, found.field4, found.field0
    return {"resident": resident, "held": held + mapped, "taken": arenas + mapped}


class Soak:
    def __init__(self, seconds: float) -> None:
        self.began = time.monotonic()
        self.until = self.began + seconds
        self.meeting = self.began + min(MEETING, seconds / 4.0)
        self.barrier = threading.Barrier(THREADS, self.weigh)
        self.weights: list[dict[str, float]] = []
        self.over = False
        self.counts: dict[str, int] = {}
        self.turns = [0] * THREADS
        self.wrong: list[str] = []
        self.serial = itertools.count()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # -- the work of a thread

    def kernel(self, r: random.Random) -> None:
        """Call a cached kernel in some way and drop it, sometimes inside one more reference cycle."""
        m = bc.zoo.load(r.choice(NAMES))
        threads = r.choice((1, 1, 2))
        k = bc.kernel(m, r.choice(("forward_dynamics", "inverse_dynamics")), method="auto", threads=threads)
        state = m.random(r.randrange(100), r.choice(((), (), (5,), (200,), (5000,))))
        result = k(*state)
        self.same(k.signature.name, result, k.convert(*state))
        if r.random() < 0.3:
            k.me = k  # type: ignore[attr-defined]
        self.count("kernels")

    def new(self, r: random.Random) -> None:
        """Compile a new kernel."""
        m = bc.zoo.random_tree(os.getpid() * 100_000 + next(self.serial), n=3)
        q, v, tau = m.random(0)
        a = bc.kernel(m, "forward_dynamics", method="aba")(q, v, tau)
        back = bc.kernel(m, "inverse_dynamics", method="rnea")(q, v, a)
        if not np.allclose(back, tau, atol=1e-6 * (1.0 + abs(tau).max())):
            self.wrong.append(f"inverse and forward dynamics of {m!r} differ")
        self.count("compiled")

    def cores(self, r: random.Random) -> None:
        """Compare one state on several cores with one core."""
        p = r.choice((2, 3))
        machine = Machine(f"soak({p})", complete(p), COST, start=0.2, word=0.01)
        m = TREE
        k = bc.kernel(m, "forward_dynamics", method="aba", machine=machine)
        if k.team is not None:  # type: ignore[attr-defined]
            k.team.pin([0, 1][: p - 1] * 2, r.choice((0, 0, 1000)))  # type: ignore[attr-defined]
        single = bc.kernel(m, "forward_dynamics", method="aba")
        for seed in range(r.choice((5, 50))):
            state = m.random(seed)
            self.same("cores", k(*state), single(*state))
        self.count("cores")

    def fork(self, r: random.Random) -> None:
        seed = r.randrange(1 << 30)
        child = os.fork()
        if not child:
            signal.alarm(int(PATIENCE))
            try:
                self.wrong = []
                own = random.Random(seed)
                for act in (self.new, self.kernel, self.cores):
                    act(own)
                sys.stderr.write("".join(f"in a child: {x}\n" for x in self.wrong))
                os._exit(bool(self.wrong))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            self.wrong.append(f"a child ended with {status}")
        self.count("forks")

    def interrupted(self, r: random.Random) -> None:
        """Interrupt a batch on two threads, in the main thread, where signals arrive."""
        m = bc.zoo.load("puma600")
        k = bc.kernel(m, "forward_dynamics", threads=2)
        state = m.random(1, (20_000,))
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, r.uniform(1e-4, 2e-2))
                k(*state)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except InterruptError:
            self.count("interrupted")
        self.count("interruptible")

    def unraised(self, told: Any) -> None:
        """Record exceptions in `__del__`, which Python cannot pass on.

        One of a signal that came at that moment is allowed.
        """
        if issubclass(told.exc_type, InterruptError):
            self.count("interrupted while something was freed")
        else:
            self.wrong.append(f"{told.err_msg or 'in'} {told.object!r}: {told.exc_type.__name__}: {told.exc_value}")

    def same(self, what: str, a: Any, b: Any) -> None:
        if np.asarray(a).tobytes() != np.asarray(b).tobytes() and not np.allclose(a, b, rtol=1e-9):
            self.wrong.append(f"{what}: {a} is not {b}")

    # -- threads

    def work(self, me: int) -> None:
        r = random.Random(me)
        acts: list[Callable[[random.Random], None]] = [self.kernel] * 8 + [self.cores] * 2 + [self.new]
        if me < 2:
            acts = [*acts, self.fork]
        if me == 0:
            acts = [*acts, *[self.interrupted] * 4]
        try:
            while not self.over:
                r.choice(acts)(r)
                if r.random() < 0.1:
                    gc.collect()
                self.turns[me] += 1
                if time.monotonic() > self.meeting:
                    self.barrier.wait()
        except threading.BrokenBarrierError:  # another thread reports the reason
            pass
        except BaseException:
            self.wrong.append(traceback.format_exc())
            self.barrier.abort()

    def weigh(self) -> None:
        """Measure memory while no thread works. Teams end slightly later than the kernels that used them."""
        time.sleep(0.2)
        now = time.monotonic()
        self.weights.append({"second": now - self.began, **weighed()})
        self.meeting = time.monotonic() + MEETING
        self.over = now > self.until or bool(self.wrong)

    def report(self) -> None:
        while time.monotonic() < self.until + PATIENCE:
            self.say()
            time.sleep(EVERY)

    def say(self) -> None:
        said = {"turns": self.turns, "counts": self.counts, "weights": self.weights}
        print(json.dumps({**said, "threads": threading.active_count()}), flush=True)


def inside(seconds: float) -> int:
    warnings.simplefilter("ignore")  # Python warns of forks with threads, which are intended here
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)

    def interrupt(*_: object) -> None:
        raise InterruptError

    signal.signal(signal.SIGALRM, interrupt)
    soak = Soak(seconds)
    sys.unraisablehook = soak.unraised
    threading.Thread(target=soak.report, daemon=True).start()
    others = [threading.Thread(target=soak.work, args=(k,)) for k in range(1, THREADS)]
    for t in others:
        t.start()
    soak.work(0)
    for t in others:
        t.join()
    soak.say()
    for x in soak.wrong:
        print(x, file=sys.stderr)
    return bool(soak.wrong)


def slope(weights: list[dict[str, float]], what: str) -> float:
    """Return bytes per second over the second half."""
    half = weights[len(weights) // 2 :]
    found = np.polyfit([w["second"] for w in half], [w[what] for w in half], 1) if len(half) > 2 else [0.0]
    return float(found[0])


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench.kernels_soak")
    asked.add_argument("--minutes", type=float, default=10.0)
    given = asked.parse_args()
    seconds = 60.0 * given.minutes
    environment = os.environ | {"MALLOC_PERTURB_": "255", "PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": TUNABLES}
    command = [sys.executable, "-m", "bench.kernels_soak", "inside", str(seconds)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    began = moved = told = time.monotonic()
    last: dict[str, Any] = {"turns": [], "weights": []}

    def watch() -> None:
        while process.poll() is None:
            time.sleep(1.0)
            if time.monotonic() - moved > PATIENCE:
                process.send_signal(signal.SIGUSR1)  # prints the stacks of all threads
                time.sleep(2.0)
                process.kill()

    threading.Thread(target=watch, daemon=True).start()
    for line in process.stdout:
        now, said = time.monotonic(), json.loads(line)
        if said["turns"] != last["turns"]:
            moved = now
        last = said
        if now - told > 60.0:
            told = now
            print(f"{now - began:.0f} s: {said['counts']}", flush=True)
    code = process.wait()
    end = "hang" if code == -signal.SIGKILL else f"crash ({signal.Signals(-code).name})" if code < 0 else "end"
    print(f"{end}, exit status {code}, after {time.monotonic() - began:.0f} s; turns of the threads {last['turns']}")
    print(f"{last.get('counts')}")
    weights = last["weights"]
    for what in ("resident", "held", "taken") if weights else ():
        first, final = weights[len(weights) // 2][what], weights[-1][what]
        grown = slope(weights, what) * 60 / 2**20
        print(f"{what} {first / 2**20:.2f} MiB at half time, {final / 2**20:.2f} MiB at the end, {grown:+.3f} a minute")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(inside(float(sys.argv[2])) if sys.argv[1:2] == ["inside"] else main())
