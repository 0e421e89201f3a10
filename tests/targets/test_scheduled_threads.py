"""Threads of this computer follow any schedule, all of them, and compute what the graph computes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.emit.cores import streams
from bellcrank.emit.cores.target import ParallelKernel
from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.model import Mechanism
from bellcrank.papers.fijany import ARRAYS, schedule_on_array
from bellcrank.papers.schaefer import figure_8
from bellcrank.papers.wong import wong_mesh
from bellcrank.scalar import where as select
from bellcrank.scheduling import Schedule, fixed_order_schedule, machine, schedule, tasks
from trees import few, trees

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX threads")


def run_by_all(s: Schedule, states: int = 2) -> None:
    """All threads compute every state together, and the results are those of the graph to 1e-12."""
    rng = np.random.default_rng(1)
    g = s.tasks.graph
    assert g is not None
    inputs = {name: rng.uniform(-1.0, 1.0, (states, *shape)) for name, shape in g.inputs.items()}
    wanted = g.evaluate(**inputs)
    found = s.run(**inputs)
    found = found if isinstance(found, dict) else {next(iter(wanted)): found}
    for name, x in wanted.items():
        np.testing.assert_allclose(found[name], x, rtol=0, atol=1e-12 * np.abs(x).max(initial=1e-300))
    kernel = s.__dict__["_kernel"]
    assert kernel.counts == ((states, 0) if s.used > 1 else (0, 0))


@few(4)
@given(
    trees(max_bodies=3),
    st.sampled_from(["complete:3", "mesh:2,2", "bus:3", "warp:4"]),
    st.sampled_from(["ideal", "t800"]),
    st.sampled_from(["cluster", "node"]),
)
def test_any_schedule(m: Mechanism, name: str, kind: str, level: str) -> None:
    run_by_all(schedule(graphs.graph(m, "forward_dynamics", "aba"), machine(name, kind), level))


@pytest.mark.parametrize(
    "make",
    [
        lambda: wong_mesh(zoo.excavator()),
        lambda: wong_mesh(zoo.excavator(), "explicit"),
        lambda: figure_8("computed_torque").three,
        lambda: schedule_on_array(ARRAYS[2], 3),
    ],
    ids=["wong", "wong-explicit", "schaefer", "fijany"],
)
def test_the_machines_of_the_papers(make: Callable[[], Schedule]) -> None:
    run_by_all(make())


def test_products_and_comparisons_cross_processors() -> None:
    """A product whose sum is elsewhere is not fused with it; a comparison travels as what it compares."""

    def body(x: Any) -> dict[str, Any]:
        a, b = x[0] * x[1], x[1] - x[2]
        c = -(a * b + x[2])
        return {"y": [a + b, select(a * a < b, c, x[0]), c * b + a]}

    g = trace("crossing", body, {"x": (3,)})
    todo = tasks(g, "node")
    for seed in range(3):
        where = np.random.default_rng(seed).integers(3, size=len(todo)).tolist()
        run_by_all(fixed_order_schedule(todo, machine("complete:3", "t800"), where), 4)


def test_kernel_of_a_schedule_has_the_interface_of_a_kernel() -> None:
    m = zoo.planar3r()
    s = bc.schedule(m, machine="complete:2", kind="ideal", level="cluster", method="aba")
    k = bc.kernel(m, "forward_dynamics", schedule=s)
    assert isinstance(k, ParallelKernel)
    q, v, tau = m.random(3, (2, 5))
    wanted = graphs.graph(m, "forward_dynamics", "crba").evaluate(q=q, v=v, tau=tau)["forward_dynamics"]
    tolerance = {"rtol": 0, "atol": 1e-12 * np.abs(wanted).max()}
    np.testing.assert_allclose(k(q, v, tau), wanted, **tolerance)
    np.testing.assert_allclose(k(q[0, 0], tau=tau[0, 0], v=v[0, 0]), wanted[0, 0], **tolerance)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(k))(q, v, tau), wanted, **tolerance)
    assert k.schedule is s
    assert k.speedup == s.speedup  # on its own machine, whose unit is not that of this computer
    with pytest.raises(InputError, match="nan"):
        k(q[0, 0] * np.nan, v[0, 0], tau[0, 0])
    single = bc.kernel(m, "forward_dynamics", schedule=s, dtype="float32")
    np.testing.assert_allclose(single(q, v, tau), wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


def test_kernel_of_a_schedule_with_loops_and_free_parameters() -> None:
    m = zoo.load("four_bar").free("crank.mass")
    s = bc.schedule(m, machine="complete:2", kind="ideal", level="cluster")
    k = bc.kernel(m, "forward_dynamics", schedule=s)
    q, v = m.assemble(None, [1.0] * m.nv)
    tau, mass = np.ones(m.nv), m.parameters.nominal[0]
    for x in (mass, 2.0 * mass):
        wanted = m.forward_dynamics(q, v, tau, parameters={"crank.mass": x})
        found = k(q, v, tau, parameters={"crank.mass": x})
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    np.testing.assert_allclose(s.run(q, v, tau, [mass]), k(q, v, tau), rtol=1e-12)


def test_callers_at_the_same_time_and_forked_processes() -> None:
    m = zoo.planar3r()
    s = bc.schedule(m, machine="complete:2", kind="ideal", level="cluster", method="aba")
    state = m.random(1, (3,))
    wanted = s.run(*state)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: s.run(*state), range(6)):
            np.testing.assert_array_equal(found, wanted)
    assert s.__dict__["_kernel"].counts == (21, 0)
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        os._exit(0 if np.array_equal(s.run(*state), wanted) else 1)


def test_wongs_program_is_a_kernel() -> None:
    m = zoo.load("chain:3")
    state = m.random(1)
    k = bc.kernel(m, "forward_dynamics", schedule=wong_mesh(m))
    np.testing.assert_allclose(k(*state), m.forward_dynamics(*state), rtol=1e-11)


def test_a_schedule_of_something_else_is_refused() -> None:
    m, other = zoo.planar3r(), zoo.chain(3)
    s = bc.schedule(m, machine="complete:2")
    for call, match in (
        (lambda: bc.kernel(other, "forward_dynamics", schedule=s), "differs by .* from that of forward_dynamics of"),
        (lambda: bc.kernel(m, "mass_matrix", schedule=s), r"with inputs q\[3\].* expected one of mass_matrix of"),
        (lambda: bc.kernel(m, "forward_dynamics", schedule=s, machine="threads"), "leave out method="),
        (lambda: bc.kernel(m, "forward_dynamics", schedule="mesh:2,2"), "schedule is 'mesh:2,2'"),  # type: ignore[arg-type]
        (lambda: s.run(*other.random(0)[:2]), "missing tau"),
        (lambda: s.run(1.0, 2.0, 3.0), "shape"),
    ):
        with pytest.raises(InputError, match=match):
            call()


def test_a_lost_word_gives_wrong_numbers_and_not_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: without one word of a message, the code does not compile or its results are wrong."""
    s = schedule(graphs.graph(zoo.load("tree:7"), "forward_dynamics", "aba"), machine("complete:2"), "cluster")
    planned = streams.StreamPlan._plan_messages

    def lossy(self: streams.StreamPlan) -> Any:
        messages = planned(self)
        k = max(messages, key=lambda k: len(messages[k].nodes))
        nodes = messages[k].nodes
        messages[k] = replace(messages[k], nodes=(nodes[1], *nodes[1:]))
        return messages

    monkeypatch.setattr(streams.StreamPlan, "_plan_messages", lossy)
    with pytest.raises((AssertionError, KeyError)):
        run_by_all(s)
