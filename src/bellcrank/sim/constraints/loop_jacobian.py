"""df/dy of a system with closed loops in the minimal form, as the product of a tall and a wide matrix.

In the minimal form f depends on a state y only through z: the independent displacements, the independent speeds w that
come nearest to v, and the states of the actuators. Where the loops are closed, as at the start of every step,

    df/dy = (df/dz) (dz/dy),   dq = N E dq_i,   dv = E dw + d(E w),   w = A v,  A = (E^T M E)^-1 E^T M,  A E = 1

and dw = A dv - A d(E w), because d(A) E = -A d(E). A platform on six legs has 28 elements in y and 12 in z: the code
that is traced, compiled and solved shrinks accordingly, with the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops import constrained_dynamics
from bellcrank.dynamics.ltl_factorisation import solve
from bellcrank.graph import Graph
from bellcrank.graph.inline import without_calls
from bellcrank.integrate.implicit import dot
from bellcrank.model import Tree
from bellcrank.scalar import Scalar, is_zero
from bellcrank.sim.program.system_graphs import Dynamics

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
        momenta = [
            [sparse_dot(e, column) for e in reduced.null_space.values()] for column in zip(*reduced.M, strict=True)
        ]
        nearest = [solve(reduced.reduced_mass, momentum, [str(i) for i in free]) if k else [] for momentum in momenta]
        return {
            "dy": dynamics.rate(t, [*q, *allowed, *x, *y[s.size :]], u),
            "v": allowed,
            "N": [kinematics.rate(m.tree, list(q), np.eye(m.nv)[i].tolist()) for i in free],
            "E": [
                kinematics.rate(m.tree, list(q), reduced.lift(np.eye(k)[j].tolist(), [0.0] * m.nv)) for j in range(k)
            ],
            "A": [[column[r] for column in nearest] for r in range(k)],
        }

    plain = without_calls(dynamics.trace("parts", parts, dynamics.arguments))
    N, E, A = (plain.outputs[key] for key in "NEA")
    speeds = np.eye(n)[:, [*(m.nq + i for i in free), *range(m.nq + m.nv, s.size)]].astype(object)
    moves = np.full((n, k), 0.0, dtype=object)
    moves[: m.nq] = E.reshape(k, m.nq).T
    fast = plain.along({"y": speeds}, ("dy",))["dy"]
    base = Graph(f"{m.name}.base", plain.inputs, {"N": N, "E": E, "A": A, "fast": fast}, plain.tape)
    if not k or len(base.nodes) < large:
        slow = plain.along({"y": moves}, ("dy", "v"))
        factors = {
            "left": np.hstack([slow["dy"], fast]),
            "right": right_factor(dynamics, N, A, slow["v"], other_states),
        }
        slopes = Graph(f"{m.name}.slopes", plain.inputs, factors, plain.tape)
        if not k or len(slopes.nodes) < large:
            return slopes
    return _one_at_a_time(dynamics, plain, base, other_states)


def _one_at_a_time(dynamics: Dynamics, plain: Graph, base: Graph, other_states: int) -> Graph:
    """Return the product with one call of a shared graph for each displacement."""
    m, n, k = dynamics.system.mechanism, dynamics.plain_size, len(base.outputs["N"])
    direction = plain.tape.inputs("dy", (n,))
    moved = plain.along({"y": direction[:, None]}, ("dy", "v"))
    tangent = Graph(
        f"{m.name}.tangent", {**plain.inputs, "dy": (n,)}, {key: x[:, 0] for key, x in moved.items()}, plain.tape
    )

    def slopes(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        known = dynamics.call(base, t, y, u)
        columns = [
            dynamics.call(tangent, t, y, u, dy=[*known["E"][j], *[0.0] * (n - m.nq)]) for j in range(k)
        ]  # fmt: skip
        slow, null_space_changes = (np.stack([column[key] for column in columns], axis=1) for key in ("dy", "v"))
        return {
            "left": np.hstack([slow, known["fast"]]),
            "right": right_factor(dynamics, known["N"], known["A"], null_space_changes, other_states),
        }

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
