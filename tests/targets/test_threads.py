"""The target threads(p): the same bits as one core, whatever the other cores do."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import build
from bellcrank.emit import crew as crews
from bellcrank.emit import pace
from bellcrank.emit.streams import stays
from bellcrank.emit.threads import ParallelKernel
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.schedule import Machine, tasks
from bellcrank.schedule.coarse import coarse, fine
from bellcrank.schedule.divide import divided
from bellcrank.schedule.machine import complete

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX threads")

EVER = 2**60
COST = {**Machine("", complete(1)).cost, "neg": 0.0}


def cheap(processors: int) -> Machine:
    """Messages cost next to nothing, so that even small mechanisms are cut."""
    return Machine(f"cheap({processors})", complete(processors), COST, start=0.2, word=0.01)


def cut(
    m: Mechanism, processors: int = 2, quantity: str = "forward_dynamics", patience: int = EVER, **more: Any
) -> ParallelKernel:
    """A kernel that waits for its workers for as long as it takes, unless told otherwise."""
    k = bc.kernel(m, quantity, machine=cheap(processors), **more)
    assert isinstance(k, ParallelKernel)
    assert k.crew is not None, "nothing was cut"
    cpus = crews.allowed()
    k.crew.on([cpus[i % len(cpus)] for i in range(1, processors)], patience)
    return k


def same(k: ParallelKernel, m: Mechanism, states: int = 20, together: int = 1, seconds: float = 60.0) -> None:
    """Bits agree with one core, and some states were really computed together."""
    single = bc.kernel(m, k.signature.name, method=k.method, dtype=k.signature.dtype)
    q, v, tau = m.random(3, (states,))
    known = {"q": q, "v": v, "tau": tau, "a": tau}
    rows = list(zip(*(known[name].astype(k.signature.dtype) for name in k.signature.inputs), strict=True))
    expected = [single(*row) for row in rows]
    first, until = k.counts[0], time.monotonic() + seconds
    while True:
        for row, wanted in zip(rows, expected, strict=True):
            assert k(*row).tobytes() == wanted.tobytes()
        if k.counts[0] - first >= together or time.monotonic() > until:
            break
    assert k.counts[0] - first >= together


@pytest.fixture
def all_cpus() -> Iterator[None]:
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    yield
    if before:
        os.sched_setaffinity(0, before)


# -- the same bits


@pytest.mark.parametrize("processors", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(seed: int, processors: int) -> None:
    m = bc.zoo.random_tree(seed, n=5 + 4 * seed, passive=seed % 2 == 1)
    same(cut(m, processors), m)


@pytest.mark.parametrize("name", ["excavator", "puma600", "tree(15)", "chain(12)"])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics", "mass_matrix"])
def test_zoo(name: str, quantity: str) -> None:
    m = bc.zoo.load(name)
    same(cut(m, 2, quantity), m)


@pytest.mark.parametrize("method", ["aba", "denoc", "crba"])
def test_methods_and_single_precision(method: str) -> None:
    m = bc.zoo.load("tree(15)")
    same(cut(m, 2, method=method), m)
    same(cut(m, 3, method=method, dtype="float32"), m)


def test_large_functions_are_cut_too() -> None:
    m = bc.zoo.load("tree(63)")
    k = cut(m, 2, method="aba")
    assert k.source.count("noinline") > 6
    same(k, m)


def test_far_angles_and_negative_zeros() -> None:
    m = bc.zoo.load("tree(7)")
    k, single = cut(m), bc.kernel(m, "forward_dynamics", method=cut(m).method)
    q, v, tau = m.random(0)
    for scale in (1e6, 1e12, -0.0):
        for _ in range(50):
            assert k(q * scale, v, tau * -0.0).tobytes() == single(q * scale, v, tau * -0.0).tobytes()


def test_products_stay_with_their_sums() -> None:
    """What is fused is decided before the graph is cut."""
    g = build.graph(bc.zoo.load("tree(15)"), "forward_dynamics", "aba")
    fused = stays(g)
    assert fused
    s = divided(g, cheap(2), fused)
    s.check()
    where = {n.serial: s.where[t.index] for t in s.tasks for n in t.nodes}
    assert s.used == 2
    assert all(where[product] == where[total] for product, total in fused.items())


def test_every_node_is_somewhere_once() -> None:
    g = build.graph(bc.zoo.load("tree(15)"), "forward_dynamics", "aba")
    small = fine(g, stays(g))
    where = [t.index % 3 for t in small]
    large, _ = coarse(small, where, [t.work(COST) for t in small], 50.0)
    found = sorted(n.serial for t in large for n in t.nodes)
    assert found == sorted(n.serial for t in tasks(g) for n in t.nodes)


# -- as other kernels


def test_batches_keywords_out_and_errors() -> None:
    m = bc.zoo.load("tree(7)")
    k, single = cut(m), bc.kernel(m, "forward_dynamics")
    single = bc.kernel(m, "forward_dynamics", method=k.method)
    q, v, tau = m.random(0, (3, 30))
    one = np.array([[single(*x) for x in zip(*row, strict=True)] for row in zip(q, v, tau, strict=True)])
    assert (k(q, v, tau) == one).all()
    out = np.empty_like(one)
    assert k(q, tau=tau, v=v, out=out) is out
    assert (out == one).all()
    assert k(q[:0], v[:0], tau[:0]).shape == (0, 30, m.nv)
    assert (k(q[0, 0].tolist(), v[0, 0], tau[0, 0]) == one[0, 0]).all()
    bad = q[0, 0].copy()
    bad[-1] = np.nan
    for _ in range(100):
        with pytest.raises(InputError, match="is nan"):
            k(bad, v[0, 0], tau[0, 0])
    with pytest.raises(InputError, match="shape"):
        k(q[0, 0, :-1], v[0, 0], tau[0, 0])
    assert (k(q[0, 0], v[0, 0], tau[0, 0]) == one[0, 0]).all()


def test_wrenches() -> None:
    m = bc.zoo.load("tree(7)")
    q, v, tau = m.random(0)
    k = bc.kernel(m, "forward_dynamics", method="aba", machine=cheap(2))
    single = bc.kernel(m, "forward_dynamics", method="aba")
    frame = list(m.frames)[-1]
    wrench = {frame: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    assert (k(q, v, tau, wrenches=wrench) == single(q, v, tau, wrenches=wrench)).all()


def test_friendly_errors() -> None:
    m = bc.zoo.load("excavator")
    with pytest.raises(InputError, match=r'no machine "thread"\. Did you mean "threads"'):
        bc.kernel(m, "forward_dynamics", machine="thread")
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(InputError, match=r"processors is .*whole number from 1 up"):
            bc.kernel(m, "forward_dynamics", machine="threads", processors=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="processors= goes with"):
        bc.kernel(m, "forward_dynamics", processors=2)
    with pytest.raises(InputError, match="exclude each other"):
        bc.kernel(m, "forward_dynamics", machine="threads", threads=2)


def test_it_says_so_where_one_core_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.load("excavator")
    monkeypatch.setattr(pace, "_known", {"float64": pace.Pace(0.15, 1.0, 2.0, 20.0, 1000.0, 1.0, 0.8, 0.1, 0.2)})
    k = bc.kernel(m, "forward_dynamics", machine="threads", processors=2)
    assert k.schedule.used == 1
    assert "on one core: that is predicted to be fastest" in repr(k)
    q, v, tau = m.random(0)
    assert (k(q, v, tau) == bc.kernel(m, "forward_dynamics", method=k.method)(q, v, tau)).all()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity")
def test_it_says_so_where_there_are_too_few_cpus(all_cpus: None) -> None:
    m = bc.zoo.load("tree(7)")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    k = bc.kernel(m, "forward_dynamics", machine=cheap(2))
    assert "on one core: this process may use 1" in repr(k)
    q, v, tau = m.random(0)
    single = bc.kernel(m, "forward_dynamics", method=k.method)
    assert all((k(q, v, tau) == single(q, v, tau)).all() for _ in range(100))
    assert k.counts[0] == 0


def test_cache_and_pickle() -> None:
    m = bc.zoo.load("tree(7)")
    k = bc.kernel(m, "forward_dynamics", machine=cheap(2))
    again = bc.kernel(m, "forward_dynamics", machine=cheap(2))
    assert again.from_cache
    assert again.schedule.json() == k.schedule.json()
    copy = pickle.loads(pickle.dumps(k))
    q, v, tau = m.random(0)
    assert (copy(q, v, tau) == k(q, v, tau)).all()
    assert isinstance(copy, ParallelKernel)


# -- nobody is waited for in vain


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity")
@pytest.mark.parametrize(
    ("processors", "patience", "states"), [(2, 0, 3000), (4, 0, 3000), (2, EVER, 30), (3, EVER, 10)]
)
def test_all_on_one_busy_cpu(processors: int, patience: int, states: int, all_cpus: None) -> None:
    """Thousands of states while the workers share a CPU with the caller and with two busy processes."""
    m = bc.zoo.load("tree(15)")
    k = cut(m, processors)
    cpu = min(os.sched_getaffinity(0))
    k.crew.on([cpu] * (processors - 1), patience)  # type: ignore[union-attr]
    os.sched_setaffinity(0, {cpu})
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]  # they inherit the CPU
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
    """A child has no workers of its parent's; it starts its own, and the parent's go on."""
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
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        same(k, m)


def test_calls_from_several_threads() -> None:
    m = bc.zoo.load("tree(15)")
    k, other = cut(m), cut(m, 3)
    wrong: list[BaseException] = []

    def work(kernel: ParallelKernel) -> None:
        try:
            same(kernel, m, states=200, together=0)
            q, v, tau = m.random(0, (500,))  # long enough for others to run
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
    assert k.crew is not None
    until = time.monotonic() + 60
    while k.crew.awake and time.monotonic() < until:
        time.sleep(0.01)
    assert k.crew.awake == 0
    same(k, m)


def test_a_forgotten_kernel_ends_its_threads() -> None:
    m = bc.zoo.load("tree(7)")
    k = cut(m)
    same(k, m)
    assert k.crew is not None
    threads = list(k.crew._threads)
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
from bellcrank.schedule import Machine
from bellcrank.schedule.machine import complete
m = bc.zoo.load("tree(7)")
k = bc.kernel(m, "forward_dynamics", machine=Machine("x", complete(2), start=2.0))
if k.crew: k.crew.on([0])
q, v, tau = m.random(0)
for _ in range(1000): k(q, v, tau)
print("done")
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# -- the measured machine


def test_the_measured_machine_is_remembered() -> None:
    first = pace.pace()
    pace._known.clear()
    assert pace.pace() == first
    m = pace.threads(3)
    assert m.processors == 3
    assert m.unit == "ns"
    assert all(cost >= 0.0 for cost in m.cost.values())
    assert m.cost["add"] > 0.0
