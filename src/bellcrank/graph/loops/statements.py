"""Statements of loops: counted loops, straight-line blocks, calls, and elements of arrays at computed indices.

    Loop(count, counters, carried, body)     counters run by constant steps; carried values go from turn to turn
    Block(graph, reads, writes)              y of the graph from its x; read and written are elements and values
    SinCos(angle_count, angles, ...)         sines and cosines of consecutive elements
    Call(graph, arrays)                      another graph, with the first element of each of its arrays
    Invoke(procedure, numbers)               a procedure: statements that depend on a few integers
    Choose(selector, cases)                  the case of this number, if any

An index is a sum of integers, each a constant times a counter, a parameter, or an entry of a table of integers. All
arrays that are neither inputs nor outputs are memory between the statements, which a target allocates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from bellcrank.graph.graph import Array, Graph, trace
from bellcrank.nodes.node import Value

ArrayName = tuple[str, Any]


@dataclass(frozen=True, eq=False)
class Variable:
    """A counter, a parameter or a value; `name` is a proposal for readers."""

    name: str


class Lookup(NamedTuple):
    """Entry of a table of integers."""

    table: str
    at: Index


class Index(NamedTuple):
    """A sum of a constant and of integers with constant factors."""

    constant: int
    terms: tuple[tuple[int, Variable | Lookup], ...] = ()

    def plus(self, other: Index | int) -> Index:
        """Return the sum with `other`."""
        other = other if isinstance(other, Index) else Index(other)
        factors: dict[Variable | Lookup, int] = {}
        for factor, x in (*self.terms, *other.terms):
            factors[x] = factors.get(x, 0) + factor
        terms = tuple((factor, x) for x, factor in factors.items() if factor)
        return Index(self.constant + other.constant, terms)

    def times(self, number: int) -> Index:
        """Return the product with a `number`."""
        return Index(self.constant * number, tuple((factor * number, x) for factor, x in self.terms if number))


def index_of(x: Variable | Lookup) -> Index:
    """Return the index that is `x`."""
    return Index(0, ((1, x),))


ZERO = Index(0)
LANE = Variable("lane")  # the number of the lane, where the lanes of values are different runs


def at_lane(index: Index, lane: int) -> Index:
    """Return the `index` for one `lane`."""
    total = Index(index.constant)
    for factor, x in index.terms:
        entry = index_of(Lookup(x.table, at_lane(x.at, lane)) if isinstance(x, Lookup) else x)
        total = total.plus((Index(lane) if x is LANE else entry).times(factor))
    return total


def variables_of(index: Index) -> set[Variable]:
    """Return all variables on which the `index` depends."""
    parts = (variables_of(x.at) if isinstance(x, Lookup) else {x} for _, x in index.terms)
    return set[Variable]().union(*parts)


class Element(NamedTuple):
    """Element of an array: ("in", name), ("out", name), ("table", number of a table of constants), or memory."""

    array: ArrayName
    at: Index = ZERO


Operand: TypeAlias = Element | Variable


@dataclass(frozen=True, eq=False)
class Block:
    """Straight-line code: y of the graph from its input x, and the elements of y with the places they go to."""

    graph: Graph
    reads: tuple[Operand, ...]
    writes: tuple[tuple[int, Operand], ...]


class Counter(NamedTuple):
    """Integer that begins a loop at `start` and advances by `step`."""

    variable: Variable
    start: Index
    step: int = 1


class Carried(NamedTuple):
    """Value that is `first` in the first turn, then `last` of the turn before, and `last` behind the loop."""

    variable: Variable
    first: float | Operand
    last: Variable


@dataclass(frozen=True, eq=False)
class Loop:
    """Loop of `count` turns, controlled by the first of its counters.

    It has a turn at least unless it `may_be_empty`. An `independent` loop consists of blocks, has one counter with step
    1, may be empty, and no turn reads what another writes.
    """

    count: Index
    counters: tuple[Counter, ...]
    carried: tuple[Carried, ...]
    body: tuple[Statement, ...]
    may_be_empty: bool = False
    independent: bool = False


class SinCos(NamedTuple):
    """Sines and cosines of consecutive elements; behind them the arrays may be used to fill up vectors."""

    angle_count: int
    angles: Element
    sines: Element
    cosines: Element


class Call(NamedTuple):
    """Call of another graph: the first elements of its inputs, then of its outputs."""

    graph: Graph
    arrays: tuple[Element, ...]

    @classmethod
    def packed(cls, graph: Graph, given: Element, results: Element) -> Call:
        """Return the call of `graph` with all arguments one after the other from `given` on, and so the `results`."""
        arrays = []
        for first, shapes in ((given, graph.inputs), (results, graph.shapes)):
            starts = accumulate(map(math.prod, shapes.values()), initial=0)
            arrays += [Element(first.array, first.at.plus(start)) for start, _ in zip(starts, shapes, strict=False)]
        return cls(graph, tuple(arrays))

    @property
    def result_size(self) -> int:
        """Number of elements of all results."""
        return sum(map(math.prod, self.graph.shapes.values()))


@dataclass(frozen=True, eq=False)
class Procedure:
    """Statements with integers as parameters, which a target makes a function."""

    name: str
    parameters: tuple[Variable, ...]
    body: tuple[Statement, ...]


class Invoke(NamedTuple):
    """Call of a procedure with its parameters."""

    procedure: Procedure
    numbers: tuple[Index, ...] = ()


class Choose(NamedTuple):
    """Call of one of several procedures, by number; of none if there is none of that number."""

    selector: Index
    cases: Mapping[int, Invoke]


Statement: TypeAlias = Loop | Block | SinCos | Call | Invoke | Choose


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """A graph as statements, with the sizes of the memory between them and all tables."""

    body: tuple[Statement, ...]
    memory: Mapping[ArrayName, int]
    constants: Mapping[Any, Array]  # the arrays ("table", key)
    tables: Mapping[str, Array]  # of integers

    @property
    def procedures(self) -> list[Procedure]:
        """All procedures that the statements invoke, each once."""
        return list(dict.fromkeys(s.procedure for s in all_statements(self.body) if isinstance(s, Invoke)))


def all_statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements of `body` and those inside of them, but not those of procedures."""
    for s in body:
        yield s
        if isinstance(s, Loop):
            yield from all_statements(s.body)
        elif isinstance(s, Choose):
            yield from s.cases.values()


def block(name: str, function: Callable[..., Value], reads: Sequence[Operand], *writes: Operand) -> Block:
    """Return the block that writes `function(*reads)` to all `writes`; `name` is that of its graph."""
    graph = trace(name, lambda x: {"y": [function(*x)]}, {"x": (len(reads),)})
    return Block(graph, tuple(reads), tuple((0, to) for to in writes))


def copy(pairs: Sequence[tuple[Operand, Operand]]) -> Block:
    """Return the block that copies the first of each of some `pairs` to the second."""
    graph = trace("copy", lambda x: {"y": list(x)}, {"x": (len(pairs),)})
    return Block(graph, tuple(source for source, _ in pairs), tuple((k, to) for k, (_, to) in enumerate(pairs)))
