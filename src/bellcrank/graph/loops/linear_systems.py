"""Factorisation and substitution (graph/linear_solve.py) as loops."""

from __future__ import annotations

from dataclasses import replace

from bellcrank.graph.linear_solve import LinearSystem, LUFactors
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

ROWS, RECIPROCAL = ("out", "rows"), ("out", "reciprocal")  # results of the factorisation
FACTORS, FACTOR_RECIPROCAL, RIGHT_SIDE, SOLUTION = ("in", "rows"), ("in", "reciprocal"), ("in", "b"), ("out", "x")
UNIT, COLUMN = ("unit", 0), ("column", 0)  # a unit vector, and the result of the linear map for it


def linear_system_loops(system: LinearSystem) -> LoopProgram:
    """Return a step of solving a linear `system` as loops."""
    if isinstance(system, LUFactors):
        body = *_assembly(system), _elimination(system.n)
        return LoopProgram(body, {UNIT: system.n, COLUMN: system.n}, {}, {})
    return LoopProgram(_substitution(system.n), {}, {}, {})


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
