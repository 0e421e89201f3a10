"""Integrators: pure steps of dy/dt = f(t, y) over any scalar. Knows nothing of graphs.

Each row is a step of size h; `f` is how often it evaluates f, without what only dense output needs (in a traced step
nobody pays for what nobody reads).

| name     | order | f | error | needs df/dy | dense order | what it is                                   |
|----------|-------|---|-------|-------------|-------------|----------------------------------------------|
| euler    | 1     | 1 | no    | no          | 1           | semi-implicit Euler, symplectic              |
| rk4      | 4     | 4 | no    | no          | 3           | the classical Runge-Kutta method             |
| rkf45    | 4     | 6 | yes   | no          | 3           | Runge-Kutta-Fehlberg; 5 where nobody reads the error |
| dopri5   | 5     | 6 | yes   | no          | 4           | Dormand-Prince 5(4), first same as last      |
"""

from __future__ import annotations

from bellcrank.errors import InputError, unknown
from bellcrank.integrate.dense import interpolate
from bellcrank.integrate.euler import EULER
from bellcrank.integrate.problem import Integrator, Problem, State, Step
from bellcrank.integrate.runge_kutta import explicit
from bellcrank.integrate.tableaus import DORMAND_PRINCE, FEHLBERG, KUTTA

__all__ = ["INTEGRATORS", "Integrator", "Problem", "State", "Step", "integrator", "interpolate"]

INTEGRATORS: dict[str, Integrator] = {
    method.name: method
    for method in (
        EULER,
        explicit(
            "rk4",
            4,
            KUTTA,
            "W. Kutta. Beitrag zur naeherungsweisen Integration totaler Differentialgleichungen. "
            "Zeitschrift fuer Mathematik und Physik 46, 435-453, 1901.",
        ),
        explicit(
            "rkf45",
            4,
            FEHLBERG,
            "E. Fehlberg. Low-order classical Runge-Kutta formulas with stepsize control and their application to some "
            "heat transfer problems. NASA TR R-315, 1969.",
        ),
        explicit(
            "dopri5",
            5,
            DORMAND_PRINCE,
            "J. R. Dormand, P. J. Prince. A family of embedded Runge-Kutta formulae. Journal of Computational and "
            "Applied Mathematics 6(1), 19-26, 1980; dense output: L. F. Shampine. Some practical Runge-Kutta formulas. "
            "Mathematics of Computation 46, 135-150, 1986.",
        ),
    )
}


def integrator(name: str) -> Integrator:
    """The integrator of that name."""
    if name not in INTEGRATORS:
        raise InputError(unknown("integrator", name, INTEGRATORS))
    return INTEGRATORS[name]
