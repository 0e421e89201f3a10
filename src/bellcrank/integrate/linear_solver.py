"""Linear systems of implicit steps: (1 - g df/dy) x = b, by elimination in the order of the state, without pivoting.

q comes first, and its rows are nearly empty: dq/dt = N(q) v gives the row of an ordinary coordinate the pivot 1 and
entries in the columns of v alone. Eliminating it costs no division, and the remaining system is of size nv + nx; zeros
known from the model cost nothing.

No rows are exchanged: that would be a branch on values. The pivots are near 1 for short steps. They stay positive for a
g of any size where the stiffness acts in the joints: with a mass matrix M and springs and dampers of rates L >= 0 along
the coordinates, the system for v is 1 + M^-1 L, and each leading minor of it is det(1 + L^1/2 P L^1/2) >= 1 for a block
P of M^-1. Stiffness across coordinates (a spring in space on an arm) and long steps together have no such guarantee: a
pivot may pass through 0 at some h. Numbers then grow large or are not finite, which the error estimate of rodas4 shows
and a shorter step cures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State
from bellcrank.scalar import Scalar, is_zero


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
    total: Scalar = 0.0
    for a, b in zip(row, x, strict=True):
        if not is_zero(a) and not is_zero(b):
            total = total + a * b
    return total


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
