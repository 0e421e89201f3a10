"""Accelerations of mechanisms with loops by dense linear algebra with 40 digits: a reference for all methods.

The terms M, C and their biases come from the plain recursions, evaluated with numbers of 40 digits. The rank is given,
not computed: it is the rank that the family of the mechanism must have. With a basis E of the null space of C,

    C a = -bias,  E^T M a = E^T Q

Extended precision (64 bits of mantissa) is not enough: where a small unit carries a large one, the condition of E^T M E
is up to the square of the ratio of their sizes. For a tower that grows by 1e7 that leaves 4 to 8 of 19 digits, fewer
than the methods under test have, because they factor graded matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext

from bellcrank.dynamics import kinematics, rnea
from bellcrank.dynamics.loops.constrained_dynamics import without_forces
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.model import Mechanism

Array = np.ndarray[Any, Any]
DIGITS = 40
ROUNDS = 3  # Newton iterations, each of which doubles the digits

numbers = MPContext()  # a number class of its own, so that mpmath's global one is not changed
numbers.dps = DIGITS
Real = numbers.mpf
for _name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "floor"):
    setattr(Real, _name, (lambda function: lambda x: function(x))(getattr(numbers, _name)))


def extended(x: Any) -> list[Any]:
    return [e if isinstance(e, Real) else Real(float(e)) for e in x]


def zeros(*shape: int) -> Array:
    return np.full(shape, Real(0), object)


def terms(m: Mechanism, q: Any, v: Any) -> tuple[Array, Array, Array]:
    """Return (values, C, bias) of all loop equations."""
    found = loop_equations(m.tree, list(q), list(v))
    C = zeros(len(found), m.nv)
    for k, e in enumerate(found):
        for j, x in e.row.items():
            C[k, j] = Real(x)
    return np.array(extended(e.value for e in found)), C, np.array(extended(e.bias for e in found))


def factored(A: Array, rank: int) -> tuple[Array, Array, list[int], list[int], Array]:
    """Factor with complete pivoting, so that each dependent unknown is a combination of the independent ones.

    Returns the chosen rows and columns in order, the factors, and the remainder of A.
    """
    A = A.copy()
    L, U = zeros(len(A), rank), zeros(rank, A.shape[1])
    rows, columns = list[int](), list[int]()
    for k in range(rank):
        part = np.abs(A.astype(float))
        part[rows] = part[:, columns] = 0
        i, j = (int(x) for x in np.unravel_index(np.argmax(part), part.shape))
        assert part[i, j] > 0
        rows.append(i)
        columns.append(j)
        L[:, k], U[k] = A[:, j] / A[i, j], A[i]
        L[rows[:-1], k] = Real(0)
        changed = np.ix_(np.flatnonzero(L[:, k]), np.flatnonzero(U[k]))
        A[changed] -= np.outer(L[changed[0][:, 0], k], U[k, changed[1][0]])
        A[i], A[:, j] = Real(0), Real(0)
    return L, U, rows, columns, A


def allowed(m: Mechanism, C: Array, rank: int) -> tuple[Array, Callable[[Array], Array]]:
    """Return the null-space basis E by columns, and a function that returns a particular solution x of C x = r.

    Pivots are compared in natural sizes. Where redundant equations contradict each other by rounding, a row that nearly
    vanishes in this configuration must not be chosen in place of one that does not.
    """
    by = m.loop_analysis.scales
    size, natural = np.array(extended(by.rows), object), np.array(extended(by.columns), object)
    L, U, rows, columns, left = factored(C * size[:, None] * natural, rank)
    assert np.abs(left.astype(float)).max(initial=0) < 1e-9, "the rank is larger than the family says"
    free = [k for k in range(C.shape[1]) if k not in columns]

    def solved(r: Array) -> Array:
        y, x, r = zeros(rank), zeros(C.shape[1]), r * size
        for k, i in enumerate(rows):
            y[k] = r[i] - L[i, :k] @ y[:k] if k else r[i]
        for k in reversed(range(rank)):
            x[columns[k]] = (y[k] - U[k] @ x) / U[k, columns[k]]
        return np.asarray(natural * x)

    E = zeros(C.shape[1], len(free))
    for at, k in enumerate(free):
        E[:, at] = -solved(C[:, k])
        E[k, at] += Real(1)
    return E, solved


def polished(m: Mechanism, q: Any, rank: int) -> list[Any]:
    """Return q with its loops closed to all digits."""
    now = extended(q)
    for _ in range(ROUNDS):
        value, C, _ = terms(m, now, zeros(m.nv))
        now = list(kinematics.integrate(m.tree, now, list(-allowed(m, C, rank)[1](value))))
    return now


def state(m: Mechanism, q: Any, v: Any, mobility: int) -> tuple[list[Any], Array]:
    """Return the nearest configuration and velocity that close the loops to all digits."""
    rank = m.nv - mobility
    q = polished(m, q, rank)
    E, _ = allowed(m, terms(m, q, zeros(m.nv))[1], rank)
    return q, _nearest(E, np.array(extended(v), object))


def accelerations(m: Mechanism, q: Any, v: Any, tau: Any, mobility: int) -> Array:
    """Return the accelerations at the nearest configuration and velocity that close the loops to all digits."""
    q, v = state(m, q, v, mobility)
    _, C, bias = terms(m, q, v)
    E, solved = allowed(m, C, m.nv - mobility)
    particular = solved(-bias)
    needed = np.array(rnea.inverse_dynamics(m.tree, q, list(v), list(particular)), object)
    products = [rnea.inverse_dynamics(without_forces(m.tree), q, list(zeros(m.nv)), list(column)) for column in E.T]
    small, right = E.T @ np.array(products, object).T, E.T @ (np.array(extended(tau), object) - needed)
    return np.asarray(particular + E @ _positive(small, right)).astype(float)


def _nearest(E: Array, v: Array) -> Array:
    """Return the combination of the columns of E that equals v in its independent coordinates.

    Those are the rows where E has a single nonzero element.
    """
    unit = np.eye(E.shape[1])
    free = [int(np.flatnonzero((unit[k] == E).all(axis=1))[0]) for k in range(E.shape[1])]
    return np.asarray(E @ v[free])


def _positive(A: Array, b: Array) -> Array:
    """Return A^-1 b by Cholesky factorisation."""
    n = len(A)
    L = zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            x = A[i, j] - L[i, :j] @ L[j, :j] if j else A[i, j]
            L[i, j] = x.sqrt() if i == j else x / L[j, j]
    y, x = zeros(n), zeros(n)
    for i in range(n):
        y[i] = (b[i] - L[i, :i] @ y[:i] if i else b[i]) / L[i, i]
    for i in reversed(range(n)):
        x[i] = (y[i] - L[i + 1 :, i] @ x[i + 1 :] if i + 1 < n else y[i]) / L[i, i]
    return x
