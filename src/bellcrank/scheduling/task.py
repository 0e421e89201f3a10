"""Tasks: nodes of a graph, or clusters of nodes that one step of a method created for one body.

A cluster is a run of nodes with the same label in the order of creation, or a connected part of one. That order is
topological, so clusters never wait for each other in a cycle. A LoadTask has costs instead of nodes: a loop over
identical bodies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from bellcrank.errors import InputError, check_known
from bellcrank.graph import Graph, Node
from bellcrank.scalar import step_of

LEVELS = ("cluster", "node")  # and "auto", which tries both and sizes between (list_scheduling.py)


@dataclass(frozen=True)
class Task:
    """A unit of scheduling."""

    index: int
    name: str
    nodes: tuple[Node, ...]
    needs: Mapping[int, int]  # number of values used from each predecessor
    gives: int = 0  # number of values that other tasks use
    values: tuple[Node, ...] = field(default=(), compare=False, repr=False)  # these values, where they are known
    owns_inputs: bool = False  # its values are inputs that other processors only have from its messages

    @property
    def step(self) -> str:
        """Step of the method without the body: IA for IA[boom] and for mul IA[boom]."""
        label = self.nodes[0].label if self.nodes else ""
        return step_of(label if label and self.name.endswith(label) else self.name)

    @property
    def operations(self) -> int:
        """Number of operations."""
        return len(self.nodes)

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return sum(cost[node.op] for node in self.nodes)


@dataclass(frozen=True)
class Tasks:
    """The tasks of a computation."""

    name: str
    level: str
    tasks: tuple[Task, ...]  # topological order
    graph: Graph | None = field(default=None, compare=False, repr=False)  # the computation, where it is known

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, i: int) -> Task:
        return self.tasks[i]

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor without recomputation; `cost` is by operation name."""
        ops = {node.serial: node.op for task in self.tasks for node in task.nodes}
        return sum(cost[op] for op in ops.values())

    def span(self, cost: Mapping[str, float]) -> float:
        """Return the length of the longest chain of operations; `cost` is by operation name."""
        finish: dict[int, float] = {}
        for task in self.tasks:
            for node in task.nodes:
                operand_times = (finish.get(a.serial, 0.0) for a in node.operands)
                finish[node.serial] = cost[node.op] + max(operand_times, default=0.0)
        return max(finish.values(), default=0.0)


@dataclass(frozen=True)
class LoadTask(Task):
    """A task that repeats the same independent operations `times` times."""

    operation_counts: Mapping[str, int] = field(default_factory=dict)  # number of times of each operation
    times: int = 1

    @property
    def operations(self) -> int:
        """Number of operations."""
        return self.times * sum(self.operation_counts.values())

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return self.times * self.work_once(cost)

    def work_once(self, cost: Mapping[str, float]) -> float:
        """Return the time of one repetition; `cost` is by operation name."""
        return sum(n * cost[op] for op, n in self.operation_counts.items())


@dataclass(frozen=True)
class LoadTasks(Tasks):
    """Loads, whose work and span follow from their costs."""

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return sum(task.work(cost) for task in self.tasks)

    def span(self, cost: Mapping[str, float]) -> float:
        """Return the longest path if every repetition has a processor of its own; `cost` is by operation name."""
        done: list[float] = []
        for task in self.tasks:
            least = task.work_once(cost) if isinstance(task, LoadTask) else task.work(cost)
            done.append(least + max((done[j] for j in task.needs), default=0.0))
        return max(done, default=0.0)


def tasks(
    graph: Graph, level: str = "cluster", grain: float = float("inf"), cost: Mapping[str, float] | None = None
) -> Tasks:
    """Return the tasks of a graph.

    Inputs are available everywhere at the start, outputs may stay where they are computed, and negations are free.

    Parameters
    ----------
    graph
        The graph.
    level
        "cluster" or "node".
    grain
        Clusters with more work are cut.
    cost
        Cost by operation name.
    """
    check_known("level", level, LEVELS)
    nodes = [node for node in graph.nodes if node.op != "input"]
    if level == "node":
        groups = [[node] for node in nodes]
    else:
        runs = (list(run) for _, run in groupby(nodes, key=lambda node: node.label))
        groups = [
            piece for run in runs for part in connected_parts(run) for piece in cut_by_work(part, grain, cost or {})
        ]
    return tasks_from_groups(graph.name, level, groups, graph=graph)


def connected_parts(run: Sequence[Node]) -> list[list[Node]]:
    """Return the connected parts of a `run` of nodes, in the order of the first node of each."""
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
    parts_by_head: dict[int, list[Node]] = {}
    for node in run:
        parts_by_head.setdefault(top(node.serial), []).append(node)
    return list(parts_by_head.values())


def cut_by_work(part: Sequence[Node], grain: float, cost: Mapping[str, float]) -> list[list[Node]]:
    """Cut a part into connected pieces of about equal work.

    No piece exceeds the grain unless it is a single operation.

    Parameters
    ----------
    part
        The nodes.
    grain
        Maximum work of a piece.
    cost
        Cost by operation name.
    """
    work = sum(cost.get(node.op, 1.0) for node in part)
    if work <= grain or len(part) == 1:
        return [list(part)]
    size = work / math.ceil(work / grain)
    pieces: list[list[Node]] = [[]]
    work_done = 0.0
    for node in part:
        if pieces[-1] and work_done + cost.get(node.op, 1.0) > size * len(pieces) * (1.0 + 1e-9):
            pieces.append([])
        pieces[-1].append(node)
        work_done += cost.get(node.op, 1.0)
    return [part for piece in pieces for part in connected_parts(piece)]


def tasks_from_groups(
    name: str, level: str, groups: Sequence[Sequence[Node]], names: Sequence[str] = (), graph: Graph | None = None
) -> Tasks:
    """Return tasks from groups of nodes in topological order; a node in several groups is computed in each of them.

    Parameters
    ----------
    name
        Name of the computation.
    level
        Level of the tasks.
    groups
        Nodes of each task.
    names
        Name of each task; by the first node unless given.
    graph
        The graph that the nodes belong to; needed to execute a schedule of the tasks.
    """
    group_of_node: dict[int, int] = {}
    for i, group in enumerate(groups):
        for node in group:
            group_of_node.setdefault(node.serial, i)
    tasks = []
    used: dict[int, dict[int, Node]] = {}
    for i, group in enumerate(groups):
        values: dict[int, dict[int, Node]] = {}
        group_serials = {node.serial for node in group}
        for node in group:
            for a in node.operands:
                if a.op != "input" and a.serial not in group_serials:
                    values.setdefault(group_of_node[a.serial], {})[a.serial] = a
        if any(needed > i for needed in values):
            raise InputError(f'task "{group[0].label}" needs a later one: groups must be in topological order.')
        for j, needed_values in values.items():
            used.setdefault(j, {}).update(needed_values)
        label = names[i] if names else _name(group[0], level)
        tasks.append(Task(i, label, tuple(group), {j: len(needed) for j, needed in sorted(values.items())}))
    return Tasks(name, level, tuple(with_values(task, used.get(task.index, {})) for task in tasks), graph)


def with_values(task: Task, values: Mapping[int, Node]) -> Task:
    """Return `task` with the `values`, by serial number, that it gives to others."""
    return replace(task, gives=len(values), values=tuple(values[serial] for serial in sorted(values)))


def _name(node: Node, level: str) -> str:
    return node.label if level == "cluster" else f"{node.op} {node.label}".strip()
