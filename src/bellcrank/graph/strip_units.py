"""Grouping of identical operations for loop rolling.

Nodes are grouped from the inputs on, level by level, so that no group depends on itself. Nodes of one operation with
operands that are elements of the same groups, or of arrays at a constant stride, form one Unit; so do values that are
stored consecutively, and long reductions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bellcrank.graph.graph import Graph
from bellcrank.graph.strip_parts import NEUTRAL, Parts
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import COMPARISONS

WIDE = 16  # lanes of the widest vector of sines and cosines
SHORTEST = 8  # elements; fewer are not worth a loop
LONGEST_PERIOD = 24  # of an interleaved sequence of operations
ArrayName = tuple[str, Any]


class Operand(NamedTuple):
    """An element of a unit, or a number."""

    unit: Unit | None
    place: int
    number: float = 0.0


@dataclass(eq=False)
class Unit:
    """A group of identical operations.

    `shape` is the operation with comparisons expanded and None for each operand, or the operation of a reduction.
    `operands` holds the first and the last element of every operand.
    """

    kind: str  # input, op, store, fold or call
    count: int = 1
    shape: Any = None
    operands: list[tuple[Operand, Operand]] = field(default_factory=list)
    numbers: dict[int, list[float]] = field(default_factory=dict)  # values of the operands that are constants
    array: ArrayName = ("", 0)  # array of its values
    start: int = 0  # of a store: first element in the array
    first: Operand | None = None  # start value of a reduction
    graph: Graph | None = None  # called graph; None for a call that computes sines and cosines
    room: int = 0  # number of angles of that call, with padding
    step: int = -1

    def stride(self, k: int) -> int:
        """Return the distance between consecutive elements of operand `k`."""
        a, b = self.operands[k]
        return (b.place - a.place) // (self.count - 1) if self.count > 1 else 0

    def abreast(self, k: int) -> bool:
        """Return true if operand `k` is a unit of the same length, used element by element."""
        a, b = self.operands[k]
        o = a.unit
        return o is not None and o.kind == "op" and o.count == self.count and a.place == 0 and b.place == o.count - 1


class Units:
    """All units of a graph in topological order."""

    def __init__(self, graph: Graph, parts: Parts) -> None:
        """Group the nodes of `graph`, using its levels and reductions in `parts`."""
        self.graph = graph
        self.all: list[Unit] = []
        self.home: dict[int, Operand] = {}
        self.inputs = {name: Unit("input", array=("in", name)) for name in graph.inputs}
        self.calls: list[Unit] = []
        self.sums = parts.sums
        for nodes in parts.levels:
            self.level(nodes)
        for name, array in graph.outputs.items():
            self.store(list(array.flat), ("out", name))

    def level(self, nodes: Sequence[Node]) -> None:
        """Group `nodes` of one level, which do not depend on each other."""
        alike: dict[Any, list[tuple[Node, list[Operand]]]] = {}
        for n in nodes:
            if n.op == "input":
                self.home[n.serial] = Operand(self.inputs[n.args[0]], n.args[1])
            elif n.op == "call":
                self.called(n)
            elif n.op in ("sin", "cos"):
                continue
            elif n.op == "result":
                self.home[n.serial] = Operand(self.home[n.args[0].serial].unit, n.args[1])
            elif n.serial in self.sums:
                self.home[n.serial] = self.fold(n.op, [self.operand(x) for x in self.sums[n.serial]])
            else:
                operands = [self.operand(x) for x in _flat(n)]
                key = _shape(n), *(id(o.unit) if o.unit else None for o in operands)
                alike.setdefault(key, []).append((n, operands))
        self.turned([n for n in nodes if n.op in ("sin", "cos")])
        for (shape, *_), found in alike.items():
            self.group(shape, found)

    def group(self, shape: Any, found: Sequence[tuple[Node, list[Operand]]]) -> None:
        """Split nodes of one operation with operands of the same units into as few units as possible.

        Parameters
        ----------
        shape
            The operation.
        found
            The nodes and their operands.
        """
        for lane in _lanes([operands for _, operands in found]):
            mine = [found[i] for i in lane]
            for begin, end in _runs([operands for _, operands in mine]):
                unit = self.unit("op", [operands for _, operands in mine[begin:end]], shape)
                for place, (n, _) in enumerate(mine[begin:end]):
                    self.home[n.serial] = Operand(unit, place)

    def unit(self, kind: str, rows: Sequence[Sequence[Operand]], shape: Any = None, **more: Any) -> Unit:
        """Append a unit.

        Parameters
        ----------
        kind
            Kind of unit.
        rows
            Operands of each element.
        shape
            The operation.
        more
            Further fields of the unit.
        """
        ends = list(zip(rows[0], rows[-1], strict=True))
        numbers = {k: [row[k].number for row in rows] for k, (a, _) in enumerate(ends) if a.unit is None}
        self.all.append(Unit(kind, len(rows), shape, ends, numbers, **more))
        return self.all[-1]

    def operand(self, x: Value) -> Operand:
        """Return the operand for a value `x`."""
        return self.home[x.serial] if isinstance(x, Node) else Operand(None, 0, x)

    def called(self, n: Node) -> None:
        """Append the call `n` and the stores of its arguments."""
        function, *values = n.args
        number = len(self.calls)
        self.store(values, ("given", number))
        self.calls.append(Unit("call", array=("got", number), graph=function))
        self.all.append(self.calls[-1])
        self.home[n.serial] = Operand(self.calls[-1], 0)

    def turned(self, nodes: Sequence[Node]) -> None:
        """Compute all sines and cosines in `nodes`, which are of one level, by one call."""
        if not nodes:
            return
        angles = {a.serial: (k, a) for k, a in enumerate({n.args[0].serial: n.args[0] for n in nodes}.values())}
        number, room = len(self.calls), -(-len(angles) // WIDE) * WIDE
        self.store([*(a for _, a in angles.values()), *[0.0] * (room - len(angles))], ("given", number))
        self.calls.append(Unit("call", array=("got", number), room=room))
        self.all.append(self.calls[-1])
        for n in nodes:
            place = angles[n.args[0].serial][0]
            self.home[n.serial] = Operand(self.calls[-1], place if n.op == "sin" else room + place)

    def store(self, values: Sequence[Value], array: ArrayName) -> None:
        """Store `values` consecutively in `array`, by as few units as possible."""
        rows = [[self.operand(x)] for x in values]
        begin = 0
        while begin < len(rows):
            end = begin + 1
            while end < len(rows) and rows[end][0].unit is rows[begin][0].unit:
                end += 1
            for a, b in _runs(rows[begin:end]):
                self.unit("store", rows[begin + a : begin + b], array=array, start=begin + a)
            begin = end

    def fold(self, op: str, operands: Sequence[Operand]) -> Operand:
        """Append a long reduction with operation `op`: one unit for each sequence of `operands` in one array."""
        last, rows, begin = Operand(None, 0, NEUTRAL[op]), [[o] for o in operands], 0
        while begin < len(rows):
            end = begin + 1
            while end < len(rows) and rows[end][0].unit is rows[begin][0].unit:
                end += 1
            for a, b in _runs(rows[begin:end]):
                last = Operand(self.unit("fold", rows[begin + a : begin + b], op, first=last), 0)
            begin = end
        return last


def _shape(n: Node) -> Any:
    return n.op, *(_shape(a) if isinstance(a, Node) and a.op in COMPARISONS else None for a in n.args)


def _flat(n: Node) -> Iterator[Value]:
    """Yield the operands of a node; a comparison, which is not stored anywhere, is replaced by its own."""
    for a in n.args:
        if isinstance(a, Node) and a.op in COMPARISONS:
            yield from _flat(a)
        else:
            yield a


def _lanes(rows: Sequence[Sequence[Operand]]) -> list[range]:
    """Split an interleaved sequence, such as the operations of many identical parts, into its regular subsequences."""
    n = len(rows)
    if n < 2 * SHORTEST:
        return [range(n)]
    places = np.array([[o.place for o in row] for row in rows])
    best, period = 0.0, 1
    for p in range(1, min(LONGEST_PERIOD, n // SHORTEST) + 1):
        ahead = places[p:] - places[:-p]
        even = float((ahead[p:] == ahead[:-p]).all(axis=1).mean())
        if even > best + 0.02:
            best, period = even, p
    return [range(k, n, period) for k in range(period)]


def _runs(rows: Sequence[Sequence[Operand]]) -> list[tuple[int, int]]:
    """Return ranges with a constant stride of all operands; elements too few for a loop are returned one by one."""
    found: list[tuple[int, int]] = []

    def close(begin: int, end: int) -> None:
        found.extend([(begin, end)] if end - begin >= SHORTEST else [(i, i + 1) for i in range(begin, end)])

    places = [[o.place for o in row] for row in rows]
    begin, pace = 0, list[int]()
    for i in range(1, len(rows)):
        now = [b - a for a, b in zip(places[i - 1], places[i], strict=True)]
        if i - begin >= 2 and now != pace:
            keep = i - 1 if i - begin == 2 else i  # if two elements do not continue, the second may start a new run
            close(begin, keep)
            begin = keep
        pace = now
    close(begin, len(rows))
    return found
