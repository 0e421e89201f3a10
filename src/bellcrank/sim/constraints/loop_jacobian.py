"""df/dy of a system with closed loops: as a product of matrices in the minimal form, by the KKT system in the others.

In the minimal form f depends on a state y only through z: the independent displacements, the independent speeds w that
come nearest to v, and the states of the actuators. Where the loops are closed, as at the start of every step,

    df/dy = (df/dz) (dz/dy),   dq = N E dq_i,   dv = E dw + d(E w),   w = A v,  A = (E^T M E)^-1 E^T M,  A E = 1

and dw = A dv - A d(E w), because d(A) E = -A d(E). A platform on six legs has 28 elements in y and 12 in z: the code
that is traced, compiled and solved shrinks accordingly, with the same values.

With multipliers, accelerations a and multipliers lam solve

    R = tau + C^T lam - ID(q, v, a) = 0,     G = gamma - C a = 0

where ID is inverse dynamics. Their derivatives therefore need not differentiate the elimination that computed them:
with dR and dG, the changes of R and G at fixed a and lam,

    da = P dR + L dG,     L = M^-1 C^T N^-1,  P = M^-1 - L C M^-1,  N = C M^-1 C^T

The Newton-Euler and loop equations are the shortest formulation, and P and L are the same for every element of y: a
third of the operations, and of the code, of the derivative of the elimination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.dynamics import METHODS, kinematics
from bellcrank.dynamics.frame_pairs import Equation
from bellcrank.dynamics.loops import constrained_dynamics
from bellcrank.dynamics.loops.constrained_dynamics import sparse_inner
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.rank import solve_multipliers
from bellcrank.dynamics.ltl_factorisation import solve
from bellcrank.graph import Graph
from bellcrank.graph.inline import without_calls
from bellcrank.integrate.implicit import dot
from bellcrank.model import Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.sim.program.system_graphs import Dynamics

if TYPE_CHECKING:
    from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics

Array = np.ndarray[Any, Any]
State = list[Scalar]
MAX_UNROLLED_OPERATIONS = 20_000  # operations from which a called graph is better although it also computes zeros


def jacobian_product(
    dynamics: Dynamics,
    tree: Tree,
    mass: constrained_dynamics.Dynamics,
    part: constrained_dynamics.CoordinatePartition,
    large: int | None = None,
) -> Graph:
    """Return the graph (t, y, u, p) -> left (n, k), right (k, n) with df/dy = left right at a y that closes the loops.

    Parameters
    ----------
    dynamics
        The dynamics in the minimal form.
    tree
        Tree of the mechanism.
    mass
        Function that returns its mass matrix.
    part
        Coordinate partition.
    large
        Operations from which displacements are computed one after the other; MAX_UNROLLED_OPERATIONS by default.
    """
    large = MAX_UNROLLED_OPERATIONS if large is None else large
    s, m = dynamics.system, dynamics.system.mechanism
    free = part.independent(m.nv)
    n, k, other_states = dynamics.plain_size, len(free), s.size - m.nq - m.nv

    def parts(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        q, v, x = s.split(list(y))
        reduced = constrained_dynamics.reduce_to_null_space(tree, mass, part, list(q))
        allowed = reduced.lift([v[i] for i in free], [0.0] * m.nv)
        assert not isinstance(reduced.M, constrained_dynamics.MassProduct)
        columns = zip(*reduced.M, strict=True)
        momenta = [[sparse_dot(e, column) for e in reduced.null_space.values()] for column in columns]
        nearest = [solve(reduced.reduced_mass, momentum, [str(i) for i in free]) if k else [] for momentum in momenta]
        dy, move = dynamics.rate(t, [*q, *allowed, *x, *y[s.size :]], u), partial(kinematics.rate, m.tree, list(q))
        N = [move(np.eye(m.nv)[i].tolist()) for i in free]
        E = [move(reduced.lift(np.eye(k)[j].tolist(), [0.0] * m.nv)) for j in range(k)]
        return {"dy": dy, "v": allowed, "N": N, "E": E, "A": [[column[r] for column in nearest] for r in range(k)]}

    plain = without_calls(dynamics.trace("parts", parts, dynamics.arguments))
    N, E, A = (plain.outputs[key] for key in "NEA")
    speeds = np.eye(n)[:, [*(m.nq + i for i in free), *range(m.nq + m.nv, s.size)]].astype(object)
    moves = np.full((n, k), 0.0, dtype=object)
    moves[: m.nq] = E.reshape(k, m.nq).T
    fast = plain.along({"y": speeds}, ("dy",))["dy"]
    base = Graph(f"{m.name}.base", plain.inputs, {"N": N, "E": E, "A": A, "fast": fast}, plain.tape)
    if not k or len(base.nodes) < large:
        slow = plain.along({"y": moves}, ("dy", "v"))
        right = right_factor(dynamics, N, A, slow["v"], other_states)
        factors = {"left": np.hstack([slow["dy"], fast]), "right": right}
        slopes = Graph(f"{m.name}.slopes", plain.inputs, factors, plain.tape)
        if not k or len(slopes.nodes) < large:
            return slopes
    return _one_at_a_time(dynamics, plain, base, other_states)


def _one_at_a_time(dynamics: Dynamics, plain: Graph, base: Graph, other_states: int) -> Graph:
    """Return the product with one call of a shared graph for each displacement."""
    m, n = dynamics.system.mechanism, dynamics.plain_size
    direction = plain.tape.inputs("dy", (n,))
    moved = plain.along({"y": direction[:, None]}, ("dy", "v"))
    changes = {key: x[:, 0] for key, x in moved.items()}
    tangent = Graph(f"{m.name}.tangent", {**plain.inputs, "dy": (n,)}, changes, plain.tape)

    def slopes(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        known = dynamics.call(base, t, y, u)
        columns = [dynamics.call(tangent, t, y, u, dy=[*e, *[0.0] * (n - m.nq)]) for e in known["E"]]
        slow, null_space_changes = (np.stack([column[key] for column in columns], axis=1) for key in ("dy", "v"))
        right = right_factor(dynamics, known["N"], known["A"], null_space_changes, other_states)
        return {"left": np.hstack([slow, known["fast"]]), "right": right}

    return dynamics.trace("slopes", slopes, dynamics.arguments)


def right_factor(dynamics: Dynamics, N: Array, A: Array, null_space_changes: Array, other_states: int) -> Array:
    """Return dz/dy.

    Parameters
    ----------
    dynamics
        The dynamics.
    N
        Rates of q for each independent element of v.
    A
        Map from v to the independent speeds.
    null_space_changes
        Derivative of E w with respect to each displacement.
    other_states
        Number of other states.
    """
    m, k = dynamics.system.mechanism, len(N)
    factor = np.full((2 * k + other_states, dynamics.plain_size), 0.0, dtype=object)
    for j, turn in enumerate(N):
        inverse_rate = [x if is_zero(x) else x / dot(turn, turn) for x in turn]  # columns of N are orthogonal
        factor[j, : m.nq] = inverse_rate
        for r, row in enumerate(A):
            pull = dot(row, list(null_space_changes[:, j]))
            factor[k + r, : m.nq] = [
                a if is_zero(b) else a - pull * b for a, b in zip(factor[k + r], inverse_rate, strict=False)
            ]
            factor[k + r, m.nq : m.nq + m.nv] = row
    for j in range(other_states):
        factor[2 * k + j, m.nq + m.nv + j] = 1.0
    return factor


def sparse_dot(e: Mapping[int, Scalar], x: Sequence[Scalar]) -> Scalar:
    """Return the product of the sparse row `e` with the vector `x`."""
    return dot(list(e.values()), [x[i] for i in e])


def is_applicable(dynamics: LoopedDynamics) -> bool:
    """Return True if implicit differentiation of R and G gives the complete derivative of `dynamics`.

    Excluded are redundant constraints, for which N is singular; prescribed motions and springs between bodies, which
    are not part of inverse dynamics; latches and bearing friction, as well; and quaternions, which inside
    a step are not of unit length, so that forward and inverse dynamics are not inverse to each other.
    """
    s = dynamics.system
    excluded = dynamics.wrt or s.motions or s.solved_elements or s.mechanism.springs or dynamics.rank.groups
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
        moves = list(zip(*inverse_rows, strict=True)) or [()] * nv
        a = [x + dot(lam, move) for x, move in zip(free, moves, strict=True)]
        step("1/M C^T 1/N")
        inverse_columns = [constraint_forces(e) for e in np.eye(len(rows)).tolist()]  # columns of N^-1
        L = [[dot(move, column) for column in inverse_columns] for move in moves]
        step("P")
        P = [[W[i][j] - dot(L[max(i, j)], moves[min(i, j)]) for j in range(nv)] for i in range(nv)]
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
