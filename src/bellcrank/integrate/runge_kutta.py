"""Explicit Runge-Kutta methods, from their tableaus."""

from __future__ import annotations

from bellcrank import scalar
from bellcrank.integrate.problem import (
    Integrator,
    Problem,
    State,
    Step,
    begin_with_nothing,
    hermite,
    no_memory,
    plus,
    times,
    weighted,
)
from bellcrank.integrate.tableaus import DORMAND_PRINCE, FEHLBERG, KUTTA, Numbers, Tableau
from bellcrank.scalar import Scalar

LAST = 0.01  # weight of the difference between the last stage and those in the middle of a step


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
    twice = next(((i, j) for j, c in enumerate(tableau.c) for i in range(1, j) if c == tableau.c[i]), None)

    def step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
        k = [memory if fsal else problem.rate(t, y)]
        for i, (a, c) in enumerate(zip(inner, tableau.c[1:], strict=False), 2):
            scalar.step("stage", str(i))
            k.append(problem.rate(t + c * h, plus(y, _sum(h, a, k))))
        scalar.step("step", name)
        b = tableau.b[:-1] if fsal else tableau.b
        y1 = problem.project(plus(y, _sum(h, b, k)))
        f1 = problem.rate(t + h, y1)  # after the projection, because the next step begins at y1
        scalar.step("step", name)
        stages = [*k, f1] if fsal else k
        error = None
        if tableau.embedded is not None:
            error = _sum(h, tuple(b - e for b, e in zip(tableau.b, tableau.embedded, strict=True)), stages)
        # Two stages at one time differ by O(h^2): h times that is the error of a method of second order. The last
        # stage, at the end of the step, is included with a small weight, because it differs by O(h).
        rough = None
        if twice is not None and error is None:
            ends = ((k[twice[1]], k[twice[0]]), (k[-1], k[twice[1]]))
            one, other = ([scalar.fabs(x) for x in times(h, plus(a, times(-1.0, b)))] for a, b in ends)
            rough = plus(one, times(LAST, other))
        bump = None if tableau.bump is None else _sum(h, tableau.bump, [*k, f1])
        return Step(y1, error, f1 if fsal else [], hermite(y, times(h, k[0]), y1, times(h, f1), bump), rough)

    def begin(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
        return problem.rate(t, y)

    return Integrator(
        name=name,
        order=order,
        adaptive=tableau.embedded is not None,
        stiff=False,
        source=source,
        memory=(lambda problem: problem.size) if fsal else no_memory,
        begin=begin if fsal else begin_with_nothing,
        step=step,
    )


def _sum(h: Scalar, weights: Numbers, k: list[State]) -> State:
    """Return h sum w_i k_i; the products h w_i are shared by all components."""
    return weighted([0.0 if w == 0.0 else h * w for w in weights], k)


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
