"""Long branches cut into parallel segments: accelerations equal those of aba, in lanes and on cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.graphs import graph
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.build.segmented_recursion import segmented_graph
from bellcrank.dynamics import shape_of
from bellcrank.formats.builder import Builder
from bellcrank.graph import Recursion
from bellcrank.graph.waves import group_waves, waves
from bellcrank.model.mechanism import Mechanism


def bushy() -> Mechanism:
    """A long chain with short branches, and a second long chain as a branch of the first."""
    b = Builder("bushy")

    def body(name: str, parent: str, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        b.body(name, mass=1.0 + rng.random(), com=tuple(rng.normal(size=3)), inertia=tuple(2.0 + rng.random(3)))
        b.joint(f"j {name}", kind, parent, name, point=tuple(rng.normal(size=3)), axis=tuple(rng.normal(size=3)))

    for i in range(40):
        body(f"a{i}", f"a{i - 1}" if i else "ground", "revolute", i)
    for i in range(20):
        body(f"b{i}", f"b{i - 1}" if i else "a7", "prismatic" if i % 2 else "revolute", 100 + i)
    for i in (3, 17, 39):
        body(f"c{i}", f"a{i}", "revolute", 200 + i)
    return b.build()


MECHANISMS = {
    "alternate": lambda: zoo.chain(40),
    "parallel": lambda: zoo.chain(33, twist="parallel"),
    "general": lambda: zoo.chain(45, twist="general"),
    "mixed": lambda: zoo.chain(50, joints=["revolute", "prismatic", "spherical"]),
    "bushy": bushy,
}


def inputs(m: Mechanism) -> dict[str, Any]:
    return {x: shape_of(x, m.tree) for x in ("q", "v", "tau")}


def cut(m: Mechanism, most: int | None, shortest: int = 1) -> Recursion:
    found = segmented_graph("cut", m.tree, inputs(m), most, shortest)
    assert found is not None
    return found


def by_aba(m: Mechanism, *state: Any) -> Any:
    made = rolled_graph("aba", m.tree, "aba", "forward_dynamics", inputs(m))
    return made.evaluate(**dict(zip(("q", "v", "tau"), state, strict=True)))["forward_dynamics"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_results_do_not_depend_on_the_segments(name: str) -> None:
    m = MECHANISMS[name]()
    q, v, tau = m.random(1, (3,))
    expected = by_aba(m, q, v, tau)
    for most, shortest in ((None, 1), (8, 2), (None, 7)):
        found = cut(m, most, shortest).evaluate(q=q, v=v, tau=tau)["forward_dynamics"]
        assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["alternate", "bushy"])
def test_kernels_in_lanes(name: str) -> None:
    """A single state, with segments in its lanes, and several; also with an incomplete last bundle."""
    m = MECHANISMS[name]()
    k = compile_graph(cut(m, None, 6), Where(), "")
    q, v, tau = m.random(2, (3,))
    expected = by_aba(m, q, v, tau)
    for found in (k(q, v, tau), np.array([k(*x) for x in zip(q, v, tau, strict=True)])):
        assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    with pytest.raises(bc.errors.InputError, match=r"tau\[2\].* is nan"):
        k(q[0], v[0], np.where(np.arange(m.nv) == 2, np.nan, tau[0]))


def test_segments_of_a_wave_are_independent() -> None:
    r = cut(zoo.chain(100), 8, 4)
    depth = np.empty(len(r.tree.parent), int)
    for wave in waves(r):
        for run in wave.runs:
            depth[run.begin : run.end] = wave.depth
            up = r.tree.parent[run.begin]
            assert up < 0 or depth[up] == wave.depth - 1
    shapes, shares = group_waves(r, 4)
    assert all(len(shape.runs) % 4 == 0 for shape in shapes)
    assert max(len(wave.runs) for wave in waves(r)) == 8  # the segments, all in one wave
    assert len({share.shape for share in shares if shapes[share.shape].cells[0] == len(r.cells) - 4}) == 1  # all joins


def test_two_cores_share_a_state() -> None:
    m = zoo.chain(2100)
    k = bc.kernel(m, "forward_dynamics", machine="threads", processors=2)
    assert k.method == "dca"
    one = bc.kernel(m, "forward_dynamics", method="aba")
    if k.team is None:
        pytest.skip("this computer has one core")
    k.team.pin([1], 1_000_000)
    assert k.predicted > 0.0
    assert k.speedup > 1.2
    for seed in range(20):
        q, v, tau = m.random(seed)
        a, b = k(q, v, tau), one(q, v, tau)
        assert np.abs(a - b).max() < 1e-10 * np.abs(b).max()
    together, alone = k.counts
    assert together + alone == 20
    assert "2 cores" in k.source


def test_bush_has_no_segments() -> None:
    """Many nested short branches are not cut; straight-line code is used."""
    m = zoo.tree(70, branching=8)
    assert segmented_graph("bush", m.tree, inputs(m)) is None
    found = graph(m, "forward_dynamics", "dca")
    assert not isinstance(found, Recursion)
    q, v, tau = m.random(0)
    a, b = found.evaluate(q=q, v=v, tau=tau)["forward_dynamics"], by_aba(m, q, v, tau)
    assert np.abs(a - b).max() < 1e-10 * np.abs(b).max()


def test_graph_has_fine_segments_and_kernels_merge_them() -> None:
    """The longest path grows by a constant for each doubling of the size."""
    spans = [graph(zoo.chain(n), "forward_dynamics", "dca").span() for n in (66, 130, 258)]
    assert spans[1] - spans[0] == spans[2] - spans[1] < 100
    fine = graph(zoo.chain(256), "forward_dynamics", "dca")
    assert isinstance(fine, Recursion)
    assert 2 * fine.divided(4, 128).count().arithmetic < fine.count().arithmetic


def test_the_schedule_of_two_cores_can_be_followed() -> None:
    found = bc.schedule(zoo.chain(3000), machine="threads:2")  # dca is chosen automatically
    found.check()
    assert found.used == 2
    assert 1.3 < found.speedup <= 2.0
    assert found.span <= found.bound <= found.makespan
    assert found.work == pytest.approx(sum(found.busy))
    shared = [task.name for task, p in zip(found.tasks, found.where, strict=True) if p == 1]
    assert len(shared) == 5  # angles and four channels, only those of the segments
    assert all("x revolute" in name for name in shared)
    assert "x revolute as link" in found.html()
    assert "operations" in found.svg()
