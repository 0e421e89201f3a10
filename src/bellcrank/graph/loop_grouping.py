"""Grouping of identical operations for loop rolling.

Nodes are grouped from the inputs on, level by level, so that no group depends on itself. Nodes of one operation with
operands that are elements of the same groups, or of arrays at a constant stride, form one Unit; so do values that are
stored consecutively, and long reductions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bellcrank.graph.graph import Graph
from bellcrank.graph.loop_levels import NEUTRAL, GraphLevels
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import COMPARISONS

SINCOS_LANES = 16  # lanes of the widest vector of sines and cosines
MIN_GROUP_ELEMENTS = 8  # elements; fewer are not worth a loop
MAX_INTERLEAVE_PERIOD = 24  # of an interleaved sequence of operations
ArrayName = tuple[str, Any]


class Operand(NamedTuple):
    """An element of a unit, or a number."""

    unit: OperationGroup | None
    place: int
    number: float = 0.0


@dataclass(eq=False)
class OperationGroup:
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
    padded_angles: int = 0  # number of angles of that call, with padding
    step: int = -1

    def stride(self, k: int) -> int:
        """Return the distance between consecutive elements of operand `k`."""
        a, b = self.operands[k]
        return (b.place - a.place) // (self.count - 1) if self.count > 1 else 0

    def is_elementwise(self, k: int) -> bool:
        """Return true if operand `k` is a unit of the same length, used element by element."""
        a, b = self.operands[k]
        o = a.unit
        return o is not None and o.kind == "op" and o.count == self.count and a.place == 0 and b.place == o.count - 1


class UnitList:
    """All units of a graph in topological order."""

    def __init__(self, graph: Graph, parts: GraphLevels) -> None:
        """Group the nodes of `graph`, using its levels and reductions in `parts`."""
        self.graph = graph
        self.units: list[OperationGroup] = []
        self.operand_of_node: dict[int, Operand] = {}
        self.inputs = {name: OperationGroup("input", array=("in", name)) for name in graph.inputs}
        self.calls: list[OperationGroup] = []
        self.sums = parts.sums
        for nodes in parts.levels:
            self.add_level(nodes)
        for name, array in graph.outputs.items():
            self.add_stores(list(array.flat), ("out", name))

    def add_level(self, nodes: Sequence[Node]) -> None:
        """Group `nodes` of one level, which do not depend on each other."""
        groups: dict[Any, list[tuple[Node, list[Operand]]]] = {}
        for n in nodes:
            if n.op == "input":
                self.operand_of_node[n.serial] = Operand(self.inputs[n.args[0]], n.args[1])
            elif n.op == "call":
                self.add_call(n)
            elif n.op in ("sin", "cos"):
                continue
            elif n.op == "result":
                self.operand_of_node[n.serial] = Operand(self.operand_of_node[n.args[0].serial].unit, n.args[1])
            elif n.serial in self.sums:
                self.operand_of_node[n.serial] = self.add_reduction(
                    n.op, [self.operand(x) for x in self.sums[n.serial]]
                )
            else:
                operands = [self.operand(x) for x in _flat(n)]
                key = _shape(n), *(id(o.unit) if o.unit else None for o in operands)
                groups.setdefault(key, []).append((n, operands))
        self.add_sincos([n for n in nodes if n.op in ("sin", "cos")])
        for (shape, *_), members in groups.items():
            self.add_group(shape, members)

    def add_group(self, shape: Any, members: Sequence[tuple[Node, list[Operand]]]) -> None:
        """Split nodes of one operation with operands of the same units into as few units as possible.

        Parameters
        ----------
        shape
            The operation.
        members
            The nodes and their operands.
        """
        for lane in _lanes([operands for _, operands in members]):
            lane_members = [members[i] for i in lane]
            for begin, end in _runs([operands for _, operands in lane_members]):
                unit = self.add_unit("op", [operands for _, operands in lane_members[begin:end]], shape)
                for place, (n, _) in enumerate(lane_members[begin:end]):
                    self.operand_of_node[n.serial] = Operand(unit, place)

    def add_unit(self, kind: str, rows: Sequence[Sequence[Operand]], shape: Any = None, **more: Any) -> OperationGroup:
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
        self.units.append(OperationGroup(kind, len(rows), shape, ends, numbers, **more))
        return self.units[-1]

    def operand(self, x: Value) -> Operand:
        """Return the operand for a value `x`."""
        return self.operand_of_node[x.serial] if isinstance(x, Node) else Operand(None, 0, x)

    def add_call(self, n: Node) -> None:
        """Append the call `n` and the stores of its arguments."""
        function, *values = n.args
        number = len(self.calls)
        self.add_stores(values, ("given", number))
        self.calls.append(OperationGroup("call", array=("got", number), graph=function))
        self.units.append(self.calls[-1])
        self.operand_of_node[n.serial] = Operand(self.calls[-1], 0)

    def add_sincos(self, nodes: Sequence[Node]) -> None:
        """Compute all sines and cosines in `nodes`, which are of one level, by one call."""
        if not nodes:
            return
        angles = {a.serial: (k, a) for k, a in enumerate({n.args[0].serial: n.args[0] for n in nodes}.values())}
        number, padded_count = len(self.calls), -(-len(angles) // SINCOS_LANES) * SINCOS_LANES
        self.add_stores([*(a for _, a in angles.values()), *[0.0] * (padded_count - len(angles))], ("given", number))
        self.calls.append(OperationGroup("call", array=("got", number), padded_angles=padded_count))
        self.units.append(self.calls[-1])
        for n in nodes:
            place = angles[n.args[0].serial][0]
            self.operand_of_node[n.serial] = Operand(self.calls[-1], place if n.op == "sin" else padded_count + place)

    def add_stores(self, values: Sequence[Value], array: ArrayName) -> None:
        """Store `values` consecutively in `array`, by as few units as possible."""
        rows = [[self.operand(x)] for x in values]
        for begin, end in _runs_by_unit(rows):
            self.add_unit("store", rows[begin:end], array=array, start=begin)

    def add_reduction(self, op: str, operands: Sequence[Operand]) -> Operand:
        """Append a long reduction with operation `op`: one unit for each sequence of `operands` in one array."""
        last, rows = Operand(None, 0, NEUTRAL[op]), [[o] for o in operands]
        for begin, end in _runs_by_unit(rows):
            last = Operand(self.add_unit("fold", rows[begin:end], op, first=last), 0)
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
    if n < 2 * MIN_GROUP_ELEMENTS:
        return [range(n)]
    places = np.array([[o.place for o in row] for row in rows])
    best, period = 0.0, 1
    for p in range(1, min(MAX_INTERLEAVE_PERIOD, n // MIN_GROUP_ELEMENTS) + 1):
        distances = places[p:] - places[:-p]
        regularity = float((distances[p:] == distances[:-p]).all(axis=1).mean())
        if regularity > best + 0.02:
            best, period = regularity, p
    return [range(k, n, period) for k in range(period)]


def _runs_by_unit(rows: Sequence[Sequence[Operand]]) -> Iterator[tuple[int, int]]:
    """Yield ranges with one operand of the same unit, at a constant stride; see `_runs`."""
    begin = 0
    for _, group in groupby(rows, key=lambda row: id(row[0].unit)):
        part = list(group)
        yield from ((begin + a, begin + b) for a, b in _runs(part))
        begin += len(part)


def _runs(rows: Sequence[Sequence[Operand]]) -> list[tuple[int, int]]:
    """Return ranges with a constant stride of all operands; elements too few for a loop are returned one by one."""
    runs: list[tuple[int, int]] = []

    def close(begin: int, end: int) -> None:
        runs.extend([(begin, end)] if end - begin >= MIN_GROUP_ELEMENTS else [(i, i + 1) for i in range(begin, end)])

    places = [[o.place for o in row] for row in rows]
    begin, stride = 0, list[int]()
    for i in range(1, len(rows)):
        step = [b - a for a, b in zip(places[i - 1], places[i], strict=True)]
        if i - begin >= 2 and step != stride:
            keep = i - 1 if i - begin == 2 else i  # if two elements do not continue, the second may start a new run
            close(begin, keep)
            begin = keep
        stride = step
    close(begin, len(rows))
    return runs
