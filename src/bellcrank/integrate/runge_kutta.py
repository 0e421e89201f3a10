"""Explicit Runge-Kutta methods, from their tableaus."""

from __future__ import annotations

from bellcrank import scalar
from bellcrank.integrate.problem import (
    Integrator,
    Problem,
    State,
    Step,
    empty_memory,
    hermite_polynomial,
    plus,
    times,
    weighted_sum,
    zero_memory,
)
from bellcrank.integrate.tableaus import DORMAND_PRINCE, FEHLBERG, KUTTA, Coefficients, Tableau
from bellcrank.scalar import Scalar

LAST_STAGE_WEIGHT = 0.01  # weight of the difference between the last stage and those in the middle of a step


def explicit(name: str, order: int, tableau: Tableau, source: str) -> Integrator:
    """Return the integrator of a tableau. A last stage that equals the next first one is kept and not computed again.

    Parameters
    ----------
    name
        Name of the integrator.
    order
        Its order.
    tableau
        Its coefficients.
    source
        Its publication.
    """
    fsal = tableau.first_same_as_last
    inner = tableau.a[1:-1] if fsal else tableau.a[1:]
    same_time_stages = next(((i, j) for j, c in enumerate(tableau.c) for i in range(1, j) if c == tableau.c[i]), None)

    def step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
        k = [memory if fsal else problem.rate(t, y)]
        for i, (a, c) in enumerate(zip(inner, tableau.c[1:], strict=False), 2):
            scalar.step("stage", str(i))
            k.append(problem.rate(t + c * h, plus(y, _weighted_stages(h, a, k))))
        scalar.step("step", name)
        b = tableau.b[:-1] if fsal else tableau.b
        y1 = problem.project(plus(y, _weighted_stages(h, b, k)))
        f1 = problem.rate(t + h, y1)  # after the projection, because the next step begins at y1
        scalar.step("step", name)
        stages = [*k, f1] if fsal else k
        error = None
        if tableau.embedded is not None:
            error = _weighted_stages(h, tuple(b - e for b, e in zip(tableau.b, tableau.embedded, strict=True)), stages)
        # Two stages at one time differ by O(h^2): h times that is the error of a method of second order. The last
        # stage, at the end of the step, is included with a small weight, because it differs by O(h).
        rough = None
        if same_time_stages is not None and error is None:
            ends = ((k[same_time_stages[1]], k[same_time_stages[0]]), (k[-1], k[same_time_stages[1]]))
            one, other = ([scalar.fabs(x) for x in times(h, plus(a, times(-1.0, b)))] for a, b in ends)
            rough = plus(one, times(LAST_STAGE_WEIGHT, other))
        bump = None if tableau.bump is None else _weighted_stages(h, tableau.bump, [*k, f1])
        return Step(y1, error, f1 if fsal else [], hermite_polynomial(y, times(h, k[0]), y1, times(h, f1), bump), rough)

    def begin(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
        return problem.rate(t, y)

    return Integrator(
        name=name,
        order=order,
        adaptive=tableau.embedded is not None,
        stiff=False,
        source=source,
        memory=(lambda problem: problem.size) if fsal else zero_memory,
        begin=begin if fsal else empty_memory,
        step=step,
    )


def _weighted_stages(h: Scalar, weights: Coefficients, k: list[State]) -> State:
    """Return h sum w_i k_i; the products h w_i are shared by all components."""
    return weighted_sum([0.0 if w == 0.0 else h * w for w in weights], k)


RK4 = explicit(
    "rk4",
    4,
    KUTTA,
    "W. Kutta. Beitrag zur naeherungsweisen Integration totaler Differentialgleichungen. "
    "Zeitschrift fuer Mathematik und Physik 46, 435-453, 1901.",
)
RKF45 = explicit(
    "rkf45",
    4,
    FEHLBERG,
    "E. Fehlberg. Low-order classical Runge-Kutta formulas with stepsize control and their application to some "
    "heat transfer problems. NASA TR R-315, 1969.",
)
DOPRI5 = explicit(
    "dopri5",
    5,
    DORMAND_PRINCE,
    "J. R. Dormand, P. J. Prince. A family of embedded Runge-Kutta formulae. Journal of Computational and "
    "Applied Mathematics 6(1), 19-26, 1980; dense output: L. F. Shampine. Some practical Runge-Kutta formulas. "
    "Mathematics of Computation 46, 135-150, 1986.",
)
