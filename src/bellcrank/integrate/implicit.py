"""Implicit methods: their linear systems, the midpoint rule, and a Rosenbrock method.

The systems (1 - g df/dy) x = b are solved by elimination in the order of the state, without pivoting. q comes
first, and its rows are nearly empty: dq/dt = N(q) v gives the row of an ordinary coordinate the pivot 1 and entries in
the columns of v alone. Eliminating it costs no division, and the remaining system is of size nv + nx; zeros known from
the model cost nothing.

No rows are exchanged: that would be a branch on values. The pivots are near 1 for short steps. They stay positive for a
g of any size where the stiffness acts in the joints: with a mass matrix M and springs and dampers of rates L >= 0 along
the coordinates, the system for v is 1 + M^-1 L, and each leading minor of it is det(1 + L^1/2 P L^1/2) >= 1 for a block
P of M^-1. Stiffness across coordinates (a spring in space on an arm) and long steps together have no such guarantee: a
pivot may pass through 0 at some h. Numbers then grow large or are not finite, which the error estimate of rodas4 shows
and a shorter step cures.

The implicit midpoint rule, y1 = y + h f(t + h/2, (y + y1)/2), is of second order and conserves quadratic invariants. A
rotation of the result is that of the start, turned by the Cayley map of h w, where w is the angular velocity at the
midpoint, and not the sum of quaternions. The rule turns an angular momentum in body axes by the map of -h w, so that it
is constant in the world. The midpoint is found by a fixed number of Newton steps with df/dy at the beginning. Each
gains a factor O(h^2), so that four leave an error of O(h^9) beside the O(h^3) of the rule itself; on a linear system
the first is already exact.

Rosenbrock methods are linearly implicit, with one linear system and no iteration: RODAS of order 4(3), in the variables
u of Hairer and Wanner (IV.7), which avoid products with df/dy, with W = 1 - h g df/dy:

    W u_i = g (h f(t + alpha_i h, Y_i) + sum_j c_ij u_j + gamma_i h^2 df/dt),   Y_i = y + sum_j a_ij u_j

The method is stiffly accurate: the result is Y_s + u_s, a component with an infinitely fast decay reaches its
equilibrium in one step, and u_s itself estimates the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank import scalar
from bellcrank.integrate.problem import (
    Integrator,
    LowRankMatrix,
    MatrixFreeJacobian,
    Problem,
    State,
    Step,
    hermite_polynomial,
    minus,
    plus,
    times,
    weighted_sum,
)
from bellcrank.integrate.tableaus import Coefficients
from bellcrank.scalar import Scalar, is_zero, ordered_sum

NEWTON_STEPS = 4


@dataclass(frozen=True)
class LUFactors:
    """LU factors: L below the diagonal with ones on it, U above and on it; the diagonal is stored inverted."""

    rows: list[State]
    reciprocal: State

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return the solution x for the right-hand side `b`."""
        x = list(b)
        n = len(x)
        for i in range(n):
            x[i] = self._subtract_row(x[i], i, range(i), x)
        for i in reversed(range(n)):
            x[i] = self._subtract_row(x[i], i, range(i + 1, n), x) * self.reciprocal[i]
        return x

    def _subtract_row(self, value: Scalar, i: int, columns: range, x: State) -> Scalar:
        for j in columns:
            if not is_zero(self.rows[i][j]):
                value = value - self.rows[i][j] * x[j]
        return value


def lu_factors(matrix: Sequence[Sequence[Scalar]]) -> LUFactors:
    """Return the LU factors of `matrix`, without pivoting."""
    rows = [list(row) for row in matrix]
    n = len(rows)
    reciprocal: State = []
    for k in range(n):
        reciprocal.append(1.0 / rows[k][k])
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            rows[i][k] = rows[i][k] * reciprocal[k]
            for j in range(k + 1, n):
                if not is_zero(rows[k][j]):
                    rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    return LUFactors(rows, reciprocal)


@dataclass(frozen=True)
class WoodburySolver:
    """Inverse by the Woodbury identity, which needs only a small system.

    (1 - g left right)^-1 = 1 + g left (1 - g right left)^-1 right.
    """

    matrix: LowRankMatrix
    g: Scalar
    middle: LUFactors

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return the solution x for the right-hand side `b`."""
        inner = self.middle.solve([dot(row, b) for row in self.matrix.right])
        scaled = [self.g * x for x in inner]
        return [x + dot(row, scaled) for x, row in zip(b, self.matrix.left, strict=True)]


def dot(row: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
    """Return the scalar product of `row` and `x`."""
    return ordered_sum(a * b for a, b in zip(row, x, strict=True) if not is_zero(a) and not is_zero(b))


def implicit_solver(jacobian: Sequence[Sequence[Scalar]] | LowRankMatrix | MatrixFreeJacobian, g: Scalar) -> Any:
    """Return the solver of (1 - `g` df/dy) x = b for the `jacobian` df/dy."""
    if isinstance(jacobian, MatrixFreeJacobian):
        return jacobian.implicit(g)
    if isinstance(jacobian, LowRankMatrix):
        columns = list(zip(*jacobian.left, strict=True))
        small = [[dot(row, column) for column in columns] for row in jacobian.right]
        return WoodburySolver(jacobian, g, _shifted_factors(small, g))
    return _shifted_factors(jacobian, g)


def _shifted_factors(jacobian: Sequence[Sequence[Scalar]], g: Scalar) -> LUFactors:
    return lu_factors(
        [
            [(1.0 if i == j else 0.0) - (0.0 if is_zero(x) else g * x) for j, x in enumerate(row)]
            for i, row in enumerate(jacobian)
        ]
    )


def _midpoint_step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
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
    step=_midpoint_step,
)


@dataclass(frozen=True)
class RosenbrockTableau:
    """Coefficients of a Rosenbrock method."""

    g: float
    a: tuple[Coefficients, ...]
    c: tuple[Coefficients, ...]
    alpha: Coefficients
    gamma: Coefficients
    # Dense output: chord from y to y1 plus s (1 - s) (d_1 + s d_2), d = sum dense_j u_j.
    dense: tuple[Coefficients, Coefficients]


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


def _rodas_step(problem: Problem, t: Scalar, y: State, h: Scalar, memory: State) -> Step:
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
    step=_rodas_step,
    error_power=4.0,
)
