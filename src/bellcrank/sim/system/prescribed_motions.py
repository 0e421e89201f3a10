"""Prescribed motions: a joint coordinate or the position of a frame as a function of time; the drive force follows.

    r a + bias = x'' + 2 k (x' - rate) + k^2 (x - value)        r, bias: of the coordinate, or of the frame's position
    (r W r^T) lam = residual,    a = a_0 + W r^T lam            W = 1/M, constrained to the loops if there are any

The drive is ideal: it supplies any force lam. x, x' and x'' come from the one function given (jets.py). The gain k
suppresses the drift of the integrated constraint; on the motion itself it has no effect. This is Baumgarte
stabilisation: J. Baumgarte. Stabilization of constraints and integrals of motion in dynamical systems. Computer Methods
in Applied Mechanics and Engineering 1, 1-16, 1972.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics.frame_pairs import JacobianRow, frame_pair
from bellcrank.errors import InputError, unknown
from bellcrank.integrate.problem import Integrator, Problem
from bellcrank.jets import Jet, jet
from bellcrank.model import Mechanism
from bellcrank.nodes.tape import Tape
from bellcrank.record.contents import RATES
from bellcrank.record.contents import units as joint_units
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.sim.run_arguments import call_user_function, named_scalars

Array = np.ndarray[Any, Any]
Motion = Callable[[Scalar], Scalar]
Solve = Callable[[Sequence[Scalar]], list[Scalar]]
POSITION_AXES = ("x", "y", "z")
BAUMGARTE_GAIN = 20.0  # 1/s, k
MIN_FREE_SHARE = 1e-9  # share of a motion's row that loops leave free, below which it is held
MAX_MOTION_ERROR_SHARE = 0.01  # of the way of a motion: a run farther from it has not followed it
# The end of a run over which a motion is integrated alone: after 1 s, errors have decayed by e^-20.
REPLAYED_SECONDS, MOST_REPLAYED_STEPS = 1.0, 20_000
INTEGRATION_ERROR_MARGIN = 3.0  # frames move on curves, and loops are corrected, which changes the error of a step
START_TOLERANCE = 1e-6  # rad or m, and per second: largest deviation of a start from its motion


@dataclass(frozen=True)
class PrescribedCoordinate:
    """A prescribed coordinate at one state: its row of the Jacobian, value, rate and bias acceleration."""

    row: JacobianRow
    value: Scalar
    rate: Scalar
    bias: Scalar


def checked_motions(m: Mechanism, motions: Any) -> dict[str, Motion]:
    """Return the prescribed motions as a dict after checking names and functions.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Functions of t by the name of a joint, or of FRAME.x, FRAME.y, FRAME.z.
    """
    if not isinstance(motions, Mapping):
        raise InputError(
            f"motions is {motions!r}; expected functions of t by the name of a joint, or of FRAME.x, .y, .z."
        )
    single = [name for name in m.columns[1] if name in m.columns[0]]
    for name, f in motions.items():
        frame, _, axis = str(name).rpartition(".")
        if name not in single and not (frame in m.frames and axis in POSITION_AXES):
            known = [*single, *(f"{frame}.{c}" for frame in m.frames for c in POSITION_AXES)]
            raise InputError(f'motions of "{m.name}": {unknown("joint or place", name, known)}')
        if not callable(f):
            raise InputError(f'motion of "{name}" is {f!r}; expected a function of t, such as lambda t: 2.0 * t.')
        prescribed_jet(name, f, Tape().node("input", "t", 0))  # on a symbol: a stored one is detected later
    return dict(motions)


def drive_unit(m: Mechanism, name: str) -> str:
    """Return the unit of the drive force of the motion `name` of the mechanism `m`."""
    measured = dict(zip(m.columns[1], joint_units(m)[1], strict=True))
    return RATES[measured[name]][2] if name in measured else "N"


def prescribed_jet(name: str, motion: Motion, t: Scalar) -> Jet:
    """Return prescribed value, rate and acceleration of the function `motion` called `name` at the time `t`."""
    what = f'motion of "{name}"'
    (value,) = named_scalars(what, call_user_function(what, motion, Jet(t, 1.0), expected="(t)"), [name])
    return jet(value)


def prescribed_coordinate(m: Mechanism, name: str, q: Sequence[Scalar], v: Sequence[Scalar]) -> PrescribedCoordinate:
    """Return the current value, rate, bias and Jacobian row of a prescribed coordinate.

    Parameters
    ----------
    m
        Mechanism.
    name
        Name of a joint, or of FRAME.x, FRAME.y, FRAME.z.
    q, v
        Positions and velocities.
    """
    if name in m.columns[1]:
        k = m.columns[1].index(name)
        return PrescribedCoordinate({k: 1.0}, q[m.columns[0].index(name)], v[k], 0.0)
    frame, _, axis = name.rpartition(".")
    a, b = frame_pair(m.tree, m.ground, frame, q, v)
    i = POSITION_AXES.index(axis)
    row: JacobianRow = {}
    for k, s in b.columns:
        x = list(s.lin)[i]
        row[k] = row[k] + x if k in row else x
    return PrescribedCoordinate(row, list(b.p - a.p)[i], list(b.u)[i], list(b.a)[i])


def prescribed_rows(
    m: Mechanism, motions: Mapping[str, Motion], t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
) -> tuple[list[JacobianRow], list[Scalar]]:
    """Return the Jacobian rows of prescribed motions, and the accelerations along them that these require.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Prescribed motions by name.
    t, q, v
        Time, positions and velocities.
    """
    rows, required = list[JacobianRow](), list[Scalar]()
    for name, motion in motions.items():
        step("motion", name)
        coordinate, target = prescribed_coordinate(m, name, q, v), prescribed_jet(name, motion, t)
        if all(is_zero(x) for x in coordinate.row.values()):
            raise InputError(f'motion of "{name}": no joint moves it, so its motion cannot be prescribed.')
        rows.append(coordinate.row)
        required.append(_required_acceleration(target, coordinate.value, coordinate.rate) - coordinate.bias)
    return rows, required


def _required_acceleration(target: Jet, value: Scalar, rate: Scalar) -> Scalar:
    """Return the acceleration at which a coordinate returns to its prescribed motion, critically damped."""
    damping, stiffness = 2.0 * BAUMGARTE_GAIN, BAUMGARTE_GAIN * BAUMGARTE_GAIN
    return target.c + damping * (target.d - rate) + stiffness * (target.x - value)


def check_motion_start(m: Mechanism, motions: Mapping[str, Motion], y: Any) -> None:
    """Raise an InputError if a run does not start on its prescribed motions, or if no force can impose them.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Prescribed motions by name.
    y
        Initial states, (runs, size).
    """
    plain = m.at() if m.parameters else m
    for name, motion in motions.items():
        target = prescribed_jet(name, motion, 0.0)
        if not all(isinstance(x, int | float) for x in (target.x, target.d)):
            continue  # the motion depends on free parameters
        for k, state in enumerate(y):
            coordinate = prescribed_coordinate(plain, name, state[: m.nq].tolist(), state[m.nq : m.nq + m.nv].tolist())
            if abs(coordinate.value - target.x) > START_TOLERANCE or abs(coordinate.rate - target.d) > START_TOLERANCE:
                run = f" (run {k})" if len(y) > 1 else ""
                raise InputError(
                    f'the start{run} is not on the motion of "{name}": it begins at {target.x:g} with {target.d:g} per '
                    f"second, and the start has {float(coordinate.value):g} and {float(coordinate.rate):g}. Give "
                    "matching q0 and v0; with loops "
                    "mechanism.assemble({name: place}, {name: speed}, fixed=[name]) returns them."
                )
    for k, state in enumerate(y if motions else []):
        held = next((name for name, share in free_shares(plain, motions, state) if share < MIN_FREE_SHARE), None)
        if held is not None:
            run = f" (run {k})" if len(y) > 1 else ""
            causes = ["the closed loops"] * bool(m.loops) + ["the other motions"] * (len(motions) > 1)
            raise InputError(
                f'motion of "{held}": at the start{run} {" and ".join(causes) or "the joints"} of "{m.name}" determine '
                f"its velocity, so no force can impose another one. Prescribe a coordinate that can move "
                "(mechanism.loop_analysis counts the degrees of freedom), or leave this motion out."
            )


def free_shares(m: Mechanism, motions: Mapping[str, Motion], y: Any) -> list[tuple[str, float]]:
    """Return each motion with the share of its row that loops and the motions before it leave free, 0 to 1.

    Parameters
    ----------
    m
        Mechanism without free parameters.
    motions
        Prescribed motions by name.
    y
        State, (size,).
    """
    q, v = y[: m.nq].tolist(), y[m.nq : m.nq + m.nv].tolist()
    rows = np.zeros((len(motions), m.nv))
    for i, name in enumerate(motions):
        for k, x in prescribed_coordinate(m, name, q, v).row.items():
            rows[i, k] = x
    free = rows @ _null_space(m, y[: m.nq])
    shares, known = [], np.zeros((0, free.shape[1]))
    for name, row, part in zip(motions, rows, free, strict=True):
        for _ in range(2):  # once more, because the first projection leaves rounding errors
            part = part - known.T @ (known @ part)
        left, size = float(np.linalg.norm(part)), float(np.linalg.norm(row))
        # A row that is always zero is refused by `prescribed_rows`.
        shares.append((name, left / size if size else 1.0))
        if left:
            known = np.vstack([known, part / left])
    return shares


def _null_space(m: Mechanism, q: Any) -> Array:
    """Return an orthonormal basis of the velocities that keep the loops closed, (nv, degrees of freedom)."""
    if not m.loops:
        return np.eye(m.nv)
    from bellcrank.dynamics.loops.constraint_values import evaluate_constraints  # only for mechanisms that have loops

    rank = m.loop_analysis.rank.rank
    return np.asarray(np.linalg.svd(evaluate_constraints(m.tree, q).C)[2][rank:].T)


def integration_error(name: str, motion: Motion, integrator: Integrator, end: float, h: float) -> float:
    """Return the error of a prescribed coordinate at the end of a run that only the steps of the integrator cause.

    The coordinate alone is integrated over the end of the run: the drive makes its acceleration independent of the
    mechanism, and deviations decay at the rate k.

    Parameters
    ----------
    name
        Name of the motion.
    motion
        Prescribed function of t.
    integrator
        Integrator of the run.
    end
        End of the run, s.
    h
        Fixed step, s; 0 for adaptive steps, whose error is below their tolerance.
    """
    if not h:
        return 0.0

    def rate(t: Scalar, y: list[Scalar]) -> list[Scalar]:
        return [y[1], _required_acceleration(prescribed_jet(name, motion, t), *y)]

    def jacobian(t: Scalar, y: list[Scalar]) -> tuple[list[list[Scalar]], list[Scalar]]:
        dt = (rate(t + 0.5 * h, y)[1] - rate(t - 0.5 * h, y)[1]) / h
        return [[0.0, 1.0], [-BAUMGARTE_GAIN * BAUMGARTE_GAIN, -2.0 * BAUMGARTE_GAIN]], [0.0, dt]

    problem = Problem(rate, 1, 1, 0, jacobian)
    steps = min(math.ceil(min(end, REPLAYED_SECONDS) / h), MOST_REPLAYED_STEPS)
    t = end - steps * h
    target = prescribed_jet(name, motion, t)
    y: list[Scalar] = [target.x, target.d]
    memory = list(integrator.begin(problem, t, y, h))
    for i in range(steps):
        stepped = integrator.step(problem, t + i * h, y, h, memory)
        y, memory = stepped.y, stepped.memory
    return abs(float(y[0]) - float(prescribed_jet(name, motion, end).x))


def lost_motion(
    m: Mechanism, motions: Mapping[str, Motion], t: Array, q: Array, integrator: Integrator, h: float
) -> str:
    """Return which prescribed motion a run did not follow, and where; empty if it followed all.

    An error is expected as large as the integrator makes it without any mechanism.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Prescribed motions by name.
    t
        Times of the rows, s.
    q
        Positions, (rows, nq).
    integrator
        Integrator of the run.
    h
        Fixed step, s; 0 for adaptive steps.
    """
    plain = m.at() if m.parameters else m
    for name, motion in motions.items():
        ends = [prescribed_jet(name, motion, float(x)).x for x in (t[0], t[-1])]
        if not all(isinstance(x, int | float) for x in ends):
            continue  # the motion depends on free parameters
        end = float(prescribed_coordinate(plain, name, q[-1].tolist(), [0.0] * m.nv).value)
        error, allowed = abs(end - ends[1]), max(MAX_MOTION_ERROR_SHARE * abs(ends[1] - ends[0]), START_TOLERANCE)
        if error <= allowed:
            continue
        if not error <= INTEGRATION_ERROR_MARGIN * integration_error(name, motion, integrator, float(t[-1]), h):
            return f'motion of "{name}" was not followed: at {t[-1]:g} s it is {ends[1]:g}, the run is at {end:g}'
    return ""


def solve_positive_definite(A: list[list[Scalar]], b: list[Scalar]) -> list[Scalar]:
    """Return x with `A` x = `b` by elimination without pivoting: `A` is symmetric and positive definite."""
    A, b, n = [list(row) for row in A], list(b), len(b)
    for k in range(n):
        for i in range(k + 1, n):
            f = A[i][k] / A[k][k]
            A[i] = [x - f * y for x, y in zip(A[i], A[k], strict=True)]
            b[i] = b[i] - f * b[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            b[k] = b[k] - A[k][j] * b[j]
        b[k] = b[k] / A[k][k]
    return b
