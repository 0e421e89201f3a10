"""What is scheduled: nodes of a graph, or clusters of nodes that one step of a method made for one body.

A cluster is a run of nodes with the same label in the order in which they were made, or a part of one that has nothing
to do with the rest of it. That order goes from arguments to users, so runs of it never wait for each other in a circle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node
from bellcrank.scalar import step_of

LEVELS = ("cluster", "node")  # and "auto", which tries both and sizes between (listing.py)


@dataclass(frozen=True)
class Task:
    index: int
    name: str
    nodes: tuple[Node, ...]
    needs: Mapping[int, int]  # task before: how many of its values are used here
    gives: int = 0  # how many of its values others use

    @property
    def step(self) -> str:
        """What the method was doing, whatever the body: IA of IA[boom] and of mul IA[boom]."""
        label = self.nodes[0].label if self.nodes else ""
        return step_of(label if label and self.name.endswith(label) else self.name)

    @property
    def operations(self) -> int:
        return len(self.nodes)

    def work(self, cost: Mapping[str, float]) -> float:
        return sum(cost[node.op] for node in self.nodes)


@dataclass(frozen=True)
class Tasks:
    name: str
    level: str
    tasks: tuple[Task, ...]  # arguments before users

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, i: int) -> Task:
        return self.tasks[i]

    def work(self, cost: Mapping[str, float]) -> float:
        """Time on one processor, where nothing is computed twice."""
        ops = {node.serial: node.op for task in self.tasks for node in task.nodes}
        return sum(cost[op] for op in ops.values())

    def span(self, cost: Mapping[str, float]) -> float:
        """Time of the longest chain of operations."""
        finish: dict[int, float] = {}
        for task in self.tasks:
            for node in task.nodes:
                before = (finish.get(a.serial, 0.0) for a in node.operands)
                finish[node.serial] = cost[node.op] + max(before, default=0.0)
        return max(finish.values(), default=0.0)


def tasks(
    graph: Graph, level: str = "cluster", grain: float = float("inf"), cost: Mapping[str, float] | None = None
) -> Tasks:
    """Inputs are everywhere at the start, and outputs may stay where they are made; negations cost nothing.

    Clusters with more work than `grain` are cut.
    """
    if level not in LEVELS:
        raise InputError(unknown("level", level, LEVELS))
    nodes = [node for node in graph.nodes if node.op != "input"]
    if level == "node":
        groups = [[node] for node in nodes]
    else:
        runs = (list(run) for _, run in groupby(nodes, key=lambda node: node.label))
        groups = [piece for run in runs for part in parts(run) for piece in cut(part, grain, cost or {})]
    return grouped(graph.name, level, groups)


def parts(run: Sequence[Node]) -> list[list[Node]]:
    """What hangs together in a run of nodes, in the order of the first of each."""
    head: dict[int, int] = {}

    def top(serial: int) -> int:
        while head[serial] != serial:
            head[serial] = serial = head[head[serial]]
        return serial

    for node in run:
        head[node.serial] = node.serial
        for a in node.operands:
            if a.serial in head:
                one, other = sorted((top(a.serial), top(node.serial)))
                head[other] = one
    found: dict[int, list[Node]] = {}
    for node in run:
        found.setdefault(top(node.serial), []).append(node)
    return list(found.values())


def cut(part: Sequence[Node], grain: float, cost: Mapping[str, float]) -> list[list[Node]]:
    """Pieces of about equal work, none with more than `grain` unless it is a single operation; each then in parts."""
    work = sum(cost.get(node.op, 1.0) for node in part)
    if work <= grain or len(part) == 1:
        return [list(part)]
    size = work / math.ceil(work / grain)
    pieces: list[list[Node]] = [[]]
    done = 0.0
    for node in part:
        if pieces[-1] and done + cost.get(node.op, 1.0) > size * len(pieces) * (1.0 + 1e-9):
            pieces.append([])
        pieces[-1].append(node)
        done += cost.get(node.op, 1.0)
    return [found for piece in pieces for found in parts(piece)]


def grouped(name: str, level: str, groups: Sequence[Sequence[Node]], names: Sequence[str] = ()) -> Tasks:
    """Tasks from groups of nodes, each after those it needs. A node in several groups is computed in each of them."""
    home: dict[int, int] = {}
    for i, group in enumerate(groups):
        for node in group:
            home.setdefault(node.serial, i)
    made = []
    used: dict[int, set[int]] = {}
    for i, group in enumerate(groups):
        values: dict[int, set[int]] = {}
        own = {node.serial for node in group}
        for node in group:
            for a in node.operands:
                if a.op != "input" and a.serial not in own:
                    values.setdefault(home[a.serial], set()).add(a.serial)
        if any(before > i for before in values):
            raise InputError(f'task "{group[0].label}" needs a later one: groups must be in the order of computation.')
        for j, found in values.items():
            used.setdefault(j, set()).update(found)
        label = names[i] if names else _name(group[0], level)
        made.append(Task(i, label, tuple(group), {j: len(found) for j, found in sorted(values.items())}))
    return Tasks(name, level, tuple(replace(task, gives=len(used.get(task.index, ()))) for task in made))


def _name(node: Node, level: str) -> str:
    return node.label if level == "cluster" else f"{node.op} {node.label}".strip()
