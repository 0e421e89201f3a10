"""Closed loops: regressor of the driven joints, and completion of a measured motion.

The loops allow the velocities v = G u; constraint forces have no power along G. With the regressor Y of the tree and
the columns E of the driven joints, G^T E tau = G^T Y x, so tau = (G^T E)^-1 G^T Y x is linear in the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, unknown
from bellcrank.identify.linear_parameters import Number
from bellcrank.identify.regressors import regressor
from bellcrank.model import Mechanism
from bellcrank.scalar import float_array

Array = np.ndarray[Any, Any]


def actuated_regressor(
    m: Mechanism, q: Any, v: Any, a: Any, numbers: Sequence[Number], actuated: Sequence[str] = ()
) -> Array:
    """Return the regressor of the driven joints, (samples, driven, numbers); for a tree, of all joints.

    Parameters
    ----------
    m
        Mechanism.
    q, v, a
        Motion, (samples, n) each.
    numbers
        Columns of the regressor.
    actuated
        Driven joints.
    """
    Y = regressor(m, q, v, a, numbers)
    if not m.loops:
        if actuated:
            return Y[:, [velocity_index(m, name) for name in actuated]]
        return Y
    driven = [velocity_index(m, name) for name in require_driven(m, actuated)]
    G = loop_null_space(m, np.atleast_2d(np.asarray(q, float)))
    check_driven_count(m, G, actuated)
    T = np.swapaxes(G, 1, 2)
    return np.linalg.solve(T[:, :, driven], T @ Y)


def loop_null_space(m: Mechanism, q: Array) -> Array:
    """Return G (samples, nv, freedoms), an orthonormal basis of velocities that keep the loops of `m` closed at `q`."""
    analysis = m.loop_analysis  # gives the rank and the scales of rows and columns
    _, s, Vt = np.linalg.svd(analysis.scales.scaled(np.asarray(m.closure_jacobian(q))))
    rank = analysis.rank.rank
    if rank and (s[:, rank - 1] < analysis.cut).any():
        raise InputError(f'some states of "{m.name}" are singular: its loops have more freedoms there.')
    allowed = np.swapaxes(Vt[:, rank:], 1, 2) * analysis.scales.columns[:, None]
    return np.asarray(np.linalg.qr(allowed)[0])


@explain_argument_errors
def completed(m: Mechanism, moved: Mapping[str, Any], guess: Any = None) -> tuple[Array, Array, Array]:
    """Return the motion of all joints from that of some, with closed loops.

    Parameters
    ----------
    m : Mechanism
        Mechanism with loops.
    moved : mapping of str to (q, v, a)
        Measured joints, as many as there are freedoms: {"crank": (q, v, a)}, arrays over the samples.
    guess : array_like, optional
        Configuration near the first sample; the neutral one by default.

    Returns
    -------
    tuple[ndarray, ndarray, ndarray]
        q, v and a of all joints, (samples, n) each.

    Raises
    ------
    InputError
        If the arguments do not fit, or the loops do not close.
    """
    names = list(moved)
    measured_indices = [velocity_index(m, n) for n in names]
    try:
        motions = np.array([[float_array(x) for x in moved[n]] for n in names])  # (names, 3, samples)
    except (TypeError, ValueError, OverflowError):
        motions = np.zeros(0)
    if motions.ndim != 3 or motions.shape[1] != 3:
        raise InputError(f"expected (q, v, a) of each of {', '.join(names) or 'some joints'}, of the same length.")
    samples = motions.shape[2]
    others = [k for k in range(m.nv) if k not in measured_indices]
    q = np.empty((samples, m.nq))
    first = np.asarray(guess if guess is not None else m.neutral(), float)
    if first.shape != (m.nq,):
        raise InputError(f"guess has the shape {first.shape}; expected ({m.nq},), a q of {m.name}.")
    begin = dict(zip(m.columns[0], first, strict=True))
    configuration = np.asarray(
        m.assemble({**begin, **{n: motions[i, 0, 0] for i, n in enumerate(names)}}, fixed=names)[0]
    )
    for k in range(samples):
        configuration = configuration.copy()
        configuration[measured_indices] = motions[:, 0, k]
        q[k] = configuration = _close_sample(m, configuration, others)
    C = np.asarray(m.closure_jacobian(q))
    v, a = np.zeros((samples, m.nv)), np.zeros((samples, m.nv))
    v[:, measured_indices], a[:, measured_indices] = motions[:, 1].T, motions[:, 2].T
    v[:, others] = _pseudo_solve(C[:, :, others], -np.einsum("sij,sj->si", C, v))
    drift = np.asarray(m.closure_bias(q, v))
    a[:, others] = _pseudo_solve(C[:, :, others], -np.einsum("sij,sj->si", C, a) - drift)
    return q, v, a


def _close_sample(m: Mechanism, q: Array, others: Sequence[int]) -> Array:
    size = m.loop_analysis.scales.rows
    for _ in range(30):
        closure_error = np.asarray(m.closure(q)) * size
        if np.abs(closure_error).max(initial=0.0) < 1e-12:
            return q
        C = np.asarray(m.closure_jacobian(q))[:, others] * size[:, None]
        q = q.copy()
        q[list(others)] -= np.linalg.lstsq(C, closure_error, rcond=None)[0]
    raise InputError(f'the loops of "{m.name}" do not close at {q.round(4).tolist()}; check the measured joints.')


def _pseudo_solve(C: Array, b: Array) -> Array:
    return np.asarray(np.einsum("sij,sj->si", np.linalg.pinv(C, rcond=1e-10), b))


def check_driven_count(m: Mechanism, G: Array, actuated: Sequence[str]) -> None:
    """Raise an InputError unless there are as many driven joints as freedoms.

    Parameters
    ----------
    m
        Mechanism.
    G
        Basis of the allowed velocities.
    actuated
        Driven joints.
    """
    if G.shape[2] != len(actuated):
        raise InputError(
            f'"{m.name}" has {G.shape[2]} degrees of freedom, but {len(actuated)} driven joints are given '
            f"({', '.join(actuated)}); expected equal numbers."
        )


def require_driven(m: Mechanism, actuated: Sequence[str]) -> Sequence[str]:
    """Return the driven joints `actuated`, or raise an InputError if mechanism `m` has loops and there are none."""
    if not actuated:
        raise InputError(f'"{m.name}" has closed loops; name the driven joints: actuated=[...].')
    return actuated


def velocity_index(m: Mechanism, name: str) -> int:
    """Return the index of the joint `name` among the velocities of `m`."""
    if name not in m.columns[1]:
        raise InputError(f'"{m.name}": {unknown("joint", name, m.columns[1])}')
    return m.columns[1].index(name)
