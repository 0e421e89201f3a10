"""Rosenbrock methods: linearly implicit, with one linear system and no iteration. RODAS of order 4(3).

In the variables u of Hairer and Wanner (IV.7), which avoid products with df/dy, with W = 1 - h g df/dy:

    W u_i = g (h f(t + alpha_i h, Y_i) + sum_j c_ij u_j + gamma_i h^2 df/dt),   Y_i = y + sum_j a_ij u_j

The method is stiffly accurate: the result is Y_s + u_s, a component with an infinitely fast decay reaches its
equilibrium in one step, and u_s itself estimates the error.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank import scalar
from bellcrank.integrate.linear_solver import implicit_solver
from bellcrank.integrate.problem import (
    Integrator,
    Problem,
    State,
    Step,
    minus,
    plus,
    times,
    weighted_sum,
)
from bellcrank.integrate.tableaus import Coefficients
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class RosenbrockTableau:
    """Coefficients of a Rosenbrock method."""

    g: float
    a: tuple[Coefficients, ...]
    c: tuple[Coefficients, ...]
    alpha: Coefficients
    gamma: Coefficients
    dense: tuple[
        Coefficients, Coefficients
    ]  # dense output: chord from y to y1 plus s (1 - s) (d_1 + s d_2), d = sum dense_j u_j


_LAST_ROW = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)

RODAS = RosenbrockTableau(
    g=0.25,
    a=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        _LAST_ROW,
        (*_LAST_ROW, 1.0),
    ),
    c=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    alpha=(0.0, 0.386, 0.21, 0.63, 1.0, 1.0),
    gamma=(0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0),
    dense=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0),
    ),
)


def _step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
    """Step by a stiffly accurate method: the last stage is the result, and its increment estimates the error."""
    table = RODAS
    jacobian, dfdt = problem.linearised(t, y, "rodas4")
    scalar.step("W", "rodas4")
    w = (problem.implicit or implicit_solver)(jacobian, table.g * h)
    u: list[State] = []
    point = y
    for i, (a, c) in enumerate(zip(table.a, table.c, strict=True)):
        scalar.step("stage", str(i + 1))
        if u:
            point = plus(y, weighted_sum(a, u))
        f = problem.rate(t + table.alpha[i] * h, point)
        right = times(table.g * h, f)
        if u:
            right = plus(right, weighted_sum([table.g * x for x in c], u))
        if table.gamma[i] != 0.0:
            right = plus(right, times(table.g * table.gamma[i] * (h * h), dfdt))
        u.append(w.solve(right))
    scalar.step("step", "rodas4")
    y1 = problem.project(plus(point, u[-1]))
    d1, d2 = (weighted_sum(row, u) for row in table.dense)
    dense = [y, plus(minus(y1, y), d1), minus(d2, d1), times(-1.0, d2)]
    return Step(y1, u[-1], [], dense)


RODAS4 = Integrator(
    name="rodas4",
    order=4,
    adaptive=True,
    stiff=True,
    source="E. Hairer, G. Wanner. Solving Ordinary Differential Equations II: Stiff and Differential-Algebraic "
    "Problems, 2nd edition. Springer, 1996, IV.7.",
    step=_step,
)
