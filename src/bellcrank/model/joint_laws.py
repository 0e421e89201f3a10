"""Consistency laws of joint types, checked when a user registers one; tests check the shipped types more closely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.model.kind import Kind
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, Motion

Array = np.ndarray[Any, Any]
DIFFERENCE_STEP, TOLERANCE = 1e-5, 1e-7  # step of a central difference, and its tolerance
SAMPLE_DISPLACEMENT = (0.31, -0.23, 0.47, 0.11, -0.38, 0.29)  # a displacement to a generic configuration
SAMPLE_VELOCITY = (0.7, -0.4, 0.5, 0.9, 0.3, -0.6)


def check_joint_type(joint: type[Kind]) -> None:
    """Raise an InputError with the first law that the joint type `joint` violates."""
    for what in ("nq", "nv", "coordinates"):
        if not hasattr(joint, what):
            raise InputError(f'joint "{joint.name}" has no {what}.')
    kind = joint()
    _check_sizes(kind)
    q = list(kind.integrate(kind.neutral(), SAMPLE_DISPLACEMENT[: kind.nv]))
    v = list(SAMPLE_VELOCITY[: kind.nv])
    _check_law(kind, "transform(neutral()) is no motion", _pose_matrix(kind.transform(kind.neutral())), np.eye(4))
    _check_law(
        kind, "rate(q, v) is how integrate(q, dv) begins", kind.rate(q, v), _central_difference(kind, np.array, q, v)
    )
    X = _pose_matrix(kind.transform(q))
    for i, S in enumerate(kind.subspace(q)):
        moved = _central_difference(
            kind, lambda x: _pose_matrix(kind.transform(x)), q, [float(k == i) for k in range(kind.nv)]
        )
        twist = np.linalg.inv(X) @ moved  # velocity of F against G, seen in F
        seen = [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]]
        _check_law(kind, f"subspace(q)[{i}] is how transform(q) changes", [*S.ang, *S.lin], seen)
    moved_q = kind.integrate(q, v)
    _check_law(kind, "difference(q, integrate(q, dv)) is dv", kind.difference(q, moved_q), v)
    for i, dS in enumerate(kind.subspace_rate(q, v)):
        unit = [float(k == i) for k in range(kind.nv)]
        change = _central_difference(kind, partial(_joint_motion, kind, unit), q, v)
        _check_law(
            kind, f"subspace_rate(q, v)[{i}] is how subspace(q)[{i}] changes", _combine_motions([dS], [1.0]), change
        )
    change = _central_difference(kind, partial(_joint_motion, kind, v), q, v)
    _check_law(kind, "bias(q, v) is how subspace(q) v changes", _combine_motions([kind.bias(q, v)], [1.0]), change)
    _check_forces(kind, q)
    if joint.has_axis:
        c, s = np.cos(0.3), np.sin(0.3)
        offset = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0.2], [0, 0, 0, 1]])
        placed = _pose_matrix(joint(angle0=0.3, distance0=0.2).transform(q))
        _check_law(kind, "transform(q) turns by angle0 about z and shifts by distance0 along it", placed, X @ offset)


def _check_sizes(kind: Kind) -> None:
    q, still = kind.neutral(), [0.0] * kind.nv
    expected_sizes: tuple[tuple[str, Callable[[], Sequence[Any]], int], ...] = (
        ("coordinates", lambda: kind.coordinates, kind.nq),
        ("neutral()", lambda: q, kind.nq),
        ("subspace(q)", lambda: kind.subspace(q), kind.nv),
        ("subspace_rate(q, v)", lambda: kind.subspace_rate(q, still), kind.nv),
        ("difference(q0, q1)", lambda: kind.difference(q, q), kind.nv),
        ("rate(q, v)", lambda: kind.rate(q, still), kind.nq),
        ("integrate(q, dv)", lambda: kind.integrate(q, still), kind.nq),
    )
    for what, make_vector, expected in expected_sizes:
        if (got := len(make_vector())) != expected:
            has = f'joint "{kind.name}" has nq {kind.nq} and nv {kind.nv}'
            raise InputError(f"{has}, but {what} has {got} elements; expected {expected}.")


def _check_forces(kind: Kind, q: Sequence[float]) -> None:
    S = kind.subspace(q)
    try:
        W, T = kind.forces(q)
    except (StopIteration, RuntimeError):
        message = f'joint "{kind.name}": the columns of subspace(q) are not coordinate axes'
        raise InputError(f"{message}; define its forces(q), too (bellcrank/model/kind.py).") from None
    power = np.reshape([[s.dot(f) for f in (*W, *T)] for s in S], (len(S), len(W) + len(T)))
    _check_law(
        kind, "forces(q) are six, of which each does unit power along its own column, or none", power, np.eye(len(S), 6)
    )


def _central_difference(kind: Kind, f: Callable[[Any], Any], q: list[float], v: Sequence[float]) -> Array:
    """Return the derivative of f(q) along v, by a central difference."""
    ends = (f(kind.integrate(q, [h * x for x in v])) for h in (DIFFERENCE_STEP, -DIFFERENCE_STEP))
    ahead, behind = (np.asarray(x, float) for x in ends)
    return np.asarray((ahead - behind) / (2.0 * DIFFERENCE_STEP))


def _pose_matrix(moves: Transform) -> Array:
    R, p = moves.pose(IDENTITY, ZERO)
    return np.array([*([*row, x] for row, x in zip(R.rows, p)), [0.0, 0.0, 0.0, 1.0]], float)


def _combine_motions(columns: Sequence[Motion], v: Sequence[float]) -> Array:
    return sum((x * np.array([*s.ang, *s.lin], float) for s, x in zip(columns, v, strict=True)), np.zeros(6))


def _joint_motion(kind: Kind, v: Sequence[float], q: Sequence[float]) -> Array:
    """Return the motion S v of rates v at q."""
    return _combine_motions(kind.subspace(q), v)


def _check_law(kind: Kind, law: str, got: Any, expected: Any) -> None:
    got_values, expected_values = np.asarray(got, float), np.asarray(expected, float)
    if (
        got_values.shape != expected_values.shape
        or not np.abs(got_values - expected_values).max(initial=0.0) < TOLERANCE
    ):
        shown = f"{np.round(got_values, 4).tolist()}; expected {np.round(expected_values, 4).tolist()}"
        raise InputError(f'joint "{kind.name}" contradicts itself. {law[0].upper()}{law[1:]}: it is {shown}.')
