"""LU factorisation and substitution for linear systems of any size, as graphs that targets emit as loops.

    Factors(map)    rows (n, n) and reciprocal (n): L U of the matrix of a linear map, column by column
    Substitution    x (n) from rows, reciprocal and a right-hand side b

Rows hold L below the diagonal (its diagonal is one) and U on and above it; the diagonal of U is stored as reciprocals.
There is no pivoting. Written out, the factorisation is n^3/3 multiplications, each an operation of its own; targets
that support these graphs emit three nested loops instead. The property `nodes` writes them out, up to a limit.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.graph.graph import Array, Count, Graph, Shape, structure, trace
from bellcrank.graph.inline import without_calls
from bellcrank.graph.interpreter import checked_inputs, operation_costs
from bellcrank.graph.loop_graph import LoopGraph
from bellcrank.graph.loops.statements import (
    Call,
    Carried,
    Counter,
    Element,
    Index,
    Loop,
    LoopProgram,
    Statement,
    Variable,
    block,
    copy,
    index_of,
)
from bellcrank.nodes.ops import KINDS


class LinearSystem(LoopGraph):
    """Base of the two steps of solving n equations."""

    n: int
    other_ways = "Loops are available for runs on the CPU and for C. Use an explicit integrator, or fewer bodies."

    def write_out(self) -> Graph:
        """Return the equivalent graph of nodes, however large."""
        return without_calls(trace(self.name, self._body, self.inputs))

    @abstractmethod
    def _body(self, **given: Any) -> dict[str, Any]:
        """Return the outputs for the inputs, in any scalars."""

    @property
    def extent(self) -> str:
        """Number of equations, for messages."""
        return f"{self.n} equations"

    @property
    def widest(self) -> int:
        """Number of elements of the largest array."""
        return self.n * self.n

    def code_key(self, known: dict[int, Any]) -> tuple[Any, ...]:
        """Return the kind of step and its size; `known` as in `structure`."""
        return type(self).__name__, self.n, ()


class LUFactors(LinearSystem):
    """LU factors of the matrix of a linear map.

    `linear_map` is a graph that is linear in its input `along` and has as many results as that input has elements.
    """

    def __init__(self, name: str, linear_map: Graph, along: str) -> None:
        inputs = {x: shape for x, shape in linear_map.inputs.items() if x != along}
        n = math.prod(linear_map.inputs[along])
        results: dict[str, Shape] = {"rows": (n, n), "reciprocal": (n,)}
        super().__init__(name, inputs, results, linear_map=linear_map, along_input=along, n=n)

    linear_map: Graph
    along_input: str

    @property
    def within(self) -> list[Graph]:
        """The graph of the linear map, which the loops call."""
        return [self.linear_map]

    def loops(self) -> LoopProgram:
        """Return the factorisation as nested loops, with the columns of the matrix in memory one after the other."""
        return LoopProgram((*_assembly(self), _elimination(self.n)), {UNIT: self.n, COLUMN: self.n}, {}, {})

    def code_key(self, known: dict[int, Any]) -> tuple[Any, ...]:
        """Return the kind of step, its size, and the map; `known` as in `structure`."""
        return type(self).__name__, self.n, (structure(self.linear_map, known), self.along_input)

    def _body(self, **given: Any) -> dict[str, Any]:
        """Trace the factorisation; the matrix of a linear map is its Jacobian, where zeros cost nothing."""
        linear_map = without_calls(self.linear_map)
        (output,) = linear_map.outputs
        slope = linear_map.jacobian(output, self.along_input, "forward")
        (matrix,) = slope.call(**given, **{self.along_input: [0.0] * self.n}).values()
        rows, reciprocal = lu_factors(matrix.reshape(self.n, self.n).tolist())
        return {"rows": rows, "reciprocal": reciprocal}

    def evaluate(self, **values: Any) -> dict[str, Array]:
        """Factorise with numpy; `values` are the inputs of the map except the linear one."""
        arrays = _reshape_inputs(checked_inputs(self.name, self.inputs, values), self.inputs)
        columns = [
            next(iter(self.linear_map.evaluate(**arrays, **{self.along_input: e}).values())) for e in np.eye(self.n)
        ]
        rows = np.stack(columns, axis=-1)
        reciprocal = np.empty(rows.shape[:-1])
        with np.errstate(all="ignore"):
            for k in range(self.n):
                reciprocal[..., k] = 1.0 / rows[..., k, k]
                rows[..., k + 1 :, k] *= reciprocal[..., k, None]
                rows[..., k + 1 :, k + 1 :] -= rows[..., k + 1 :, k, None] * rows[..., k, None, k + 1 :]
        return {"rows": rows, "reciprocal": reciprocal}

    def count(self) -> Count:
        """Count the operations of the factorisation."""
        elimination = self._elimination_count
        return Count(
            {kind: self.n * c + elimination.get(kind, 0) for kind, c in self.linear_map.count().by_kind.items()}
        )

    @property
    def _elimination_count(self) -> dict[str, int]:
        below = range(self.n)
        return {"div": self.n, "mul": sum(k + k * k for k in below), "sub": sum(k * k for k in below)}

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        w = operation_costs(cost)
        return self.n * self.linear_map.work(cost) + sum(w[kind] * c for kind, c in self._elimination_count.items())

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the length of the longest dependent path; `cost` is by operation name."""
        w = operation_costs(cost)
        return self.linear_map.span(cost) + self.n * w["div"] + (self.n - 1) * (2 * w["mul"] + w["sub"])


class Substitution(LinearSystem):
    """Solution of n linear equations whose LU factors are known."""

    def __init__(self, name: str, n: int) -> None:
        inputs: dict[str, Shape] = {"rows": (n, n), "reciprocal": (n,), "b": (n,)}
        super().__init__(name, inputs, {"x": (n,)}, n=n)

    def loops(self) -> LoopProgram:
        """Return the substitution as nested loops."""
        return LoopProgram(_substitution(self.n), {}, {}, {})

    def _body(self, **given: Any) -> dict[str, Any]:
        rows, reciprocal = given["rows"], given["reciprocal"]
        x, n = list(given["b"]), self.n
        for i in range(n):
            for j in range(i):
                x[i] = x[i] - rows[i][j] * x[j]
        for i in reversed(range(n)):
            for j in reversed(range(i + 1, n)):  # in the order in which they become known
                x[i] = x[i] - rows[i][j] * x[j]
            x[i] = x[i] * reciprocal[i]
        return {"x": x}

    def evaluate(self, **values: Any) -> dict[str, Array]:
        """Solve with numpy; `values` are rows, reciprocal and b."""
        arrays = _reshape_inputs(checked_inputs(self.name, self.inputs, values), self.inputs)
        rows, reciprocal, b = arrays["rows"], arrays["reciprocal"], arrays["b"]
        x = np.array(np.broadcast_to(b, np.broadcast_shapes(b.shape, rows.shape[:-1], reciprocal.shape)))
        with np.errstate(all="ignore"):
            for i in range(self.n):
                x[..., i] -= (rows[..., i, :i] * x[..., :i]).sum(axis=-1)
            for i in reversed(range(self.n)):
                x[..., i] -= (rows[..., i, i + 1 :] * x[..., i + 1 :]).sum(axis=-1)
                x[..., i] *= reciprocal[..., i]
        return {"x": x}

    def count(self) -> Count:
        """Count the operations of the substitution."""
        n = self.n
        return Count(dict.fromkeys(KINDS, 0) | {"mul": n * n, "sub": n * (n - 1)})

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        w = operation_costs(cost)
        return self.n * self.n * w["mul"] + self.n * (self.n - 1) * w["sub"]

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the length of the longest dependent path; `cost` is by operation name."""
        w = operation_costs(cost)
        return 2 * (self.n - 1) * (w["mul"] + w["sub"]) + self.n * w["mul"]


def lu_factors(matrix: Sequence[Sequence[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """Factorise a `matrix` of any scalars; return the rows of L and U and the reciprocals of the pivots."""
    rows, reciprocal = [list(row) for row in matrix], list[Any]()
    for k, pivot in enumerate(rows):
        reciprocal.append(1.0 / pivot[k])
        for row in rows[k + 1 :]:
            row[k] = row[k] * reciprocal[k]
            for j in range(k + 1, len(rows)):
                row[j] = row[j] - row[k] * pivot[j]
    return rows, reciprocal


def _reshape_inputs(arrays: Mapping[str, Array], shapes: Mapping[str, Shape]) -> dict[str, Array]:
    return {name: a.reshape((*a.shape[:-1], *shapes[name])) for name, a in arrays.items()}


ROWS, RECIPROCAL = ("out", "rows"), ("out", "reciprocal")  # results of the factorisation
FACTORS, FACTOR_RECIPROCAL, RIGHT_SIDE, SOLUTION = ("in", "rows"), ("in", "reciprocal"), ("in", "b"), ("out", "x")
UNIT, COLUMN = ("unit", 0), ("column", 0)  # a unit vector, and the result of the linear map for it


def _up(variable: Variable, count: Index | int, *body: Statement, start: Index | int = 0) -> Loop:
    """Return the loop over all values of `variable` from `start` up to `count`, which may be none."""
    return _counted(Counter(variable, _index(start)), _index(count).plus(_index(start).times(-1)), *body)


def _counted(counter: Counter, count: Index, *body: Statement, carried: tuple[Carried, ...] = ()) -> Loop:
    return Loop(count, (counter,), carried, body, may_be_empty=bool(count.terms))


def _index(x: Index | int) -> Index:
    return x if isinstance(x, Index) else Index(x)


def _assembly(factors: LUFactors) -> tuple[Statement, ...]:
    """Evaluate the linear map for all unit vectors, and store the results as columns of the matrix."""
    n, i, j = factors.n, Variable("i"), Variable("j")
    unit, column = Element(UNIT, index_of(j)), Element(COLUMN, index_of(i))
    arrays = [Element(UNIT if x == factors.along_input else ("in", x)) for x in factors.linear_map.inputs]
    set_to_zero, set_to_one = block("zero", lambda: 0.0, (), unit), block("one", lambda: 1.0, (), unit)
    call = Call(factors.linear_map, (*arrays, Element(COLUMN)))
    store = _up(i, n, copy([(column, Element(ROWS, index_of(i).times(n).plus(index_of(j))))]))
    return _up(j, n, set_to_zero), _up(j, n, set_to_one, call, set_to_zero, store)


def _elimination(n: int) -> Statement:
    """Subtract multiples of each row from those below it."""
    i, j, k, r, f, z = (Variable(x) for x in "ijkrfz")

    def element(row: Variable, column: Variable) -> Element:
        return Element(ROWS, index_of(row).times(n).plus(index_of(column)))

    next_one = index_of(k).plus(1)
    pivot = block("pivot", lambda x: 1.0 / x, (element(k, k),), Element(RECIPROCAL, index_of(k)), r)
    factor = block("factor", lambda x, y: x * y, (element(i, k), r), element(i, k), f)
    # two blocks, so that the product is rounded, as in numpy
    product = block("product", lambda x, y: x * y, (f, element(k, j)), z)
    entry = block("entry", lambda x, y: x - y, (element(i, j), z), element(i, j))
    row = _up(i, n, factor, replace(_up(j, n, product, entry, start=next_one), independent=True), start=next_one)
    return _up(k, n, pivot, row)


def _substitution(n: int) -> tuple[Statement, ...]:
    """Solve for L forwards, then for U backwards, with the terms in the order in which they become known."""

    i, j, total, new, z = (Variable(x) for x in "ijrtz")
    x, entry = Element(SOLUTION, index_of(i)), Element(FACTORS, index_of(i).times(n).plus(index_of(j)))
    b, reciprocal = Element(RIGHT_SIDE, index_of(i)), Element(FACTOR_RECIPROCAL, index_of(i))
    product = block("product", lambda x, y: x * y, (entry, Element(SOLUTION, index_of(j))), z)
    difference = block("difference", lambda x, y: x - y, (total, z), new)

    def sum_of_terms(counter: Counter, count: Index, first: Element) -> Loop:
        return _counted(counter, count, product, difference, carried=(Carried(total, first, new),))

    before = sum_of_terms(Counter(j, Index(0)), index_of(i), b)
    after = sum_of_terms(Counter(j, Index(n - 1), -1), Index(n - 1).plus(index_of(i).times(-1)), x)
    scaled = block("scaled", lambda x, y: x * y, (total, reciprocal), x)
    return _up(i, n, before, copy([(total, x)])), _counted(Counter(i, Index(n - 1), -1), Index(n), after, scaled)
