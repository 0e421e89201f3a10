"""Tasks of a Recursion, place by place, without writing it out: each cell is analysed once.

A task is a cluster (task.py) of a cell at one place, all of whose operations wait for the same channel: operations that
wait for values from the children must not share a task with those that the children need. At the coarser level "place",
all operations of a place that wait for one channel are a task; at the finer level "node", every operation is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from bellcrank.graph import Node, Recursion
from bellcrank.graph.cells import Cell, channel_output, operand_of
from bellcrank.scalar import step_of
from bellcrank.scheduling.task import Task, Tasks, connected_parts

Source = tuple[int, int]  # channel and index of the child (-1: the parent)


@dataclass(frozen=True)
class PlaceTasks(Tasks):
    """Tasks of a recursion, which gives their work and longest path."""

    recursion: Recursion | None = field(default=None, repr=False)

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        assert self.recursion is not None
        return self.recursion.work(cost)

    def span(self, cost: Mapping[str, float]) -> float:
        """Return the length of the longest dependent path; `cost` is by operation name."""
        assert self.recursion is not None
        return self.recursion.span(cost)


@dataclass(frozen=True)
class CellTask:
    """One task of a cell.

    `channel` is the last channel that it waits for, -1 if there is none; `local_needs` the number of values it needs of
    other parts of the cell, by index; `reads` the received elements that it uses.
    """

    step: str
    channel: int
    nodes: tuple[Node, ...]
    local_needs: Mapping[int, int]
    reads: Mapping[Source, tuple[int, ...]]
    gives: int


class _CellTasks:
    """The tasks of a cell.

    `given` has for each sent element of a channel the task that computes it, or the source it is forwarded from.
    """

    def __init__(self, cell: Cell, wanted: tuple[tuple[bool, ...], ...], size: str) -> None:
        self.waits = _last_channels(cell)
        groups = [(k, nodes) for k in range(-1, len(wanted)) for nodes in self._groups(cell, k, size)]
        self.task_of_node = {n.serial: i for i, (_, nodes) in enumerate(groups) for n in nodes}
        outputs = [
            [x if w else 0.0 for x, w in zip(cell.graph.outputs[channel_output(k)].flat, flags, strict=True)]
            for k, flags in enumerate(wanted)
        ]
        self.producers = [[self._producer(x) for x in values] for values in outputs]
        needs = [self._needs(nodes) for _, nodes in groups]
        gives = self._count_used_values([x for values in outputs for x in values], [inside for inside, _ in needs])
        self.parts = list[CellTask]()
        for i, ((k, nodes), (inside, read)) in enumerate(zip(groups, needs, strict=True)):
            local_needs = {j: len(serials) for j, serials in inside.items()}
            reads = {source: tuple(sorted(elements)) for source, elements in read.items()}
            name = step_of(nodes[0].label) or cell.graph.name
            self.parts.append(CellTask(name, k, tuple(nodes), local_needs, reads, gives.get(i, 0)))

    def _count_used_values(self, sent: list[Any], inside: list[dict[int, set[int]]]) -> dict[int, int]:
        """Return the number of values of each part that others use, in the cell or at a neighbour."""
        used: dict[int, set[int]] = {}
        for n in (x for x in sent if isinstance(x, Node) and x.op != "input"):
            used.setdefault(self.task_of_node[n.serial], set()).add(n.serial)
        for needed in inside:
            for i, serials in needed.items():
                used.setdefault(i, set()).update(serials)
        return {i: len(serials) for i, serials in used.items()}

    def _groups(self, cell: Cell, channel: int, size: str) -> Iterator[list[Node]]:
        waiting_nodes = [n for n in cell.graph.nodes if n.op != "input" and self.waits[n.serial] == channel]
        if size == "place":
            yield from [waiting_nodes] if waiting_nodes else []
            return
        if size == "node":
            yield from ([n] for n in waiting_nodes)
            return
        for _, run in groupby(waiting_nodes, key=lambda n: n.label):
            yield from connected_parts(list(run))

    def _needs(self, nodes: list[Node]) -> tuple[dict[int, set[int]], dict[Source, set[int]]]:
        group_serials = {n.serial for n in nodes}
        inside: dict[int, set[int]] = {}
        reads: dict[Source, set[int]] = {}
        for a in (a for n in nodes for a in n.operands if a.serial not in group_serials):
            if a.op != "input":
                inside.setdefault(self.task_of_node[a.serial], set()).add(a.serial)
            elif (source := _source(a)) is not None:
                reads.setdefault(source, set()).add(a.args[1])
        return inside, reads

    def _producer(self, x: Node | float) -> int | tuple[Source, int] | None:
        """Return the part that computes a value, or its source, or None if it is known from the start."""
        if not isinstance(x, Node):
            return None
        if x.op != "input":
            return self.task_of_node[x.serial]
        source = _source(x)
        return None if source is None else (source, x.args[1])


def _source(x: Node) -> Source | None:
    """Return the neighbour from which an input comes; None if it comes from none."""
    operand = operand_of(x)
    if operand.kind not in ("parent", "child"):
        return None
    return int(operand.name), operand.child if operand.kind == "child" else -1


def _last_channels(cell: Cell) -> dict[int, int]:
    """Return for every node the last channel that it waits for."""
    last_channel: dict[int, int] = {}
    for n in cell.graph.nodes:
        if n.op == "input":
            source = _source(n)
            last_channel[n.serial] = -1 if source is None else source[0]
        else:
            last_channel[n.serial] = max((last_channel[a.serial] for a in n.operands), default=-1)
    return last_channel


def tasks(r: Recursion, level: str = "cluster") -> PlaceTasks:
    """Return the tasks of all places of recursion `r` in topological order; `level` is the level."""
    return PlaceTasks(r.name, level, tuple(_PlaceTaskBuilder(r, level).tasks()), recursion=r)


class _PlaceTaskBuilder:
    def __init__(self, r: Recursion, size: str) -> None:
        self.r = r
        cuts = [_CellTasks(cell, r.wanted, size) for cell in r.cells]
        self.cell_tasks = [cuts[k] for k in r.tree.cell_of_place.tolist()]
        self.parent, self.children = r.tree.parent.tolist(), r.tree.children.tolist()
        self.index: list[dict[int, int]] = [{} for _ in self.cell_tasks]  # for each place, the task of each part
        self.producer_of: dict[
            tuple[int, int], list[int]
        ] = {}  # by channel and place: the task that computes each element, -1 for none
        self.count = 0

    def tasks(self) -> Iterator[Task]:
        places = range(len(self.cell_tasks))
        for i in places:
            yield from self.tasks_of_place(i, -1)
        for k, outwards in enumerate(self.r.outwards):
            for i in places if outwards else reversed(places):
                yield from self.tasks_of_place(i, k)
                self.producer_of[k, i] = [self.producer(i, x) for x in self.cell_tasks[i].producers[k]]

    def tasks_of_place(self, i: int, channel: int) -> Iterator[Task]:
        """Yield the tasks of a place that wait for a channel."""
        task_of_part = self.index[i]
        for number, part in enumerate(self.cell_tasks[i].parts):
            if part.channel != channel:
                continue
            needs = {task_of_part[j]: n for j, n in part.local_needs.items()}
            for source, elements in part.reads.items():
                for e in elements:
                    if (producer := self.neighbour_producer(i, source, e)) >= 0:
                        needs[producer] = needs.get(producer, 0) + 1
            task_of_part[number] = self.count
            yield Task(self.count, f"{part.step}[{i + 1}]", part.nodes, dict(sorted(needs.items())), part.gives)
            self.count += 1

    def neighbour_producer(self, i: int, source: Source, element: int) -> int:
        channel, child = source
        neighbour = self.parent[i] if child < 0 else self.children[i][child]
        return self.producer_of[channel, neighbour][element]

    def producer(self, i: int, x: int | tuple[Source, int] | None) -> int:
        if x is None:
            return -1
        return self.index[i][x] if isinstance(x, int) else self.neighbour_producer(i, *x)
