"""Loop rolling for array-like graphs, such as the step of an integrator over a thousand coordinates.

Units (grouped operations) of equal length that depend on each other element by element, with nothing else in between,
form one Loop. A single operation is a unit of length one, so any graph becomes a list of loops and calls.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.graph.graph import Coverage, Graph, value_array
from bellcrank.graph.loop_grouping import ArrayName, OperationGroup, UnitList
from bellcrank.graph.loop_levels import GraphLevels
from bellcrank.graph.loops.statements import (
    ZERO,
    Block,
    Call,
    Carried,
    Counter,
    Element,
    Index,
    Invoke,
    Loop,
    LoopProgram,
    Operand,
    Procedure,
    SinCos,
    Statement,
    Variable,
    all_statements,
    block,
    copy,
    index_of,
)
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import maximum, minimum

MAX_LOOP_OPERATIONS = 400  # operations in one loop body
REDUCTIONS: dict[str, Callable[..., Any]] = {"add": operator.add, "maximum": maximum, "minimum": minimum}


@dataclass(frozen=True, eq=False)
class RolledGraph:
    """A graph rolled into loops.

    The memory of its program is ("given", k) and ("got", k), the flat arguments and results of call k, and ("value", k)
    between two loops. `counts` are the elements of each unit.
    """

    program: LoopProgram
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
        body: list[Statement] = []
        for k, s in enumerate(self.steps):
            if isinstance(s, list):
                body.append(Invoke(Procedure(f"strip_{k}", (), _LoopBuilder(self, s).statements())))
                continue
            given, got = Element(("given", calls[s])), Element(("got", calls[s]))
            if s.graph is None:
                n = s.padded_angles
                self.sizes |= {given.array: n, got.array: 2 * n}
                body.append(SinCos(n, given, got, Element(got.array, Index(n))))
            else:
                call = Call.packed(s.graph, given, got)
                self.sizes |= {given.array: len(s.graph.elements), got.array: call.result_size}
                body.append(call)
        program = LoopProgram(tuple(body), self.sizes, {0: np.array(self.table, float)} if self.table else {}, {})
        _check(self.units.graph, program)
        return RolledGraph(program, tuple(u.count for u in self.units.units if u.kind != "call"))

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

    @staticmethod
    def is_inside(u: OperationGroup, k: int) -> bool:
        """Return whether operand `k` is computed in the same turn of the same loop."""
        o = u.operands[k][0].unit
        return o is not None and o.step == u.step and u.is_elementwise(k)

    def allocate_array(self, u: OperationGroup) -> None:
        """Allocate arrays for operands that come from another loop."""
        read = [o.unit for k, (o, _) in enumerate(u.operands) if not self.is_inside(u, k)]
        for o in [*read, u.first.unit if u.first is not None else None]:
            if o is not None and o.kind in ("op", "fold") and not o.array[0]:
                o.array = "value", len(self.sizes)
                self.sizes[o.array] = 1 if o.kind == "fold" else o.count


def _check(graph: Graph, program: LoopProgram) -> None:
    """Raise CompileError if the loops do not store every element of the outputs."""
    coverage = Coverage(graph.name, graph.shapes)
    for procedure in program.procedures:
        turns = 1
        for s in all_statements(procedure.body):
            if isinstance(s, Loop):
                turns = s.count.constant
            for x in (x for _, x in s.writes if isinstance(x, Element)) if isinstance(s, Block) else ():
                (kind, name), stride = x.array, sum(factor for factor, _ in x.at.terms)
                if kind == "out":
                    coverage.note(str(name), x.at.constant + stride * np.arange(turns if stride else 1))
    coverage.check()


class _LoopBuilder:
    """Builder of one loop, with the graph of its body."""

    def __init__(self, making: _Rolling, units: Sequence[OperationGroup]) -> None:
        self.making, self.units, self.tape, self.i = making, units, Tape(), Variable("i")
        self.reads: dict[Element, Node] = {}
        self.known: dict[OperationGroup, Value] = {}

    def statements(self) -> tuple[Statement, ...]:
        for u in self.units:
            self.known[u] = self.value(u)
        written = [u for u in self.units if u.kind != "fold" and u.array[0]]
        reduced = [u for u in self.units if u.kind == "fold"]
        y = value_array([self.known[u] for u in (*written, *reduced)])
        graph = Graph(f"{self.making.units.graph.name}.strip", {"x": (len(self.reads),)}, {"y": y}, self.tape)
        terms = [Variable("t") for _ in reduced]
        places: list[Operand] = [*(self.element(u.array, u.start, 1) for u in written), *terms]
        body, carried, stores = [Block(graph, tuple(self.reads), tuple(enumerate(places)))], [], []
        for u, term in zip(reduced, terms, strict=True):
            assert u.first is not None
            initial_unit, total, last = u.first.unit, Variable("c"), Variable("t")
            first = u.first.number if initial_unit is None else Element(initial_unit.array)
            body.append(block("reduction", REDUCTIONS[u.shape], (total, term), last))
            carried.append(Carried(total, first, last))
            stores.append(copy([(total, Element(u.array))]))
        count = Index(self.units[0].count)
        return Loop(count, (Counter(self.i, ZERO),), tuple(carried), tuple(body)), *stores

    def element(self, array: ArrayName, start: int, stride: int) -> Element:
        return Element(array, index_of(self.i).times(stride).plus(start))

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
        if self.making.is_inside(u, k):
            return self.known[o.unit]
        return self.read(self.element(o.unit.array, o.place, u.stride(k)))

    def constant(self, numbers: Sequence[float]) -> Value:
        if len({float(x).hex() for x in numbers}) == 1:
            return numbers[0]
        start = len(self.making.table)
        self.making.table.extend(numbers)
        return self.read(self.element(("table", 0), start, 1))

    def read(self, element: Element) -> Node:
        if element not in self.reads:
            self.reads[element] = self.tape.node("input", "x", len(self.reads))
        return self.reads[element]
