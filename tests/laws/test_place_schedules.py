"""Schedules of recursions, body by body, equal those of the straight-line code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.graph import Node, Recursion
from bellcrank.graph.cells import RESULT, channel_output, operand_of
from bellcrank.graph.interpreter import operation_costs
from bellcrank.model import Mechanism
from bellcrank.scheduling import list_scheduling, machine, recursion_tasks, tasks
from laws.test_rolled_classes import MECHANISMS, METHODS, made
from trees import few, trees

SIZES = ("node", "cluster", "place")


def longest(r: Recursion, todo: Any, cost: Any) -> float:
    """Return the longest chain of tasks to a result, weighted by their work."""
    results = {id(x) for cell in r.cells for x in cell.graph.outputs[RESULT].flat}
    done, found = list[float](), 0.0
    for task in todo:
        assert all(j < task.index for j in task.needs)
        done.append(task.work(cost) + max((done[j] for j in task.needs), default=0.0))
        if any(id(node) in results for node in task.nodes):
            found = max(found, done[-1])
    return found


def by_definition(r: Recursion, cost: Any) -> float:
    """Return the longest path to a result, operation by operation for every body."""
    weight, cells = operation_costs(cost), [r.cells[k] for run in r.tree.runs for k in run.cells * run.repeats]
    given: dict[tuple[int, int], list[float]] = {}

    def finished(i: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for n in cells[i].graph.nodes:
            at = operand_of(n) if n.op == "input" else None
            if at is None:
                found[n.serial] = weight[n.op] + max(found[a.serial] for a in n.operands)
            else:
                other = {"parent": r.tree.parent[i], "child": r.tree.children[i, at.child]}.get(at.kind)
                known = [] if other is None else given.get((int(at.name), int(other)), [])
                found[n.serial] = known[at.element] if known else 0.0
        return found

    def values(i: int, name: str) -> list[float]:
        found = finished(i)
        return [found[x.serial] if isinstance(x, Node) else 0.0 for x in cells[i].graph.outputs[name].flat]

    places = range(len(cells))
    for k, outwards in enumerate(r.outwards):
        for i in places if outwards else reversed(places):
            given[k, i] = values(i, channel_output(k))
    return max(x for i in places for x in values(i, RESULT))


def compare(r: Recursion) -> None:
    """Work and span equal those of the recursion.

    In straight-line code, constants of single bodies are folded, and in the span also those that are passed to a body.
    """
    on = machine("complete:3", "t800")
    written = tasks(r.written, "node")
    for size in SIZES:
        todo = recursion_tasks.tasks(r, size)
        assert sum(task.work(on.cost) for task in todo) == pytest.approx(r.work(on.cost), rel=1e-12)
        assert todo.work(on.cost) == r.work(on.cost) >= written.work(on.cost)
        assert longest(r, todo, on.cost) >= todo.span(on.cost) == r.span(on.cost) >= written.span(on.cost)
        if size == "node":  # then no dependency is missing or superfluous
            assert longest(r, todo, on.cost) == pytest.approx(by_definition(r, on.cost), rel=1e-12)


@pytest.mark.parametrize("name", ["alternate", "mixed", "bush", "floating"])
def test_work_and_span_are_those_of_the_recursion(name: str) -> None:
    for method, quantity in METHODS[:2]:
        compare(made(MECHANISMS[name](), method, quantity))


@few(4)
@given(trees(max_bodies=5))
def test_schedules_of_random_trees(m: Mechanism) -> None:
    if not m.tree.coupled:
        compare(made(m, "aba", "forward_dynamics"))


@pytest.mark.parametrize(("name", "kind"), [("complete:4", "ideal"), ("mesh:2,2", "t800"), ("bus:3", "explicit")])
def test_machines_can_execute_place_schedules(name: str, kind: str) -> None:
    """The makespan lies between the lower bound of every schedule and that of one processor."""
    r, on = made(bc.zoo.tree(15), "aba", "forward_dynamics"), machine(name, kind)
    for size in ("cluster", "place"):
        s = list_scheduling.list_schedule(recursion_tasks.tasks(r, size), on)
        s.check()
        assert s.bound <= s.makespan * (1.0 + 1e-9) <= s.work * (1.0 + 1e-8)


def test_large_ones_are_laid_out_without_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones use clusters of affordable length; a wide tree keeps all processors busy."""
    monkeypatch.setattr("bellcrank.graph.loop_graph.MAX_WRITTEN_OPERATIONS", 1000)
    monkeypatch.setattr(list_scheduling, "MAX_SINGLE_OPERATIONS", 1000)
    m = bc.zoo.tree(127)
    s = bc.schedule(m, machine="complete:8", method="aba")
    s.check()
    assert s.tasks.level == "cluster"
    assert s.speedup > 6.5
    monkeypatch.setattr(list_scheduling, "EFFORT_LOOKUPS_PLACES", 10)
    assert bc.schedule(m, machine="complete:8", method="aba").tasks.level == "place"
    nodes = bc.schedule(m, machine="complete:2", method="aba", level="node").tasks
    assert len(nodes) > 3 * len(s.tasks)
    with pytest.raises(InputError, match="one by one"):
        bc.schedule(m, machine="warp", method="aba")
