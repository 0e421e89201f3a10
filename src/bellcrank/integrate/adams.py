"""Adams-Bashforth-Moulton of orders 2 and 4, predict - evaluate - correct - evaluate, in Nordsieck's form.

The memory is not the last k rates but the polynomial through them, as the scaled derivatives

    z_j = h^j y^(j) / j!,  j = 1 ... k,

so that a change of the step size is a multiplication: z_j (ratio)^j. While h stays the same the numbers are those of
the classical formulas, for k = 4 and k = 2

    p  = y + h/24 (55 f_n - 59 f_n-1 + 37 f_n-2 - 9 f_n-3)      p  = y + h/2 (3 f_n - f_n-1)          Bashforth
    y1 = y + h/24 (9 f(t + h, p) + 19 f_n - 5 f_n-1 + f_n-2)    y1 = y + h/2 (f(t + h, p) + f_n)      Moulton

since Taylor's series of the polynomial is p, and the corrector differs from p by gamma_k-1 times the error of the
predicted rate. That error is the k-th backward difference of h f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, factorial, prod

from bellcrank import scalar
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
from bellcrank.integrate.runge_kutta import RK4
from bellcrank.scalar import Scalar

# Constants of the error of Bashforth's formulas of orders 0, 1, ..., and of Moulton's of orders 1, 2, ...: what is left
# of h y' is gamma_k times the k-th backward difference.
GAMMA = (1.0, 1 / 2, 5 / 12, 3 / 8, 251 / 720, 95 / 288)
MOULTON_GAMMA = (-1 / 2, -1 / 12, -1 / 24, -19 / 720, -3 / 160, -863 / 60480)


def product_coefficients(roots: Sequence[Fraction], divisor: Fraction) -> tuple[float, ...]:
    """Return the coefficients of s^0, s^1, ... of the product of all (s - root) over the divisor, each integrated.

    The polynomial is one of h y', and the results are what it contributes to z_1, z_2, ...

    Parameters
    ----------
    roots
        Zeros of the polynomial.
    divisor
        Divisor of the product.
    """
    product = [Fraction(1)]
    for root in roots:
        product = [a - root * b for a, b in zip([Fraction(0), *product], [*product, Fraction(0)], strict=True)]
    return tuple(float(x / divisor / (j + 1)) for j, x in enumerate(product))


def newton_coefficients(first: int, last: int) -> tuple[float, ...]:
    """Return what a unit of a backward difference adds to z_1, z_2, ..., where s = 0 is the new time.

    It stands in Newton's form of the polynomial h y' with the factor (s + first) ... (s + last) / (last + 1 - first)!.

    Parameters
    ----------
    first, last
        The numbers of the first and of the last factor.
    """
    return product_coefficients([Fraction(-i) for i in range(first, last + 1)], Fraction(factorial(last + 1 - first)))


def start_coefficients(order: int) -> tuple[tuple[float, ...], ...]:
    """Return z_1 / h, z_2 / h, ... of the polynomial through the rates at `order` equal distances from 0 to h."""
    nodes = [Fraction(i, order - 1) for i in range(order)]
    columns = [
        product_coefficients(
            [x for x in nodes if x != node], prod((node - x for x in nodes if x != node), start=Fraction(1))
        )
        for node in nodes
    ]
    return tuple(zip(*columns, strict=True))


def begin_with(order: int, name: str) -> Callable[[Problem, Scalar, State, Scalar], State]:
    """Return the function that makes the first memory of a method called `name` of that `order`.

    The polynomial goes through the rates of small Runge-Kutta steps within the first step. They go forward, because a
    run may begin at an event, before which another law held.
    """
    rows = start_coefficients(order)

    def begin(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
        small = h * (1 / (order - 1))
        rates = [problem.rate(t, y)]
        for i in range(order - 1):
            y = RK4.step(problem, t + i * small, y, small, []).y
            rates.append(problem.rate(t + (i + 1) * small, y))
        scalar.step("begin", name)
        return [x for row in rows for x in times(h, weighted_sum(row, rates))]

    return begin


def split_memory(problem: Problem, memory: State, order: int) -> list[State]:
    """Return z_1 ... z_k of a `memory` of that `order`, for this `problem`."""
    n = problem.size
    return [memory[k * n : (k + 1) * n] for k in range(order)]


def forecast_of(z: list[State]) -> list[State]:
    """Return the scaled derivatives `z` at the end of the step: Taylor's series, by Pascal's triangle."""
    return [weighted_sum([float(comb(j, i)) for j in range(i, len(z) + 1)], z[i - 1 :]) for i in range(1, len(z) + 1)]


def rescaled(problem: Problem, z: list[State], ratio: Scalar) -> State:
    """Return the scaled derivatives `z` for a step size times `ratio`, in one list, for any `problem`."""
    power, scaled = 1.0, []
    for row in z:
        power = power * ratio
        scaled += times(power, row)
    return scaled


def adams_method(order: int, source: str) -> Integrator:
    """Return the predictor-corrector method of that `order`, published in `source`."""
    name, update = f"abm{order}", newton_coefficients(1, order - 1)

    def step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
        z = split_memory(problem, memory, order)
        scalar.step("predict", name)
        predicted, forecast = plus(y, weighted_sum([1.0] * order, z)), forecast_of(z)
        off = minus(times(h, problem.rate(t + h, predicted)), forecast[0])
        scalar.step("correct", name)
        y1 = problem.project(plus(predicted, times(GAMMA[order - 1], off)))
        error = times(MOULTON_GAMMA[order - 1], off)  # Milne's device
        hf1 = times(h, problem.rate(t + h, y1))
        scalar.step("remember", name)
        off = minus(hf1, forecast[0])
        new = [hf1, *(plus(row, times(u, off)) for row, u in zip(forecast[1:], update[1:], strict=True))]
        dense = hermite_polynomial(y, z[0], y1, hf1, bump=new[3] if order > 3 else None)
        return Step(y1, error, [x for row in new for x in row], dense)

    return Integrator(
        name=name,
        order=order,
        adaptive=True,
        stiff=False,
        source=source,
        memory=lambda problem: order * problem.size,
        begin=begin_with(order, name),
        step=step,
        rescale=lambda problem, memory, ratio: rescaled(problem, split_memory(problem, memory, order), ratio),
        error_power=order + 1.0,
    )


SOURCE = (
    "F. R. Moulton. New Methods in Exterior Ballistics. University of Chicago Press, 1926; "
    "W. E. Milne. Numerical integration of ordinary differential equations. American Mathematical Monthly 33, "
    "455-460, 1926; A. Nordsieck. On numerical integration of ordinary differential equations. "
    "Mathematics of Computation 16, 22-49, 1962."
)
ABM2, ABM4 = adams_method(2, SOURCE), adams_method(4, SOURCE)
