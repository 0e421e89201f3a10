"""No schedule violates a dependency, a channel or a processor's capacity, and the check can fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.model import Mechanism
from bellcrank.papers.schaefer import figure_8
from bellcrank.papers.wong import wong_mesh
from bellcrank.scheduling import Machine, Schedule, ScheduleError, machine, schedule, tasks
from bellcrank.scheduling.critical_chain import Link
from bellcrank.scheduling.list_scheduling import single_processor
from bellcrank.scheduling.partitioning import partitioned_schedule
from bellcrank.scheduling.timetable import Hop
from trees import few, trees

MACHINES = (
    "single", "complete:2", "complete:5", "pipeline:3", "mesh:2,3", "triangle:3", "hypercube:3", "bus:4", "triangle:9",
    "cone:3", "warp:4",
)  # fmt: skip


def machines() -> st.SearchStrategy[Machine]:
    made = st.builds(machine, st.sampled_from(MACHINES), st.sampled_from(["ideal", "t800"]))
    return st.builds(lambda m, overlapped: m.with_costs(overlapped=overlapped), made, st.booleans())


@pytest.mark.parametrize("name", MACHINES)
def test_ways_are_the_shortest(name: str) -> None:
    """Routes between fully connected processors need no search, which took most of a minute for 4,000 processors."""
    of = machine(name).topology
    for a in range(of.processors):
        reached = {a: 0}
        for at in (queue := [a]):
            fresh = [b for b in (range(of.processors) if of.bus else of.neighbours[at]) if b not in reached]
            reached |= dict.fromkeys(fresh, reached[at] + 1)
            queue += fresh
        assert list(of.hops(a)) == [reached[b] for b in range(of.processors)]
        for b in range(of.processors):
            way = of.route(a, b)
            assert len(way) == reached[b]
            if way and not of.bus:
                assert [c for c, _ in way] == [a, *(c for _, c in way[:-1])]
                assert way[-1][1] == b
                assert all(d in of.neighbours[c] for c, d in way)


def test_thousands_of_processors_take_no_search() -> None:
    for name in ("complete:1500", "warp:1500", "bus:1500"):
        of = machine(name).topology
        assert sum(map(sum, (of.hops(a) for a in range(0, 1500, 50)))) == 30 * 1499
        assert not of._next_hops


@few(12)
@given(trees(max_bodies=4), machines(), st.sampled_from(["cluster", "node", "auto"]), st.sampled_from(["crba", "aba"]))
def test_every_schedule_can_be_followed(m: Mechanism, on: Machine, level: str, method: str) -> None:
    g = graphs.graph(m, "forward_dynamics", method)
    s = schedule(g, on, level)
    s.check()
    assert s.bound <= s.makespan + 1e-9
    assert s.makespan <= s.work + 1e-9  # never slower than one processor
    assert s.span == pytest.approx(g.span(on.cost))
    assert s.work == pytest.approx(g.work(on.cost))
    assert s == schedule(g, on, level)
    assert s.idle == pytest.approx(s.makespan * on.processors - s.work)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graphs.graph(zoo.stanford(), "forward_dynamics", "aba")


@pytest.fixture(scope="module")
def good(graph: Graph) -> Schedule:
    s = schedule(graph, machine("mesh:2,2", "t800"), "node")
    assert s.messages
    return s


def moved(s: Schedule, i: int, by: float) -> Schedule:
    start, finish = list(s.start), list(s.finish)
    start[i], finish[i] = start[i] + by, finish[i] + by
    return replace(s, start=tuple(start), finish=tuple(finish))


def test_a_task_before_its_values_is_refused(good: Schedule) -> None:
    last = max(range(len(good.tasks)), key=lambda i: good.finish[i])
    with pytest.raises(ScheduleError, match="its values arrive at"):
        moved(good, last, -good.makespan / 2).check()


def test_truncated_task_is_rejected(good: Schedule) -> None:
    i = max(range(len(good.tasks)), key=lambda i: good.finish[i] - good.start[i])
    finish = list(good.finish)
    finish[i] -= 0.5
    with pytest.raises(ScheduleError, match="instead of its work"):
        replace(good, finish=tuple(finish)).check()


def test_two_tasks_at_once_are_refused(graph: Graph) -> None:
    s = single_processor(tasks(graph), machine("single"))
    s.check()
    late = [i for i in range(len(s.tasks)) if s.finish[i] > s.start[i]][-1]
    with pytest.raises(ScheduleError):
        moved(s, late, -(s.finish[late] - s.start[late]) / 2).check()


def test_missing_early_or_misrouted_messages_are_rejected(good: Schedule) -> None:
    with pytest.raises(ScheduleError, match="never receives"):
        replace(good, messages=good.messages[1:]).check()
    m = good.messages[0]
    early = replace(m, hops=tuple(Hop(h.channel, h.start - 1e3, h.finish - 1e3) for h in m.hops))
    with pytest.raises(ScheduleError, match="faster than the channel"):
        replace(good, messages=(early, *good.messages[1:])).check()
    astray = replace(m, hops=tuple(Hop((h.channel[1], h.channel[0]), h.start, h.finish) for h in m.hops))
    with pytest.raises(ScheduleError, match="leaves its route"):
        replace(good, messages=(astray, *good.messages[1:])).check()


def test_a_channel_carries_one_message_at_a_time(good: Schedule) -> None:
    by_channel: dict[tuple[int, int], list[int]] = {}
    for k, m in enumerate(good.messages):
        by_channel.setdefault(m.hops[0].channel, []).append(k)
    one, other = next(found for found in by_channel.values() if len(found) > 1)[:2]
    messages = list(good.messages)
    late = messages[other]
    when = messages[one].hops[0].start
    assert when != late.hops[0].start
    first = max(messages[one], late, key=lambda m: m.hops[0].start)
    clash = replace(late, hops=(replace(late.hops[0], start=first.start, finish=first.hops[0].finish), *late.hops[1:]))
    messages[other] = clash
    with pytest.raises(ScheduleError):
        replace(good, messages=(*messages, clash)).check()


def test_sixty_four_joints_take_seconds() -> None:
    g = graphs.graph(zoo.chain(64), "forward_dynamics", "aba")
    s = schedule(g, machine("triangle:64", "t800"))
    s.check()
    assert s.machine.processors == 64 * 65 // 2 + 64


@pytest.mark.parametrize("text", ["ring:4", "mesh:2", "complete:x", "complete:0", "hypercube:40"])
def test_bad_machines_are_explained(text: str) -> None:
    with pytest.raises(InputError):
        machine(text)


@few(12)
@given(trees(max_bodies=4), machines(), st.sampled_from(["cluster", "node", "auto"]))
def test_the_critical_path_has_no_gap(m: Mechanism, on: Machine, level: str) -> None:
    followable(schedule(graphs.graph(m, "forward_dynamics", "aba"), on, level))


@pytest.mark.parametrize("kind", ["hidden", "t800", "explicit"])
def test_the_critical_path_of_programs(kind: str) -> None:
    followable(wong_mesh(zoo.torso(), kind))
    followable(wong_mesh(zoo.excavator(), kind))
    followable(figure_8().three)
    g = graphs.graph(zoo.tree(15), "forward_dynamics", "aba")
    followable(partitioned_schedule(g, machine("complete:3", "t800"), {}))


def followable(s: Schedule) -> None:
    """From time 0 to the makespan there is no gap, and each task waited for the previous one."""
    if not s.makespan:
        return
    assert s.chain[0].start == 0.0
    assert s.chain[-1].finish == s.makespan
    for before, link in pairwise(s.chain):
        assert before.finish == link.start
        assert waits(s, before, link), (before, link)
    assert s.critical == [link.task for link in s.chain if link.message < 0]


def waits(s: Schedule, before: Link, link: Link) -> bool:
    """It waits for its values, or for the processor or channel."""
    if s.machine.topology.lockstep:
        return True
    if link.hop > 0 and (before.message, before.hop) == (link.message, link.hop - 1):
        return True
    if link.hop == 0 and (before.message, before.task) == (-1, link.task):
        return True
    if link.message < 0 and before.task in s.tasks[link.task].needs and before.message >= 0:
        sent = s.messages[before.message]
        if sent.target == s.where[link.task] and before.hop == len(sent.hops) - 1:
            return True
    return bool(taken(s, before) & taken(s, link))


def taken(s: Schedule, link: Link) -> set[object]:
    if link.message < 0:
        return {s.where[link.task]}
    m = s.messages[link.message]
    channel = m.hops[link.hop].channel
    return {("channel", s.machine.topology.medium(channel))} | set(
        () if s.machine.overlapped else (m.source, m.target) if s.machine.topology.bus else channel
    )
