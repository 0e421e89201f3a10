"""Integrators: pure steps of dy/dt = f(t, y) over any scalar, independent of graphs.

`f` is the number of evaluations of f in a step, without those that only its dense output needs: a traced step omits
unused values. rkf45 without a use of its error estimate takes 5.

| name     | order | f | error | df/dy | dense order | memory    | method                                          |
|----------|-------|---|-------|-------|-------------|-----------|-------------------------------------------------|
| euler    | 1     | 1 | no    | no    | 1           | nothing   | semi-implicit Euler                             |
| rk4      | 4     | 4 | no    | no    | 3           | nothing   | the classical Runge-Kutta method                |
| rkf45    | 4     | 6 | yes   | no    | 4           | nothing   | Runge-Kutta-Fehlberg, result of order 4         |
| dopri5   | 5     | 6 | yes   | no    | 4           | f         | Dormand-Prince 5(4), first same as last         |
| abm2     | 2     | 2 | yes   | no    | 2           | 2 states  | Adams-Bashforth-Moulton PECE, Nordsieck's form  |
| abm4     | 4     | 2 | yes   | no    | 4           | 4 states  | Adams-Bashforth-Moulton PECE, Nordsieck's form  |
| adams    | 5     | 2 | yes   | no    | 4           | 6 states  | the same, of variable order from 1 to 5         |
| rodas4   | 4     | 6 | yes   | yes   | 3           | nothing   | Rosenbrock 4(3), L-stable, stiffly accurate     |
| midpoint | 2     | 4 | no    | yes   | 2           | nothing   | implicit midpoint, 4 Newton steps               |
"""

from __future__ import annotations

from bellcrank.errors import InputError, unknown
from bellcrank.integrate.adams import ABM2, ABM4
from bellcrank.integrate.adams_variable import ADAMS
from bellcrank.integrate.euler import EULER
from bellcrank.integrate.implicit import MIDPOINT, RODAS4
from bellcrank.integrate.problem import Integrator, Problem, State, Step, interpolate
from bellcrank.integrate.runge_kutta import DOPRI5, RK4, RKF45

__all__ = ["INTEGRATORS", "Integrator", "Problem", "State", "Step", "integrator", "interpolate"]

INTEGRATORS: dict[str, Integrator] = {
    method.name: method for method in (EULER, RK4, RKF45, DOPRI5, ABM2, ABM4, ADAMS, RODAS4, MIDPOINT)
}


def integrator(name: str) -> Integrator:
    """Return the integrator called `name`."""
    if name not in INTEGRATORS:
        raise InputError(unknown("integrator", name, INTEGRATORS))
    return INTEGRATORS[name]
