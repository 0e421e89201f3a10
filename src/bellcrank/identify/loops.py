"""Closed loops: what only some joints drive, and how the others move along.

Loops leave the velocities v = G u; no force of the loops has power along G. So with the regressor Y of the tree and the
columns E of the driven joints, G^T E tau = G^T Y x, and tau = (G^T E)^-1 G^T Y x: linear in the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.identify.numbers import Number
from bellcrank.identify.regressors import regressor
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.scalar import float_array

Array = np.ndarray[Any, Any]


def actuated_regressor(
    m: Mechanism, q: Any, v: Any, a: Any, numbers: Sequence[Number], actuated: Sequence[str] = ()
) -> Array:
    """Y of the driven joints, (samples, driven, numbers); of a tree, of all."""
    Y = regressor(m, q, v, a, numbers)
    if not m.loops:
        if actuated:
            return Y[:, [place(m, name) for name in actuated]]
        return Y
    driven = [place(m, name) for name in said(m, actuated)]
    G = freedoms(m, np.atleast_2d(np.asarray(q, float)))
    as_many(m, G, actuated)
    T = np.swapaxes(G, 1, 2)
    return np.linalg.solve(T[:, :, driven], T @ Y)


def freedoms(m: Mechanism, q: Array) -> Array:
    """G (samples, nv, freedoms): velocities that keep the loops closed, of length 1."""
    found = m.loop_analysis  # decides the rank, and knows natural sizes
    _, s, Vt = np.linalg.svd(found.scales.applied(np.asarray(m.closure_jacobian(q))))
    rank = found.rank.rank
    if rank and (s[:, rank - 1] < found.cut).any():
        raise InputError(f'some states of "{m.name}" are singular: its loops leave more freedoms there.')
    allowed = np.swapaxes(Vt[:, rank:], 1, 2) * found.scales.columns[:, None]
    return np.asarray(np.linalg.qr(allowed)[0])


@explained
def completed(m: Mechanism, moved: Mapping[str, Any], guess: Any = None) -> tuple[Array, Array, Array]:
    """(q, v, a) of all joints from (q, v, a) of some, as many as there are freedoms: {"crank": (q, v, a)}, arrays over
    the samples. guess: where to begin, near the first sample.
    """
    names = list(moved)
    own = [place(m, n) for n in names]
    try:
        given = np.array([[float_array(x) for x in moved[n]] for n in names])  # (names, 3, samples)
    except (TypeError, ValueError, OverflowError):
        given = np.zeros(0)
    if given.ndim != 3 or given.shape[1] != 3:
        raise InputError(f"expected (q, v, a) of each of {', '.join(names) or 'some joints'}, of the same length.")
    samples = given.shape[2]
    others = [k for k in range(m.nv) if k not in own]
    q = np.empty((samples, m.nq))
    first = np.asarray(guess if guess is not None else m.neutral(), float)
    if first.shape != (m.nq,):
        raise InputError(f"guess has the shape {first.shape}; expected ({m.nq},), a q of {m.name}.")
    begin = dict(zip(m.columns[0], first, strict=True))
    at = np.asarray(m.assemble({**begin, **{n: given[i, 0, 0] for i, n in enumerate(names)}}, fixed=names)[0])
    for k in range(samples):
        at = at.copy()
        at[own] = given[:, 0, k]
        q[k] = at = _closed(m, at, others)
    C = np.asarray(m.closure_jacobian(q))
    v, a = np.zeros((samples, m.nv)), np.zeros((samples, m.nv))
    v[:, own], a[:, own] = given[:, 1].T, given[:, 2].T
    v[:, others] = _solved(C[:, :, others], -np.einsum("sij,sj->si", C, v))
    drift = np.asarray(m.closure_bias(q, v))
    a[:, others] = _solved(C[:, :, others], -np.einsum("sij,sj->si", C, a) - drift)
    return q, v, a


def _closed(m: Mechanism, q: Array, others: Sequence[int]) -> Array:
    size = m.loop_analysis.scales.rows
    for _ in range(30):
        off = np.asarray(m.closure(q)) * size
        if np.abs(off).max(initial=0.0) < 1e-12:
            return q
        C = np.asarray(m.closure_jacobian(q))[:, others] * size[:, None]
        q = q.copy()
        q[list(others)] -= np.linalg.lstsq(C, off, rcond=None)[0]
    raise InputError(f'the loops of "{m.name}" do not close at {q.round(4).tolist()}; are the joints measured right?')


def _solved(C: Array, b: Array) -> Array:
    return np.asarray(np.einsum("sij,sj->si", np.linalg.pinv(C, rcond=1e-10), b))


def as_many(m: Mechanism, G: Array, actuated: Sequence[str]) -> None:
    """Driven joints as freedoms, or it is said."""
    if G.shape[2] != len(actuated):
        raise InputError(
            f'"{m.name}" moves in {G.shape[2]} way(s), and {len(actuated)} joint(s) are said to be driven '
            f"({', '.join(actuated)}); expected as many."
        )


def said(m: Mechanism, actuated: Sequence[str]) -> Sequence[str]:
    """The driven joints, which nobody else knows of closed loops."""
    if not actuated:
        raise InputError(f'"{m.name}" has closed loops; say which joints are driven: actuated=[...].')
    return actuated


def place(m: Mechanism, name: str) -> int:
    """Of a joint, among velocities."""
    if name not in m.columns[1]:
        raise InputError(f'"{m.name}": {unknown("joint", name, m.columns[1])}')
    return m.columns[1].index(name)
