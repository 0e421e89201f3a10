"""Semi-implicit Euler: first the new velocity, then the position with it. First order.

Symplectic where the mass matrix is constant and forces depend on q alone: for a pendulum, but not for a top.
"""

from __future__ import annotations

from bellcrank import scalar
from bellcrank.errors import InputError
from bellcrank.integrate.problem import Integrator, Problem, State, Step, hermite_polynomial, plus, times
from bellcrank.scalar import Scalar


def _step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
    """Step by v1 = v + h dv/dt, q1 = q moved by h v1, x1 = x + h dx/dt; all rates at (t, y)."""
    q, v, x = problem.split(y)
    f0 = problem.rate(t, y)
    scalar.step("step", "euler")
    _, dv, dx = problem.split(f0)
    v1 = plus(v, times(h, dv))
    y1 = problem.project([*_moved_positions(problem, q, times(h, v1)), *v1, *plus(x, times(h, dx))])
    f1 = problem.rate(t + h, y1)
    return Step(y1, None, [], hermite_polynomial(y, times(h, f0), y1, times(h, f1)))


def _moved_positions(problem: Problem, q: State, displacement: State) -> State:
    if problem.moved is not None:
        return list(problem.moved(q, displacement))
    if problem.nq != problem.nv:
        raise InputError(
            f"The integrator euler cannot add nv={problem.nv} velocities to nq={problem.nq} coordinates. "
            "Give Problem(moved=...), which moves q by a displacement on its manifold."
        )
    return plus(q, displacement)


EULER = Integrator(
    name="euler",
    order=1,
    adaptive=False,
    stiff=False,
    source="E. Hairer, C. Lubich, G. Wanner. Geometric Numerical Integration. Springer, 2006, I.1.2.",
    step=_step,
)
