"""The search for the shortest schedule leaves out nothing that is shorter, and keeps its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellcrank import zoo
from bellcrank.build import graphs, schedule_search, schedules
from bellcrank.build.schedule_map import winner_map
from bellcrank.build.schedule_search import BY_BOUND, BY_LIMIT, Candidate, search
from bellcrank.dynamics import METHODS, crba
from bellcrank.dynamics.historical.mass_matrix.fixed_frame import neighbours_towards
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.scheduling import Machine, list_scheduling, machine
from trees import ALL, close, random_tree, state

PROJECTED = [(name, frame) for name, m in METHODS.items() for frame in m.projections]


def full_makespan(m: Mechanism, quantity: str, c: Candidate, on: Machine) -> float:
    """Return the makespan of a candidate's method by the full search, whatever the size of its tasks."""
    by = METHODS[c.method].projected(c.projection) if c.projection else METHODS[c.method]
    graph = graphs.flat_graph(graphs.trace_quantity(m, Request(quantity, c.method), by))
    return list_scheduling.schedule(graph, on, c.level if c.level in ("cluster", "node") else "auto").makespan


@pytest.mark.parametrize(
    ("name", "quantity", "on"),
    [
        ("planar3r", "mass_matrix", machine("complete:4", "t800")),
        ("planar3r", "forward_dynamics", machine("mesh:2,2")),
        ("chain:3", "mass_matrix", machine("complete:9")),
    ],
)
def test_candidates_left_out_are_not_shorter(name: str, quantity: str, on: Machine) -> None:
    m = zoo.load(name)
    result = search(m, Request(quantity), on)
    result.schedule.check()
    assert result.schedule.makespan == result.winner.makespan
    left_out = sorted((c for c in result.candidates if c.remark == BY_BOUND), key=lambda c: c.bound)
    assert left_out
    for c in left_out[:4]:  # the smallest bounds
        assert c.bound >= result.winner.makespan
        assert full_makespan(m, quantity, c, on) >= max(c.bound - 1e-9, result.winner.makespan)
    for c in result.candidates:
        assert c.makespan is None or result.winner.makespan <= c.makespan


def test_result_is_not_longer_than_that_of_the_fewest_operations() -> None:
    """On transputers in a cone the first pass of `crba` is far from its best schedule."""
    m, on = zoo.excavator(), machine("cone:4", "t800")
    result = search(m, Request("forward_dynamics"), on)
    lean = min(result.candidates, key=lambda c: c.operations)
    assert result.schedule.makespan <= full_makespan(m, "forward_dynamics", replace(lean, level=""), on)


def test_fewest_operations_are_not_the_shortest_schedule() -> None:
    m, on = zoo.chain(4), machine("complete:16")
    result = search(m, Request("mass_matrix"), on)
    lean = min(result.candidates, key=lambda c: c.operations)
    assert result.winner.operations > lean.operations
    assert result.schedule.makespan < full_makespan(m, "mass_matrix", lean, on)
    assert {c.projection for c in result.candidates} == {"", "base", "end", "body"}


def test_limit_of_work_is_reported_and_keeps_the_method_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_search, "MAX_TRACED_OPERATIONS", 0)
    monkeypatch.setattr(schedule_search, "MAX_SCREEN_LOOKUPS", 0)
    result = search(zoo.planar3r(), Request("mass_matrix"), machine("complete:2"))
    assert result.winner.makespan is not None
    limited = {c.method for c in result.candidates if c.remark == BY_LIMIT}
    assert "vneb_parallel" in limited
    assert result.winner.method not in limited


def test_search_is_repeatable_and_reports_its_progress() -> None:
    shares: list[float] = []
    m, on = zoo.chain(2), machine("complete:3")
    one, other = (search(m, Request("mass_matrix"), on, progress=shares.append) for _ in range(2))
    assert one.candidates == other.candidates
    assert (one.schedule.where, one.schedule.start) == (other.schedule.where, other.schedule.start)
    half = shares[: len(shares) // 2]
    assert half == sorted(half)
    assert half[-1] == 1.0


def test_map_takes_the_least_work_on_one_processor() -> None:
    cells = winner_map(lambda n: zoo.load(f"chain:{n}"), Request("mass_matrix"), (2, 4), (1, 12), progress=False)
    by_size = {(c.bodies, c.processors): c for c in cells}
    assert list(by_size) == [(2, 1), (2, 12), (4, 1), (4, 12)]
    assert by_size[4, 1].winner.method == "crba"
    assert by_size[4, 12].schedule.makespan < by_size[4, 1].schedule.makespan / 4
    assert by_size[4, 12].schedule.machine.processors == 12
    with pytest.raises(InputError, match="complete, bus, pipeline"):
        winner_map(lambda n: zoo.load(f"chain:{n}"), Request("mass_matrix"), (2,), (4,), "mesh")


@pytest.mark.parametrize(("name", "frame"), PROJECTED)
def test_mass_matrix_does_not_depend_on_the_frame_of_projection(name: str, frame: str) -> None:
    f = METHODS[name].projected(frame).function("mass_matrix")
    for seed in range(2):
        m = random_tree(seed, [*ALL, "revolute"], [0, 0, 1, 1, 2, 3, 5, 4])
        q = state(m)[0]
        close(f(m.tree, q), crba.mass_matrix(m.tree, q), 1e-12)


def test_frame_of_projection_is_that_of_the_farthest_body() -> None:
    tree = zoo.chain(4).tree
    assert neighbours_towards(tree, "base") == [-1, 0, 1, 2]
    assert neighbours_towards(tree, "end") == [1, 2, 3, -1]
    branched = random_tree(0, ["revolute"] * 5, [0, 0, 1, 2]).tree  # bodies 1 and 2 on body 0; 3 on 1, and 4 on 2
    assert neighbours_towards(branched, "end")[0] in (1, 2)
    with pytest.raises(InputError, match="frame of projection"):
        neighbours_towards(tree, "tip")


def test_projection_is_an_option_of_methods_that_have_one() -> None:
    m = zoo.puma600()
    base, end = (
        schedules.method_schedule(m, Request("mass_matrix", "vneb_parallel"), "single", projection=frame).schedule.work
        for frame in ("base", "end")
    )
    assert base != end
    for request, frame, message in (
        (Request("mass_matrix"), "end", "needs a method"),
        (Request("mass_matrix", "crba"), "end", "no choice of projection"),
        (Request("mass_matrix", "oke_parallel"), "body", "frame of projection"),
    ):
        with pytest.raises(InputError, match=message):
            schedules.method_schedule(m, request, "single", projection=frame)


def test_original_kane_in_logarithmic_time() -> None:
    """Slide "Time and Processors Bounds": O(log n) on O(n^3) processors, where `oke` needs O(n)."""
    spans = {name: [span_of(name, n) for n in (4, 8, 16)] for name in ("oke", "oke_parallel")}
    a, b, c = spans["oke_parallel"]
    assert c - b <= b - a <= 6
    a, b, c = spans["oke"]
    assert c - b >= 2 * (b - a)


def span_of(name: str, n: int) -> float:
    m = zoo.load(f"chain({n}, twist='general')")
    return graphs.trace_quantity(m, Request("mass_matrix", name), replace(METHODS[name])).span()
