"""The implicit midpoint rule: y1 = y + h f(t + h/2, (y + y1)/2). Second order, conserves quadratic invariants.

A rotation of the result is that of the start, turned by the Cayley map of h w, where w is the angular velocity at the
midpoint, and not the sum of quaternions. The rule turns an angular momentum in body axes by the map of -h w, so that it
is constant in the world.

The midpoint is found by a fixed number of Newton steps with df/dy at the beginning. Each gains a factor O(h^2), so that
four leave an error of O(h^9) beside the O(h^3) of the rule itself; on a linear system the first is already exact.
"""

from __future__ import annotations

from bellcrank import scalar
from bellcrank.integrate.linear_solver import implicit_solver
from bellcrank.integrate.problem import (
    Integrator,
    Problem,
    State,
    Step,
    hermite_polynomial,
    minus,
    plus,
    times,
)
from bellcrank.scalar import Scalar

NEWTON_STEPS = 4


def _step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
    half = 0.5 * h
    jacobian, _ = problem.linearised(t, y, "midpoint")
    scalar.step("W", "midpoint")
    w = (problem.implicit or implicit_solver)(jacobian, half)
    middle = last = y
    for i in range(NEWTON_STEPS):
        f = problem.rate(t + half, middle)
        scalar.step("newton", str(i + 1))
        last = w.solve(plus(minus(y, middle), times(half, f)))
        middle = plus(middle, last)
    y1 = [2.0 * m - a for m, a in zip(middle, y, strict=True)]
    if problem.rolled is not None:
        q, _, _ = problem.split(y)
        _, v, _ = problem.split(middle)
        y1[: problem.nq] = problem.rolled(q, y1[: problem.nq], times(h, v))
    y1 = problem.project(y1)
    dense = hermite_polynomial(y, times(h, problem.rate(t, y)), y1, times(h, problem.rate(t + h, y1)))
    return Step(y1, None, [], dense, rough=[scalar.fabs(2.0 * x) for x in last])  # the last Newton step


MIDPOINT = Integrator(
    name="midpoint",
    order=2,
    adaptive=False,
    stiff=True,
    source="E. Hairer, C. Lubich, G. Wanner. Geometric Numerical Integration. Springer, 2006, II.1.",
    step=_step,
)
