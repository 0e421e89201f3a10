"""Adams-Bashforth-Moulton of order 4, predict - evaluate - correct - evaluate, in Nordsieck's form.

The memory is not the last four rates but the cubic through them, as the scaled derivatives

    z_k = h^k y^(k) / k!,  k = 1 ... 4,

so that a change of the step size is a multiplication: z_k (ratio)^k. While h stays the same the numbers are those of
the classical formulas

    p  = y + h/24 (55 f_n - 59 f_n-1 + 37 f_n-2 - 9 f_n-3)      Bashforth
    y1 = y + h/24 (9 f(t + h, p) + 19 f_n - 5 f_n-1 + f_n-2)    Moulton

since Taylor's series of the cubic is p, and the corrector differs from p by 3/8 of the error of the predicted rate.
"""

from __future__ import annotations

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

ORDER = 4
CORRECTOR_COEFFICIENT = 3 / 8
# The new cubic is the old one plus (h f1 - its forecast) (s + 1)(s + 2)(s + 3)/6, which is 1 at the new time, s = 0,
# and 0 at the three before; these are its coefficients, integrated term by term.
UPDATE_COEFFICIENTS = (1.0, 11 / 12, 1 / 3, 1 / 24)
# The corrector's error as a part of (corrected - predicted): -19/720 against 251/720 + 19/720.
MILNE_ERROR_COEFFICIENT = -19 / 270
# z_k / h of the cubic through the rates at 0, h/3, 2h/3 and h.
START_COEFFICIENTS = (
    (1.0, 0.0, 0.0, 0.0),
    (-11 / 4, 9 / 2, -9 / 4, 1 / 2),
    (3.0, -15 / 2, 6.0, -3 / 2),
    (-9 / 8, 27 / 8, -27 / 8, 9 / 8),
)


def _begin(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
    """Return the cubic through the rates of three small Runge-Kutta steps, within the first step.

    The small steps go forward, because a run may begin at an event, before which another law held.
    """
    small = h * (1 / 3)
    rates = [problem.rate(t, y)]
    for i in range(3):
        y = RK4.step(problem, t + i * small, y, small, []).y
        rates.append(problem.rate(t + (i + 1) * small, y))
    scalar.step("begin", "abm4")
    return [x for row in START_COEFFICIENTS for x in times(h, weighted_sum(row, rates))]


def _step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
    n = problem.size
    z1, z2, z3, z4 = (memory[k * n : (k + 1) * n] for k in range(ORDER))
    scalar.step("predict", "abm4")
    # Taylor's series at t + h: Pascal's triangle.
    predicted = plus(y, weighted_sum([1.0, 1.0, 1.0, 1.0], [z1, z2, z3, z4]))
    forecast = [
        weighted_sum([1.0, 2.0, 3.0, 4.0], [z1, z2, z3, z4]),
        weighted_sum([1.0, 3.0, 6.0], [z2, z3, z4]),
        weighted_sum([1.0, 4.0], [z3, z4]),
        z4,
    ]
    off = minus(times(h, problem.rate(t + h, predicted)), forecast[0])
    scalar.step("correct", "abm4")
    correction = times(CORRECTOR_COEFFICIENT, off)
    y1 = problem.project(plus(predicted, correction))
    hf1 = times(h, problem.rate(t + h, y1))
    scalar.step("remember", "abm4")
    off = minus(hf1, forecast[0])
    z = [hf1, *(plus(z, times(u, off)) for z, u in zip(forecast[1:], UPDATE_COEFFICIENTS[1:], strict=True))]
    dense = hermite_polynomial(y, z1, y1, hf1, bump=z[3])
    return Step(y1, times(MILNE_ERROR_COEFFICIENT, correction), [x for row in z for x in row], dense)


def _rescale(problem: Problem, memory: State, ratio: Scalar) -> State:
    n, power, scaled = problem.size, 1.0, []
    for k in range(ORDER):
        power = power * ratio
        scaled += times(power, memory[k * n : (k + 1) * n])
    return scaled


ABM4 = Integrator(
    name="abm4",
    order=ORDER,
    adaptive=True,
    stiff=False,
    source="F. R. Moulton. New Methods in Exterior Ballistics. University of Chicago Press, 1926; "
    "W. E. Milne. Numerical integration of ordinary differential equations. American Mathematical Monthly 33, "
    "455-460, 1926; A. Nordsieck. On numerical integration of ordinary differential equations. "
    "Mathematics of Computation 16, 22-49, 1962.",
    memory=lambda problem: ORDER * problem.size,
    begin=_begin,
    step=_step,
    rescale=_rescale,
)
