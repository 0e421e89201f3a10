"""Quality of fine and coarse schedules; and lanes in lockstep, with a check that can fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.scheduling import Schedule, ScheduleError, list_schedule, machine, schedule, tasks
from bellcrank.scheduling.list_scheduling import single_processor
from bellcrank.scheduling.lockstep import shuffles
from bellcrank.scheduling.placement import Occupancy, Placement, Plan
from bellcrank.scheduling.timetable import Hop


def dynamics(name: str, method: str = "aba") -> Graph:
    return graphs.graph(zoo.load(name), "forward_dynamics", method)


# -- quality


@pytest.mark.parametrize(
    ("name", "method", "on", "ratio"),
    [
        ("stanford", "aba", "complete:2", 1.01),
        ("stanford", "crba", "complete:16", 1.01),
        ("stanford", "newton_euler_symbolic", "complete:4", 1.03),
        ("torso", "aba", "complete:4", 1.01),
        ("excavator", "aba", "mesh:3,3", 1.01),
    ],
)
def test_free_messages_bring_small_graphs_near_the_bound(name: str, method: str, on: str, ratio: float) -> None:
    s = schedule(dynamics(name, method), machine(on), "auto")
    s.check()
    assert s.makespan <= ratio * s.bound


@pytest.mark.parametrize("kind", ["ideal", "t800"])
@pytest.mark.parametrize("name", ["stanford", "torso"])
def test_auto_is_as_good_as_either_level(name: str, kind: str) -> None:
    g, on = dynamics(name), machine("complete:3", kind)
    best = schedule(g, on, "auto").makespan
    assert best <= min(schedule(g, on, level).makespan for level in ("cluster", "node"))


def test_transputers_gain_although_messages_are_dear() -> None:
    s = schedule(dynamics("torso"), machine("complete:3", "t800"), "auto")
    s.check()
    assert s.messages
    assert s.speedup > 2.5


def test_large_clusters_are_cut() -> None:
    g, cost = dynamics("stanford", "crba"), machine("single").cost
    whole, pieces = tasks(g), tasks(g, grain=6.0, cost=cost)
    assert max(t.work(cost) for t in whole) > 6.0
    assert all(t.work(cost) <= 6.0 or len(t.nodes) == 1 for t in pieces)
    assert sum(t.work(cost) for t in pieces) == sum(t.work(cost) for t in whole)
    list_schedule(pieces, machine("mesh:2,2", "t800")).check()


def test_a_fixed_place_is_kept() -> None:
    todo, on = tasks(dynamics("stanford")), machine("pipeline:3", "t800")
    where = [i % 3 for i in range(len(todo))]
    s = Placement(Plan(todo, on)).run(range(len(todo)), where)
    s.check()
    assert s.where == tuple(where)


def test_timetable_joins_adjacent_intervals() -> None:
    t = Occupancy()
    for begin, end in ((4.0, 5.0), (1.0, 2.0), (2.0, 4.0), (7.0, 8.0), (8.0, 8.0)):
        t.take(begin, end)
    assert list(zip(t.begins, t.ends, strict=True)) == [(1.0, 5.0), (7.0, 8.0)]
    assert [t.free(0.0, 1.0), t.free(0.0, 2.0), t.free(0.0, 3.0), t.free(4.5, 0.5)] == [0.0, 5.0, 8.0, 5.0]


# -- lanes in lockstep


def alike(x: Any, y: Any) -> dict[str, Any]:
    """Eight sums of products, identical in every lane."""
    return {"out": [x[i] * y[i] + x[i] for i in range(8)]}


def test_lanes_that_do_the_same_need_no_shuffle() -> None:
    s = schedule(trace("alike", alike, {"x": (8,), "y": (8,)}), machine("warp:8"))
    s.check()
    assert (s.makespan, s.speedup, s.messages) == (2.0, 8.0, ())


def test_lanes_with_different_operations_gain_nothing() -> None:
    def different(x: Any) -> dict[str, Any]:
        return {"out": [x[0] + x[1], x[0] * x[1], x[0] - x[1], x[0] / x[1]]}

    s = schedule(trace("different", different, {"x": (2,)}), machine("warp:4"))
    s.check()
    assert s.speedup == 1.0


def test_a_shuffle_is_a_step() -> None:
    def summed(x: Any, y: Any) -> dict[str, Any]:
        p = [x[i] * y[i] for i in range(4)]
        return {"out": (p[0] + p[1]) + (p[2] + p[3])}

    g = trace("sum", summed, {"x": (4,), "y": (4,)})
    assert schedule(g, machine("warp:4").with_costs(start=0.0)).makespan == 3.0
    s = schedule(g, machine("warp:4"))
    s.check()
    assert s.makespan == 5.0  # mul, shuffle, add, shuffle, add
    assert schedule(g, machine("warp:4").with_costs(start=9.0)).used == 1


@pytest.mark.parametrize("lanes", [2, 8, 32])
def test_a_warp_can_be_followed(lanes: int) -> None:
    for method in ("aba", "crba"):
        g, on = dynamics("torso", method), machine(f"warp:{lanes}")
        s = schedule(g, on)
        s.check()
        assert 1.2 < s.speedup < lanes
        assert s == schedule(g, on)


def test_a_shuffle_takes_and_gives_one_value_a_lane() -> None:
    wanted = [(1, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 2)]
    assert list(shuffles(wanted)) == [[(1, 0, 1), (1, 0, 2)], [(2, 0, 3), (3, 1, 2)]]


@pytest.fixture(scope="module")
def good() -> Schedule:
    return schedule(dynamics("stanford"), machine("warp:4"))


def test_two_operations_in_one_step_are_refused(good: Schedule) -> None:
    """They are refused even if separate processors could execute both."""
    mixed = schedule(dynamics("stanford"), machine("complete:4"), "node")
    mixed.check()
    with pytest.raises(ScheduleError, match=r"at the same time|begins before"):
        replace(mixed, machine=good.machine.with_costs(start=0.0)).check()


def test_a_shuffle_of_two_values_from_one_lane_is_refused(good: Schedule) -> None:
    by_source: dict[int, list[int]] = {}
    for k, m in enumerate(good.messages):
        by_source.setdefault(m.source, []).append(k)
    ks = next(ks for ks in by_source.values() if len({good.messages[k].task for k in ks}) > 1)
    one = good.messages[ks[0]]
    other = next(good.messages[k] for k in ks if good.messages[k].task != one.task)
    early, late = sorted((one, other), key=lambda m: m.start)
    moved = replace(early, hops=(Hop(early.hops[0].channel, late.start, late.arrival),))
    messages = tuple(moved if m is early else m for m in good.messages)
    with pytest.raises(ScheduleError):
        replace(good, messages=messages).check()


def test_clusters_do_not_go_on_a_warp() -> None:
    with pytest.raises(InputError, match='level "node"'):
        list_schedule(tasks(dynamics("stanford")), machine("warp:4"))


def test_a_lane_alone_is_a_processor() -> None:
    todo = tasks(dynamics("stanford"), "node")
    s = single_processor(todo, machine("warp:4"))
    s.check()
    assert s.makespan == s.work
