"""A graph in which the same is done for many elements, as loops: the step of an integrator over a thousand coordinates.

Units (strip_units.py) of equal length that need each other element by element, and nothing of each other in between,
are one Loop. What is alone is a unit of length one, so that any graph is such a list of loops and calls; `stripped`
of strip_parts.py says where that is worth while.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bellcrank.graph.coverage import Coverage
from bellcrank.graph.graph import Graph
from bellcrank.graph.strip_parts import Parts
from bellcrank.graph.strip_units import ArrayName, Unit, Units
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.tape import Tape

LARGEST = 400  # operations in one loop


class At(NamedTuple):
    """Elements of an array: start, start + stride, ...

    array: ("in", name) and ("out", name) are the graph's own; ("given", k) and ("got", k) what call k is given and
    gives, flat; ("value", k) is between two loops, and ("table", 0) never changes.
    """

    array: ArrayName
    start: int
    stride: int


class Fold(NamedTuple):
    """A number that goes round: op(what it was, an element of y), from `first` on (a number, or where one lies)."""

    op: str
    element: int
    first: float | At
    to: At


@dataclass(frozen=True, eq=False)
class Loop:
    """From x, whose elements are read, to y, of which the first are written, and the others go round."""

    count: int
    graph: Graph
    reads: tuple[At, ...]
    writes: tuple[At, ...]
    folds: tuple[Fold, ...]


class Call(NamedTuple):
    graph: Graph
    number: int


class Turn(NamedTuple):
    """Sines, and behind them cosines, of so many angles, at once; given and got as by a call."""

    number: int
    angles: int


@dataclass(frozen=True, eq=False)
class Strips:
    """steps: in their order. sizes: of the arrays between them. counts: how many nodes each unit has."""

    steps: tuple[Loop | Call | Turn, ...]
    sizes: dict[ArrayName, int]
    table: np.ndarray[Any, Any]
    counts: tuple[int, ...]

    def share(self, length: int) -> float:
        """Of all operations, those that are in loops of at least this length."""
        return sum(n for n in self.counts if n >= length) / max(1, sum(self.counts))


def strips(graph: Graph, parts: Parts | None = None) -> Strips:
    """The graph as loops, the same operations in the same order for every element."""
    return _Making(Units(graph, parts or Parts(graph))).made()


class _Making:
    def __init__(self, units: Units) -> None:
        self.units = units
        self.steps: list[list[Unit] | Unit] = []
        self.roomy: dict[int, list[int]] = {}  # by length: loops that have room
        self.sizes: dict[ArrayName, int] = {}
        self.table: list[float] = []
        for u in units.all:
            self.place(u)
        for u in units.all:
            self.keep(u)

    def made(self) -> Strips:
        calls = {u: k for k, u in enumerate(self.units.calls)}
        steps: list[Loop | Call | Turn] = []
        for s in self.steps:
            if isinstance(s, list):
                steps.append(_Body(self, s).loop())
            elif s.graph is None:
                steps.append(Turn(calls[s], s.room))
                self.sizes["given", calls[s]], self.sizes["got", calls[s]] = s.room, 2 * s.room
            else:
                steps.append(Call(s.graph, calls[s]))
                self.sizes["given", calls[s]] = len(s.graph.elements)
                self.sizes["got", calls[s]] = sum(map(math.prod, s.graph.shapes.values()))
        _check(self.units.graph, steps)
        counts = tuple(u.count for u in self.units.all if u.kind != "call")
        return Strips(tuple(steps), self.sizes, np.array(self.table, float), counts)

    def place(self, u: Unit) -> None:
        """In the first loop of its length that comes after what it needs, or a new one; a call comes last."""
        if u.kind != "call":
            since = max((self.known(u, k) for k in range(len(u.operands))), default=0)
            if u.first is not None and u.first.unit is not None:
                since = max(since, u.first.unit.step + 1)
            u.step = next((s for s in self.roomy.get(u.count, ()) if s >= since), -1)
        if u.step < 0:
            u.step = len(self.steps)
            self.steps.append(u if u.kind == "call" else [])
            self.roomy.setdefault(u.count, []).append(u.step) if u.kind != "call" else None
        mine = self.steps[u.step]
        if isinstance(mine, list):
            mine.append(u)
            if len(mine) == LARGEST:
                self.roomy[u.count].remove(u.step)

    def known(self, u: Unit, k: int) -> int:
        """The first step in which an operand is known."""
        o = u.operands[k][0].unit
        if o is None or o.kind == "input":
            return 0
        return o.step if u.abreast(k) else o.step + 1

    def keep(self, u: Unit) -> None:
        """Room for what another loop reads."""
        read = [
            o.unit for k, (o, _) in enumerate(u.operands) if not (o.unit and o.unit.step == u.step and u.abreast(k))
        ]
        for o in [*read, u.first.unit if u.first is not None else None]:
            if o is not None and o.kind in ("op", "fold") and not o.array[0]:
                o.array = "value", len(self.sizes)
                self.sizes[o.array] = 1 if o.kind == "fold" else o.count


def _check(graph: Graph, steps: Sequence[Loop | Call | Turn]) -> None:
    """Raise CompileError if the loops do not store every element of the outputs."""
    coverage = Coverage(graph.name, graph.shapes)
    for loop in (s for s in steps if isinstance(s, Loop)):
        stores = [(at, loop.count) for at in loop.writes] + [(fold.to, 1) for fold in loop.folds]
        for at, count in stores:
            kind, name = at.array
            if kind == "out":
                coverage.note(str(name), at.start + max(1, at.stride) * np.arange(count))
    coverage.check()


class _Body:
    """What one loop does for one element."""

    def __init__(self, making: _Making, units: Sequence[Unit]) -> None:
        self.making, self.units, self.tape = making, units, Tape()
        self.reads: dict[At, Node] = {}
        self.known: dict[Unit, Value] = {}

    def loop(self) -> Loop:
        for u in self.units:
            self.known[u] = self.value(u)
        written = [u for u in self.units if u.kind != "fold" and u.array[0]]
        folded = [u for u in self.units if u.kind == "fold"]
        y = np.empty(len(written) + len(folded), dtype=object)
        y[:] = [self.known[u] for u in (*written, *folded)]
        graph = Graph(f"{self.making.units.graph.name}.strip", {"x": (len(self.reads),)}, {"y": y}, self.tape)
        writes = tuple(At(u.array, u.start, 1) for u in written)
        folds = tuple(self.fold(u, len(written) + k) for k, u in enumerate(folded))
        return Loop(self.units[0].count, graph, tuple(self.reads), writes, folds)

    def fold(self, u: Unit, element: int) -> Fold:
        assert u.first is not None
        before = u.first.unit
        return Fold(u.shape, element, u.first.number if before is None else At(before.array, 0, 0), At(u.array, 0, 0))

    def value(self, u: Unit) -> Value:
        operands = iter([self.operand(u, k) for k in range(len(u.operands))])
        return next(operands) if u.kind in ("store", "fold") else self.node(u.shape, operands)

    def node(self, shape: Any, operands: Iterator[Value]) -> Node:
        op, *parts = shape
        return self.tape.node(op, *[next(operands) if p is None else self.node(p, operands) for p in parts])

    def operand(self, u: Unit, k: int) -> Value:
        o, _ = u.operands[k]
        if o.unit is None:
            return self.constant(u.numbers[k])
        if o.unit.step == u.step and u.abreast(k):
            return self.known[o.unit]
        return self.read(At(o.unit.array, o.place, u.stride(k)))

    def constant(self, numbers: Sequence[float]) -> Value:
        if len({float(x).hex() for x in numbers}) == 1:
            return numbers[0]
        start = len(self.making.table)
        self.making.table.extend(numbers)
        return self.read(At(("table", 0), start, 1))

    def read(self, at: At) -> Node:
        if at not in self.reads:
            self.reads[at] = self.tape.node("input", "x", len(self.reads))
        return self.reads[at]
