"""df/dy of a mechanism with Lagrange multipliers, by implicit differentiation of the KKT system.

Accelerations a and multipliers lam solve

    R = tau + C^T lam - ID(q, v, a) = 0,     G = gamma - C a = 0

where ID is inverse dynamics. Their derivatives therefore need not differentiate the elimination that computed them:
with dR and dG, the changes of R and G at fixed a and lam,

    da = P dR + L dG,     L = M^-1 C^T N^-1,  P = M^-1 - L C M^-1,  N = C M^-1 C^T

The Newton-Euler and loop equations are the shortest formulation, and P and L are the same for every element of y: a
third of the operations, and of the code, of the derivative of the elimination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.dynamics import METHODS
from bellcrank.dynamics.frame_pairs import Equation
from bellcrank.dynamics.loops.constrained_dynamics import sparse_inner
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.rank import solve_multipliers
from bellcrank.graph import Graph
from bellcrank.graph.inline import without_calls
from bellcrank.integrate.implicit import dot
from bellcrank.scalar import Scalar, is_zero, step

if TYPE_CHECKING:
    from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics

State = list[Scalar]
Array = np.ndarray[Any, Any]


def is_applicable(dynamics: LoopedDynamics) -> bool:
    """Return True if implicit differentiation of R and G gives the complete derivative of `dynamics`.

    Excluded are redundant constraints, for which N is singular; prescribed motions and springs between bodies, which
    are not part of inverse dynamics; and quaternions, which inside a step are not of unit length, so that forward and
    inverse dynamics are not inverse to each other.
    """
    s = dynamics.system
    excluded = dynamics.wrt or s.motions or s.mechanism.springs or dynamics.rank.groups
    return not excluded and not s.quaternions


def implicit_state_jacobian(dynamics: LoopedDynamics, alpha: float) -> Graph:
    """Return the graph (t, y, u, p) -> df/dy of `dynamics`; `alpha` is the gain of the Baumgarte stabilisation, 1/s."""
    n = dynamics.plain_size
    solution, tangents = _solution(dynamics, alpha), _tangents(dynamics, alpha)

    def slopes(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        solved = dynamics.call(solution, t, y, u)
        derivatives = dynamics.call(tangents, t, y, u, a=list(solved["a"]), lam=list(solved["lam"]))
        step("da")
        da = [[dot(row, column) for column in derivatives["d"].T] for row in solved["P"]]
        out = np.array(derivatives["h"], dtype=object)
        for i, k in np.ndindex(n, n):
            for row, x in zip(da, derivatives["by_a"][i], strict=True):
                if not is_zero(x) and not is_zero(row[k]):
                    out[i, k] = out[i, k] + x * row[k]
        return {"ddy_dy": out}

    return dynamics.trace("slopes", slopes, dynamics.arguments)


def _independent_equations(dynamics: LoopedDynamics, q: State, v: State) -> list[Equation]:
    return dynamics.rank.select(loop_equations(dynamics.tree, q, v))


def _gamma(e: Equation, alpha: float) -> Scalar:
    return -e.bias if alpha == 0.0 else -e.bias - 2.0 * alpha * e.rate - alpha * alpha * e.value


def _solution(dynamics: LoopedDynamics, alpha: float) -> Graph:
    """Return the graph (t, y, u, p) -> a, lam, and (P, L) side by side."""
    s = dynamics.system
    nv, rank = s.mechanism.nv, dynamics.rank

    def solved(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        y = list(y)
        q, v, _ = s.split(y)
        rows = _independent_equations(dynamics, list(q), list(v))
        W = METHODS["crba"].function("inverse_mass_matrix")(dynamics.tree, list(q))
        step("1/M C^T")
        inverse_rows = [[sparse_inner(e.row, column) for column in W] for e in rows]  # M^-1 is symmetric

        def constraint_forces(right: State) -> State:
            return solve_multipliers(rank, lambda i, j: sparse_inner(rows[i].row, inverse_rows[j]), right).values

        step("a")
        force = dynamics.force_residual(t, y, u, [0.0] * nv)
        free = [dot(row, force) for row in W]
        lam = constraint_forces([_gamma(e, alpha) - sparse_inner(e.row, free) for e in rows])
        a = [x + dot(lam, [move[k] for move in inverse_rows]) for k, x in enumerate(free)]
        step("1/M C^T 1/N")
        inverse_columns = [
            constraint_forces([float(i == j) for i in range(len(rows))]) for j in range(len(rows))
        ]  # columns of N^-1
        L = [[dot([move[k] for move in inverse_rows], column) for column in inverse_columns] for k in range(nv)]
        step("P")
        P = [
            [W[i][j] - dot(L[max(i, j)], [move[min(i, j)] for move in inverse_rows]) for j in range(nv)]
            for i in range(nv)
        ]
        return {"a": a, "lam": lam, "P": [[*p, *l] for p, l in zip(P, L, strict=True)]}

    return dynamics.trace("known", solved, dynamics.arguments)


def _tangents(dynamics: LoopedDynamics, alpha: float) -> Graph:
    """Return the graph (t, y, u, a, lam, p) -> d(R, G)/dy, the derivative of dy/dt by y, and by a."""
    s, n = dynamics.system, dynamics.plain_size
    nv, count = s.mechanism.nv, len(dynamics.rank.rows)

    def residual(t: Scalar, y: Any, a: Any, lam: Any, u: Any = ()) -> dict[str, Any]:
        y, a = list(y), list(a)
        q, v, _ = s.split(y)
        R = dynamics.force_residual(t, y, u, a)
        rows = _independent_equations(dynamics, list(q), list(v))
        step("C^T lam")
        for e, x in zip(rows, lam, strict=True):
            for k, c in e.row.items():
                R[k] = R[k] + c * x
        return {"R": [*R, *(_gamma(e, alpha) - sparse_inner(e.row, a) for e in rows)], "h": dynamics.rate(t, y, u, a)}

    arguments = {**dynamics.arguments, "a": (nv,), "lam": (count,)}
    plain = without_calls(dynamics.trace("residual", residual, arguments))
    derivatives = plain.along({"y": np.eye(n)}, ("R", "h"))
    by_a = plain.along({"a": np.eye(nv)}, ("h",))["h"]
    outputs = {"d": derivatives["R"], "h": derivatives["h"], "by_a": by_a}
    return Graph(f"{s.mechanism.name}.residual.dy", plain.inputs, outputs, plain.tape)
