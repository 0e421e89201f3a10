"""The target threads(p): the same bits as one core, and the interface of every other kernel."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.cores import calibration
from bellcrank.emit.cores.streams import fused_into, source
from bellcrank.emit.cores.target import ParallelKernel
from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.scalar import step
from bellcrank.scheduling import tasks
from bellcrank.scheduling.coarsening import coarse_tasks, fine_tasks
from bellcrank.scheduling.partitioning import partitioned_schedule, timed_schedule
from cores import COST, all_cpus, cheap, cut, same

__all__ = ["all_cpus"]  # a fixture
pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX threads")


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
    """Multiply-adds are fused before the graph is partitioned."""
    g = graphs.graph(bc.zoo.load("tree(15)"), "forward_dynamics", "aba")
    fused = fused_into(g)
    assert fused
    s = partitioned_schedule(g, cheap(2), fused)
    s.check()
    where = {n.serial: s.where[t.index] for t in s.tasks for n in t.nodes}
    assert s.used == 2
    assert all(where[product] == where[total] for product, total in fused.items())


def test_sum_stays_with_its_negation() -> None:
    """A sum stays with its negation, even if all uses of that are on another processor.

    Minus a fused multiply-add is one instruction, too.
    """

    def negated(q: Any) -> dict[str, Any]:
        step("sum", "a")
        a, b = q[0] + q[1], q[1] - q[2]
        x, y, z = a * b + q[2], b * q[2] - a, a + b * b
        step("minus", "b")
        return {"out": [-x * q[0], -y, z * z]}

    g = trace("negated", negated, {"q": (3,)})
    small = fine_tasks(g, fused_into(g))
    home = [int(any(n.op == "neg" for n in task.nodes)) for task in small]
    s = timed_schedule(*coarse_tasks(small, home, [1.0] * len(small), float("inf")), cheap(2))
    s.check()
    assert s.used == 2
    assert source(g, s, 4, host().triple).count("@llvm.fma") > 2


def test_every_node_is_somewhere_once() -> None:
    g = graphs.graph(bc.zoo.load("tree(15)"), "forward_dynamics", "aba")
    small = fine_tasks(g, fused_into(g))
    where = [t.index % 3 for t in small]
    large, _ = coarse_tasks(small, where, [t.work(COST) for t in small], 50.0)
    found = sorted(n.serial for t in large for n in t.nodes)
    assert found == sorted(n.serial for t in tasks(g) for n in t.nodes)


# -- the interface of other kernels


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
        with pytest.raises(InputError, match=r"processors is .*integer of at least 1"):
            bc.kernel(m, "forward_dynamics", machine="threads", processors=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="processors= needs"):
        bc.kernel(m, "forward_dynamics", processors=2)
    with pytest.raises(InputError, match="exclude each other"):
        bc.kernel(m, "forward_dynamics", machine="threads", threads=2)


def test_warning_where_one_core_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.load("excavator")
    monkeypatch.setattr(
        calibration,
        "_measured_times",
        {"float64": calibration.CoreTimes(0.15, 1.0, 2.0, 20.0, 1000.0, 1.0, 0.8, 0.1, 0.2)},
    )
    k = bc.kernel(m, "forward_dynamics", machine="threads", processors=2)
    assert k.schedule.used == 1
    assert "on one core: predicted to be fastest" in repr(k)
    q, v, tau = m.random(0)
    assert (k(q, v, tau) == bc.kernel(m, "forward_dynamics", method=k.method)(q, v, tau)).all()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity")
def test_warning_where_cpus_are_too_few(all_cpus: None) -> None:
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


# -- the calibrated machine


def test_the_measured_machine_is_remembered() -> None:
    first = calibration.core_times()
    calibration._measured_times.clear()
    assert calibration.core_times() == first
    m = calibration.threads_machine(3)
    assert m.processors == 3
    assert m.unit == "ns"
    assert all(cost >= 0.0 for cost in m.cost.values())
    assert m.cost["add"] > 0.0
