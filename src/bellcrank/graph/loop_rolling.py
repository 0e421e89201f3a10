"""Loop rolling for array-like graphs, such as the step of an integrator over a thousand coordinates.

Units (grouped operations) of equal length that depend on each other element by element, with nothing else in between,
form one Loop. A single operation is a unit of length one, so any graph becomes a list of loops and calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bellcrank.graph.graph import Graph
from bellcrank.graph.loop_grouping import ArrayName, OperationGroup, UnitList
from bellcrank.graph.loop_levels import GraphLevels
from bellcrank.graph.store_coverage import Coverage
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.tape import Tape

MAX_LOOP_OPERATIONS = 400  # operations in one loop body


class ArraySlice(NamedTuple):
    """Elements of an array: start, start + stride, ...

    array: ("in", name) and ("out", name) are the inputs and outputs of the graph; ("given", k) and ("got", k) are the
    flat arguments and results of call k; ("value", k) connects two loops, and ("table", 0) is constant.
    """

    array: ArrayName
    start: int
    stride: int


class LoopReduction(NamedTuple):
    """A reduction: op(previous value, an element of y), starting with `first` (a number, or its location)."""

    op: str
    element: int
    first: float | ArraySlice
    to: ArraySlice


@dataclass(frozen=True, eq=False)
class ArrayLoop:
    """A loop: body graph from x to y, where the first elements of y are stored and the others are reduced."""

    count: int
    graph: Graph
    reads: tuple[ArraySlice, ...]
    writes: tuple[ArraySlice, ...]
    reductions: tuple[LoopReduction, ...]


class GraphCall(NamedTuple):
    """A call of another graph."""

    graph: Graph
    number: int


class SinCos(NamedTuple):
    """A call that computes the sines, followed by the cosines, of several angles."""

    number: int
    angles: int


@dataclass(frozen=True, eq=False)
class RolledGraph:
    """A graph rolled into loops.

    `steps` are in order of execution, `sizes` those of the arrays between them, `counts` the elements of each unit.
    """

    steps: tuple[ArrayLoop | GraphCall | SinCos, ...]
    sizes: dict[ArrayName, int]
    table: np.ndarray[Any, Any]
    counts: tuple[int, ...]

    def rolled_fraction(self, length: int) -> float:
        """Return the fraction of the operations that are in loops of at least this `length`."""
        return sum(n for n in self.counts if n >= length) / max(1, sum(self.counts))


def roll(graph: Graph, parts: GraphLevels | None = None) -> RolledGraph:
    """Roll `graph` into loops that do the same operations in the same order for every element.

    `parts` are its levels and reductions, if they are known already.
    """
    return _Rolling(UnitList(graph, parts or GraphLevels(graph))).rolled()


class _Rolling:
    def __init__(self, units: UnitList) -> None:
        self.units = units
        self.steps: list[list[OperationGroup] | OperationGroup] = []
        self.open_loops: dict[int, list[int]] = {}  # by length: loops that are not full
        self.sizes: dict[ArrayName, int] = {}
        self.table: list[float] = []
        for u in units.units:
            self.assign_loop(u)
        for u in units.units:
            self.allocate_array(u)

    def rolled(self) -> RolledGraph:
        calls = {u: k for k, u in enumerate(self.units.calls)}
        steps: list[ArrayLoop | GraphCall | SinCos] = []
        for s in self.steps:
            if isinstance(s, list):
                steps.append(_LoopBuilder(self, s).loop())
            elif s.graph is None:
                steps.append(SinCos(calls[s], s.padded_angles))
                self.sizes["given", calls[s]], self.sizes["got", calls[s]] = s.padded_angles, 2 * s.padded_angles
            else:
                steps.append(GraphCall(s.graph, calls[s]))
                self.sizes["given", calls[s]] = len(s.graph.elements)
                self.sizes["got", calls[s]] = sum(map(math.prod, s.graph.shapes.values()))
        _check(self.units.graph, steps)
        counts = tuple(u.count for u in self.units.units if u.kind != "call")
        return RolledGraph(tuple(steps), self.sizes, np.array(self.table, float), counts)

    def assign_loop(self, u: OperationGroup) -> None:
        """Put a unit into the first loop of its length after its operands, or a new one; a call is its own step."""
        if u.kind != "call":
            earliest = max((self.first_step_known(u, k) for k in range(len(u.operands))), default=0)
            if u.first is not None and u.first.unit is not None:
                earliest = max(earliest, u.first.unit.step + 1)
            u.step = next((s for s in self.open_loops.get(u.count, ()) if s >= earliest), -1)
        if u.step < 0:
            u.step = len(self.steps)
            self.steps.append(u if u.kind == "call" else [])
            self.open_loops.setdefault(u.count, []).append(u.step) if u.kind != "call" else None
        loop_units = self.steps[u.step]
        if isinstance(loop_units, list):
            loop_units.append(u)
            if len(loop_units) == MAX_LOOP_OPERATIONS:
                self.open_loops[u.count].remove(u.step)

    def first_step_known(self, u: OperationGroup, k: int) -> int:
        """Return the first step in which an operand is known."""
        o = u.operands[k][0].unit
        if o is None or o.kind == "input":
            return 0
        return o.step if u.is_elementwise(k) else o.step + 1

    def allocate_array(self, u: OperationGroup) -> None:
        """Allocate arrays for operands that come from another loop."""
        array_operands = [
            o.unit
            for k, (o, _) in enumerate(u.operands)
            if not (o.unit and o.unit.step == u.step and u.is_elementwise(k))
        ]
        for o in [*array_operands, u.first.unit if u.first is not None else None]:
            if o is not None and o.kind in ("op", "fold") and not o.array[0]:
                o.array = "value", len(self.sizes)
                self.sizes[o.array] = 1 if o.kind == "fold" else o.count


def _check(graph: Graph, steps: Sequence[ArrayLoop | GraphCall | SinCos]) -> None:
    """Raise CompileError if the loops do not store every element of the outputs."""
    coverage = Coverage(graph.name, graph.shapes)
    for loop in (s for s in steps if isinstance(s, ArrayLoop)):
        stores = [(array_slice, loop.count) for array_slice in loop.writes] + [(fold.to, 1) for fold in loop.reductions]
        for array_slice, count in stores:
            kind, name = array_slice.array
            if kind == "out":
                coverage.note(str(name), array_slice.start + max(1, array_slice.stride) * np.arange(count))
    coverage.check()


class _LoopBuilder:
    """Builder of the body graph of one loop."""

    def __init__(self, making: _Rolling, units: Sequence[OperationGroup]) -> None:
        self.making, self.units, self.tape = making, units, Tape()
        self.reads: dict[ArraySlice, Node] = {}
        self.known: dict[OperationGroup, Value] = {}

    def loop(self) -> ArrayLoop:
        for u in self.units:
            self.known[u] = self.value(u)
        written = [u for u in self.units if u.kind != "fold" and u.array[0]]
        folded = [u for u in self.units if u.kind == "fold"]
        y = np.empty(len(written) + len(folded), dtype=object)
        y[:] = [self.known[u] for u in (*written, *folded)]
        graph = Graph(f"{self.making.units.graph.name}.strip", {"x": (len(self.reads),)}, {"y": y}, self.tape)
        writes = tuple(ArraySlice(u.array, u.start, 1) for u in written)
        folds = tuple(self.reduction(u, len(written) + k) for k, u in enumerate(folded))
        return ArrayLoop(self.units[0].count, graph, tuple(self.reads), writes, folds)

    def reduction(self, u: OperationGroup, element: int) -> LoopReduction:
        assert u.first is not None
        initial_unit = u.first.unit
        return LoopReduction(
            u.shape,
            element,
            u.first.number if initial_unit is None else ArraySlice(initial_unit.array, 0, 0),
            ArraySlice(u.array, 0, 0),
        )

    def value(self, u: OperationGroup) -> Value:
        operands = iter([self.operand(u, k) for k in range(len(u.operands))])
        return next(operands) if u.kind in ("store", "fold") else self.node(u.shape, operands)

    def node(self, shape: Any, operands: Iterator[Value]) -> Node:
        op, *parts = shape
        return self.tape.node(op, *[next(operands) if p is None else self.node(p, operands) for p in parts])

    def operand(self, u: OperationGroup, k: int) -> Value:
        o, _ = u.operands[k]
        if o.unit is None:
            return self.constant(u.numbers[k])
        if o.unit.step == u.step and u.is_elementwise(k):
            return self.known[o.unit]
        return self.read(ArraySlice(o.unit.array, o.place, u.stride(k)))

    def constant(self, numbers: Sequence[float]) -> Value:
        if len({float(x).hex() for x in numbers}) == 1:
            return numbers[0]
        start = len(self.making.table)
        self.making.table.extend(numbers)
        return self.read(ArraySlice(("table", 0), start, 1))

    def read(self, array_slice: ArraySlice) -> Node:
        if array_slice not in self.reads:
            self.reads[array_slice] = self.tape.node("input", "x", len(self.reads))
        return self.reads[array_slice]
