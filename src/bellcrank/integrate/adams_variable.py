"""Adams-Bashforth-Moulton of variable order, 1 to 5, PECE in Nordsieck's form (adams.py).

The memory has z_1 ... z_5, of which those beyond the order k are zero, so that the predictor is the same for every
order. The corrector, the error estimate and the update differ by coefficients only, which are looked up by k. k itself
is a number in the memory: the step does not branch.

    d_k   k-th backward difference of h f at the new time; the last correction is gamma_k-1 d_k
    e_k   |gamma*_k d_k|, the error of the formula of order k

After each step the order changes by one at most, by the rules of Shampine and Gordon:

    lower     e_k-1 and e_k-2 do not exceed e_k, nor e_k-1 the error e_k+1
    raise     e_k+1 is less than e_k; that is known after steps of the same size and order

A run begins with the highest order, from small Runge-Kutta steps. Differences are compared by the root mean square of
their elements, each relative to 1 + |y|.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from bellcrank import scalar
from bellcrank.integrate.adams import (
    GAMMA,
    MOULTON_GAMMA,
    begin_with,
    forecast_of,
    newton_coefficients,
    rescaled,
    split_memory,
)
from bellcrank.integrate.problem import (
    Integrator,
    Problem,
    State,
    Step,
    hermite_polynomial,
    minus,
    plus,
    times,
    weighted_sum,
)
from bellcrank.scalar import Scalar, fabs, where

NAME = "adams"
HIGHEST_ORDER = 5
ORDERS = range(1, HIGHEST_ORDER + 1)
Row = tuple[float, ...]


def _padded(row: Sequence[float]) -> Row:
    return (*row, *[0.0] * (HIGHEST_ORDER - len(row)))


def _leading(order: int, difference: int) -> Row:
    """Return the weights of z_1, z_2, ... in a backward difference of h f at the new time.

    Parameters
    ----------
    order
        Order k of the polynomial.
    difference
        Which difference: k - 1 or k - 2.
    """
    row = [0.0] * HIGHEST_ORDER
    if difference == order - 1:
        row[order - 1] = float(factorial(order))
    elif difference >= 0:
        row[order - 2] = float(factorial(order - 1))
        row[order - 1] = -factorial(order) * difference / 2.0
    else:
        row[0] = 1.0  # there is none: its weight in `_error_squares` is zero
    return tuple(row)


UPDATE = [_padded(newton_coefficients(1, k - 1)) for k in ORDERS]  # by d_k, of the polynomial of order k
# By d_k, from order k to k + 1; the highest order stays. By d_k-1, from order k to k - 1.
RAISE = [*(_padded(newton_coefficients(0, k - 1)) for k in ORDERS if k < HIGHEST_ORDER), _padded(())]
LOWER = [_padded(()), *(_padded(newton_coefficients(0, k - 2)) for k in ORDERS if k > 1)]
ONE_LESS = [_leading(k, k - 1) for k in ORDERS]  # d_k-1
TWO_LESS = [_leading(k, k - 2) for k in ORDERS]  # d_k-2


def looked_up(column: Sequence[float], order: Scalar) -> Scalar:
    """Return the element of `column` that belongs to the `order`, which counts from 1."""
    value: Scalar = column[-1]
    for k in reversed(range(1, len(column))):
        if column[k - 1] != column[k] or not isinstance(value, float):
            value = where(order < k + 0.5, column[k - 1], value)
    return value


def looked_up_row(table: Sequence[Sequence[float]], order: Scalar) -> list[Scalar]:
    """Return the row of `table` that belongs to the `order`."""
    return [looked_up(column, order) for column in zip(*table, strict=True)]


def next_order(order: Scalar, errors: Sequence[Scalar], steady: Scalar) -> tuple[Scalar, Scalar]:
    """Return 1 if the order is raised, and 1 if it is lowered.

    Parameters
    ----------
    order
        Present order k.
    errors
        Squares of the errors of the formulas of orders k - 2, k - 1, k and k + 1.
    steady
        1 if the step before had the same size and order, and enough others before it.
    """
    two_less, one_less, present, one_more = errors
    half = where(order < 2.5, 0.25, 1.0)  # between the lowest orders, an error has to be half as large
    falls = where(one_less <= half * present, where(order < 2.5, 1.0, where(two_less <= present, 1.0, 0.0)), 0.0)
    least = where(one_less <= present, where(one_less <= one_more, steady, 0.0), 0.0)
    lower = where(order > 1.5, where(falls + least > 0.5, 1.0, 0.0), 0.0)
    half = where(order < 1.5, 0.25, 1.0)
    grows = where(one_more < half * present, where(order < HIGHEST_ORDER - 0.5, steady, 0.0), 0.0)
    return where(lower > 0.5, 0.0, grows), lower


def _step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
    n = problem.size
    z, before, (order, steps) = split_memory(problem, memory, HIGHEST_ORDER), memory[-2 - n : -2], memory[-2:]
    scalar.step("predict", NAME)
    predicted, forecast = plus(y, weighted_sum([1.0] * HIGHEST_ORDER, z)), forecast_of(z)
    off = minus(times(h, problem.rate(t + h, predicted)), forecast[0])
    scalar.step("correct", NAME)
    y1 = problem.project(plus(predicted, times(looked_up(GAMMA[:HIGHEST_ORDER], order), off)))
    error = times(looked_up(MOULTON_GAMMA[:HIGHEST_ORDER], order), off)  # Milne's device
    hf1 = times(h, problem.rate(t + h, y1))
    scalar.step("remember", NAME)
    off = minus(hf1, forecast[0])
    new = [plus(row, times(u, off)) for row, u in zip(forecast, looked_up_row(UPDATE, order), strict=True)]
    new[0] = hf1

    scalar.step("order", NAME)
    one_less, two_less = (weighted_sum(looked_up_row(table, order), new) for table in (ONE_LESS, TWO_LESS))
    differences = (two_less, one_less, off, minus(off, before))
    errors = [_square_norm(d, y1) * looked_up(c, order) for d, c in zip(differences, _error_squares(), strict=True)]
    grows, falls = next_order(order, errors, where(steps > order + 0.5, 1.0, 0.0))
    raised, lowered = (looked_up_row(table, order) for table in (RAISE, LOWER))
    next_k = order + grows - falls
    for j, row in enumerate(new):
        if j > 0:
            changed = plus(row, plus(times(grows * raised[j], off), times(-(falls * lowered[j]), one_less)))
            new[j] = [where(next_k > j + 0.5, x, 0.0) for x in changed]
    steps = where(grows + falls > 0.5, 0.0, steps + 1.0)
    dense = hermite_polynomial(y, z[0], y1, hf1, bump=new[3])
    return Step(y1, error, [x for row in (*new, off) for x in row] + [next_k, steps], dense, power=order + 1.0)


def _error_squares() -> list[Row]:
    """Return the squares of gamma* of orders k - 2, k - 1, k and k + 1, by the order k; 0 for orders below 1."""
    squares = [0.0, 0.0, *(c * c for c in MOULTON_GAMMA)]
    return [tuple(squares[k + shift] for k in range(HIGHEST_ORDER)) for shift in range(4)]


def _square_norm(d: State, y: State) -> Scalar:
    parts = [x / (1.0 + fabs(s)) for x, s in zip(d, y, strict=True)]
    return sum((x * x for x in parts[1:]), parts[0] * parts[0])


def _begin(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
    z = begin_with(HIGHEST_ORDER, NAME)(problem, t, y, h)
    return [*z, *[0.0] * problem.size, float(HIGHEST_ORDER), 0.0]


def _rescale(problem: Problem, memory: State, ratio: Scalar) -> State:
    z, (order, steps) = split_memory(problem, memory, HIGHEST_ORDER), memory[-2:]
    steady = where(fabs(ratio - 1.0) > 0.0, 0.0, steps)
    return [*rescaled(problem, z, ratio), *memory[-2 - problem.size : -2], order, steady]


ADAMS = Integrator(
    name=NAME,
    order=HIGHEST_ORDER,
    adaptive=True,
    stiff=False,
    source="L. F. Shampine, M. K. Gordon. Computer Solution of Ordinary Differential Equations: The Initial Value "
    "Problem. Freeman, 1975; A. Nordsieck. On numerical integration of ordinary differential equations. "
    "Mathematics of Computation 16, 22-49, 1962.",
    memory=lambda problem: (HIGHEST_ORDER + 1) * problem.size + 2,
    begin=_begin,
    step=_step,
    rescale=_rescale,
    error_power=HIGHEST_ORDER + 1.0,
)
