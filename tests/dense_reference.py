"""Accelerations of mechanisms with loops by dense linear algebra in extended precision, as a reference for all methods.

The terms M, C and their biases come from the plain recursions, evaluated with numbers of 64 bits and more of mantissa;
the rank is not decided but given: what the family of the mechanism must have. Then, by an orthogonal basis N of what
the loops allow,

    C a = -bias,  N^T M a = N^T Q
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.dynamics.loops.rows import equations
from bellcrank.model import Mechanism

Array = np.ndarray[Any, Any]
Real = np.longdouble
ROUNDS = 4  # of Newton's method and of refinement, in extended precision


def extended(x: Any) -> list[Any]:
    return [Real(e) for e in x]


def terms(m: Mechanism, q: Any, v: Any) -> tuple[Array, Array, Array]:
    """(values, C, bias) of all equations of the loops."""
    found = equations(m.tree, list(q), list(v))
    C = np.zeros((len(found), m.nv), Real)
    for k, e in enumerate(found):
        for j, x in e.row.items():
            C[k, j] = x
    return np.array([e.value for e in found], Real), C, np.array([e.bias for e in found], Real)


def row_sizes(C: Array) -> Array:
    """The largest element of each row; infinite for rows that are zero but for the rounding of a model's numbers."""
    size = np.abs(C).max(axis=1, initial=0)
    return np.where(size > 1e-14 * size.max(initial=0), size, np.inf)


def factored(C: Array, rank: int) -> tuple[Array, Array, list[int], list[int], Array]:
    """Complete pivoting, so that each dependent unknown is a combination of the independent ones.

    Returns the rows and columns that were chosen, in order, the factors, and what is left of C.
    """
    A, m, n = np.array(C, Real), *C.shape
    L = np.zeros((m, rank), Real)
    U = np.zeros((rank, n), Real)
    rows, columns = list[int](), list[int]()
    A = A / row_sizes(C)[:, None]
    for k in range(rank):
        part = np.abs(A)
        part[rows] = part[:, columns] = 0
        i, j = np.unravel_index(np.argmax(part), part.shape)
        assert part[i, j] > 0
        rows.append(int(i))
        columns.append(int(j))
        L[:, k], U[k] = A[:, j] / A[i, j], A[i]
        L[rows[:-1], k] = 0
        A = A - np.outer(L[:, k], U[k])
        A[i], A[:, j] = 0, 0
    return L, U, rows, columns, A


def allowed(C: Array, rank: int) -> tuple[Array, Any]:
    """E, by columns what the loops allow, and a function that gives the x with C x = r that needs no freedom."""
    L, U, rows, columns, left = factored(C, rank)
    assert np.abs(left).max(initial=0) < 1e-9, "the rank is larger than the family says"
    free = [k for k in range(C.shape[1]) if k not in columns]
    size = row_sizes(C)

    def solved(r: Array) -> Array:
        y = np.zeros(rank, Real)
        r = r / size
        for k, i in enumerate(rows):
            y[k] = r[i] - L[i, :k] @ y[:k]
        x = np.zeros(C.shape[1], Real)
        for k in reversed(range(rank)):
            x[columns[k]] = (y[k] - U[k] @ x) / U[k, columns[k]]
        return x

    E = np.zeros((C.shape[1], len(free)), Real)
    for at, k in enumerate(free):
        unit = np.zeros(C.shape[1], Real)
        unit[k] = 1
        E[:, at] = unit - solved(C[:, k])
    return E, solved


def polished(m: Mechanism, q: Any, rank: int) -> list[Any]:
    """q with its loops closed in extended precision."""
    now = extended(q)
    for _ in range(ROUNDS):
        value, C, _ = terms(m, now, extended(np.zeros(m.nv)))
        now = list(kinematics.integrate(m.tree, now, list(-allowed(C, rank)[1](value))))
    return now


def accelerations(m: Mechanism, q: Any, v: Any, tau: Any, mobility: int) -> Array:
    """Of the nearest configuration and velocity that close the loops in extended precision."""
    rank = m.nv - mobility
    q = polished(m, q, rank)
    still = extended(np.zeros(m.nv))
    E, _ = allowed(terms(m, q, still)[1], rank)
    v = _nearest(E, extended(v))
    _, C, bias = terms(m, q, v)
    particular = allowed(C, rank)[1](-bias)
    M = np.array(crba.mass_matrix(m.tree, q), Real)
    needed = np.array(rnea.inverse_dynamics(m.tree, q, list(v), list(particular)), Real)
    small, right = E.T @ M @ E, E.T @ (np.array(extended(tau)) - needed)
    return np.asarray(particular + E @ _positive(small, right))


def _nearest(E: Array, v: Any) -> Array:
    """The combination of the columns that is v where E has an element of one alone: its independent coordinates."""
    free = [int(np.flatnonzero((np.abs(E - np.eye(E.shape[1])[k]) == 0).all(axis=1))[0]) for k in range(E.shape[1])]
    return np.asarray(E @ np.array(v, Real)[free])


def _positive(A: Array, b: Array) -> Array:
    """A^-1 b by Cholesky's factors, with a unit diagonal first, and refined."""
    d = 1 / np.sqrt(np.diag(A))
    S, n = A * d * d[:, None], len(A)
    L = np.zeros((n, n), Real)
    for i in range(n):
        for j in range(i + 1):
            x = S[i, j] - L[i, :j] @ L[j, :j]
            L[i, j] = np.sqrt(x) if i == j else x / L[j, j]

    def solve(r: Array) -> Array:
        y = np.zeros(n, Real)
        for i in range(n):
            y[i] = (r[i] - L[i, :i] @ y[:i]) / L[i, i]
        for i in reversed(range(n)):
            y[i] = (y[i] - L[i + 1 :, i] @ y[i + 1 :]) / L[i, i]
        return y

    x = np.zeros(n, Real)
    for _ in range(ROUNDS):
        x = x + solve(d * b - S @ x)
    return np.asarray(d * x)
