"""Tasks of a Recursion, place by place: what a cell is cut into is found once, and what waits for what follows from the
tree. Nothing is written out.

A task is a cluster (task.py) of a cell at one place, all of whose operations wait for the same channel: what waits for
one that comes back from the children must not be in one task with what they need. Coarser ("place"), all that waits for
one channel at one place is a task; finer ("node"), every operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from bellcrank.graph import Node, Recursion
from bellcrank.graph.cells import Cell, handed, place_of
from bellcrank.scalar import step_of
from bellcrank.scheduling.task import Task, Tasks, parts

Source = tuple[int, int]  # a channel, and from which child (-1: the parent)


@dataclass(frozen=True)
class PlaceTasks(Tasks):
    """Their work and longest path are those of the recursion."""

    of: Recursion | None = field(default=None, repr=False)

    def work(self, cost: Mapping[str, float]) -> float:
        assert self.of is not None
        return self.of.work(cost)

    def span(self, cost: Mapping[str, float]) -> float:
        assert self.of is not None
        return self.of.span(cost)


@dataclass(frozen=True)
class Part:
    """One task of a cell. channel: the last that it waits for, -1 if for none. inside: its needs of other parts, by
    number. reads: of what it is handed, the elements.
    """

    step: str
    channel: int
    nodes: tuple[Node, ...]
    inside: Mapping[int, int]
    reads: Mapping[Source, tuple[int, ...]]
    gives: int


class _Cut:
    """A cell in parts. given: of what a channel hands on, the part that makes each element, or what hands it over."""

    def __init__(self, cell: Cell, wanted: tuple[tuple[bool, ...], ...], size: str) -> None:
        self.waits = _waits(cell)
        groups = [(k, nodes) for k in range(-1, len(wanted)) for nodes in self._groups(cell, k, size)]
        self.home = {n.serial: i for i, (_, nodes) in enumerate(groups) for n in nodes}
        outputs = [
            [x if w else 0.0 for x, w in zip(cell.graph.outputs[handed(k)].flat, mine, strict=True)]
            for k, mine in enumerate(wanted)
        ]
        self.given = [[self._maker(x) for x in values] for values in outputs]
        needs = [self._needs(nodes) for _, nodes in groups]
        gives = self._gives([x for values in outputs for x in values], [inside for inside, _ in needs])
        self.parts = [
            Part(
                step_of(nodes[0].label) or cell.graph.name,
                k,
                tuple(nodes),
                {j: len(serials) for j, serials in inside.items()},
                {source: tuple(sorted(found)) for source, found in reads.items()},
                gives.get(i, 0),
            )
            for i, ((k, nodes), (inside, reads)) in enumerate(zip(groups, needs, strict=True))
        ]

    def _gives(self, handed_on: list[Any], inside: list[dict[int, set[int]]]) -> dict[int, int]:
        """How many values of each part others use, here or at a neighbour."""
        used: dict[int, set[int]] = {}
        for n in (x for x in handed_on if isinstance(x, Node) and x.op != "input"):
            used.setdefault(self.home[n.serial], set()).add(n.serial)
        for needed in inside:
            for i, serials in needed.items():
                used.setdefault(i, set()).update(serials)
        return {i: len(serials) for i, serials in used.items()}

    def _groups(self, cell: Cell, channel: int, size: str) -> Iterator[list[Node]]:
        mine = [n for n in cell.graph.nodes if n.op != "input" and self.waits[n.serial] == channel]
        if size == "place":
            yield from [mine] if mine else []
            return
        if size == "node":
            yield from ([n] for n in mine)
            return
        for _, run in groupby(mine, key=lambda n: n.label):
            yield from parts(list(run))

    def _needs(self, nodes: list[Node]) -> tuple[dict[int, set[int]], dict[Source, set[int]]]:
        own = {n.serial for n in nodes}
        inside: dict[int, set[int]] = {}
        reads: dict[Source, set[int]] = {}
        for a in (a for n in nodes for a in n.operands if a.serial not in own):
            if a.op != "input":
                inside.setdefault(self.home[a.serial], set()).add(a.serial)
            elif (source := _source(a)) is not None:
                reads.setdefault(source, set()).add(a.args[1])
        return inside, reads

    def _maker(self, x: Node | float) -> int | tuple[Source, int] | None:
        """The part that makes a value; or where it came from; or nothing, if it is there from the start."""
        if not isinstance(x, Node):
            return None
        if x.op != "input":
            return self.home[x.serial]
        source = _source(x)
        return None if source is None else (source, x.args[1])


def _source(x: Node) -> Source | None:
    """Which neighbour an input comes from."""
    at = place_of(x)
    if at.kind not in ("parent", "child"):
        return None
    return int(at.name), at.child if at.kind == "child" else -1


def _waits(cell: Cell) -> dict[int, int]:
    """Of every node the last channel that it waits for."""
    found: dict[int, int] = {}
    for n in cell.graph.nodes:
        if n.op == "input":
            source = _source(n)
            found[n.serial] = -1 if source is None else source[0]
        else:
            found[n.serial] = max((found[a.serial] for a in n.operands), default=-1)
    return found


def tasks(r: Recursion, size: str = "cluster") -> PlaceTasks:
    """Of all places, each after those it needs."""
    return PlaceTasks(r.name, size, tuple(_Making(r, size).tasks()), r)


class _Making:
    def __init__(self, r: Recursion, size: str) -> None:
        self.r = r
        cuts = [_Cut(cell, r.wanted, size) for cell in r.cells]
        self.cuts = [cuts[k] for run in r.tree.runs for k in run.cells * run.repeats]
        self.parent, self.children = r.tree.parent.tolist(), r.tree.children.tolist()
        self.index: list[dict[int, int]] = [{} for _ in self.cuts]  # of each place, the task of each part
        self.given: dict[tuple[int, int], list[int]] = {}  # by channel and place: who makes each element, -1 for none
        self.count = 0

    def tasks(self) -> Iterator[Task]:
        places = range(len(self.cuts))
        for i in places:
            yield from self.at(i, -1)
        for k, outwards in enumerate(self.r.outwards):
            for i in places if outwards else reversed(places):
                yield from self.at(i, k)
                self.given[k, i] = [self.maker(i, x) for x in self.cuts[i].given[k]]

    def at(self, i: int, channel: int) -> Iterator[Task]:
        """The tasks of a place that wait for a channel."""
        mine = self.index[i]
        for number, part in enumerate(self.cuts[i].parts):
            if part.channel != channel:
                continue
            needs = {mine[j]: n for j, n in part.inside.items()}
            for source, elements in part.reads.items():
                for e in elements:
                    if (made := self.brought(i, source, e)) >= 0:
                        needs[made] = needs.get(made, 0) + 1
            mine[number] = self.count
            yield Task(self.count, f"{part.step}[{i + 1}]", part.nodes, dict(sorted(needs.items())), part.gives)
            self.count += 1

    def brought(self, i: int, source: Source, element: int) -> int:
        channel, child = source
        neighbour = self.parent[i] if child < 0 else self.children[i][child]
        return self.given[channel, neighbour][element]

    def maker(self, i: int, x: int | tuple[Source, int] | None) -> int:
        if x is None:
            return -1
        return self.index[i][x] if isinstance(x, int) else self.brought(i, *x)
