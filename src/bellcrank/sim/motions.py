"""Prescribed motions: a joint coordinate or the position of a frame as a function of time; the drive force follows.

    r a + bias = x'' + 2 k (x' - rate) + k^2 (x - value)        r, bias: of the coordinate, or of the frame's position
    (r W r^T) lam = residual,    a = a_0 + W r^T lam            W = 1/M, constrained to the loops if there are any

The drive is ideal: it supplies any force lam. x, x' and x'' come from the one function given (jets.py). The gain k
suppresses the drift of the integrated constraint; on the motion itself it has no effect. This is Baumgarte
stabilisation: J. Baumgarte. Stabilization of constraints and integrals of motion in dynamical systems. Computer Methods
in Applied Mechanics and Engineering 1, 1-16, 1972.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics.ends import Row, ends
from bellcrank.errors import InputError, unknown
from bellcrank.jets import Jet, jet
from bellcrank.model import Mechanism
from bellcrank.nodes.tape import Tape
from bellcrank.record.contents import RATES
from bellcrank.record.contents import units as joint_units
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.sim.user_code import called, vector

Motion = Callable[[Scalar], Scalar]
Solve = Callable[[Sequence[Scalar]], list[Scalar]]
PLACES = ("x", "y", "z")
HELD_BACK = 20.0  # 1/s, k
SAME = 1e-6  # rad or m, and per second: largest deviation of a start from its motion


@dataclass(frozen=True)
class Led:
    """A prescribed coordinate at one state: its row of the Jacobian, value, rate and bias acceleration."""

    row: Row
    value: Scalar
    rate: Scalar
    bias: Scalar


def checked(m: Mechanism, given: Any) -> dict[str, Motion]:
    """Return the prescribed motions as a dict after checking names and functions.

    Parameters
    ----------
    m
        Mechanism.
    given
        Functions of t by the name of a joint, or of FRAME.x, FRAME.y, FRAME.z.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"motions is {given!r}; expected functions of t by the name of a joint, or of FRAME.x, .y, .z."
        )
    single = [name for name in m.columns[1] if name in m.columns[0]]
    for name, f in given.items():
        frame, _, axis = str(name).rpartition(".")
        if name not in single and not (frame in m.frames and axis in PLACES):
            known = [*single, *(f"{frame}.{c}" for frame in m.frames for c in PLACES)]
            raise InputError(f'motions of "{m.name}": {unknown("joint or place", name, known)}')
        if not callable(f):
            raise InputError(f'motion of "{name}" is {f!r}; expected a function of t, such as lambda t: 2.0 * t.')
        wanted(name, f, Tape().node("input", "t", 0))  # first call on a symbol: a stored symbol is detected later
    return dict(given)


def unit(m: Mechanism, name: str) -> str:
    """Return the unit of the drive force of the motion `name` of the mechanism `m`."""
    measured = dict(zip(m.columns[1], joint_units(m)[1], strict=True))
    return RATES[measured[name]][2] if name in measured else "N"


def wanted(name: str, motion: Motion, t: Scalar) -> Jet:
    """Return prescribed value, rate and acceleration of the function `motion` called `name` at the time `t`."""
    what = f'motion of "{name}"'
    (found,) = vector(what, called(what, motion, Jet(t, 1.0), expected="(t)"), [name])
    return jet(found)


def led(m: Mechanism, name: str, q: Sequence[Scalar], v: Sequence[Scalar]) -> Led:
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
        return Led({k: 1.0}, q[m.columns[0].index(name)], v[k], 0.0)
    frame, _, axis = name.rpartition(".")
    a, b = ends(m.tree, m.ground, frame, q, v)
    i = PLACES.index(axis)
    row: Row = {}
    for k, s in b.columns:
        x = list(s.lin)[i]
        row[k] = row[k] + x if k in row else x
    return Led(row, list(b.p - a.p)[i], list(b.u)[i], list(b.a)[i])


def forced(
    m: Mechanism, motions: Mapping[str, Motion], t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar],
    a: Sequence[Scalar], answer: Solve,
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:  # fmt: skip
    """Return accelerations with prescribed motions, the forces of the drives, and these as generalised forces.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Prescribed motions by name.
    t, q, v
        Time, positions and velocities.
    a
        Accelerations without drives.
    answer
        Function that returns the change of the accelerations by a generalised force.
    """
    from bellcrank.dynamics.loops.forms import inner

    rows, missing = [], []
    for name, motion in motions.items():
        step("motion", name)
        here, to = led(m, name, q, v), wanted(name, motion, t)
        pull = to.c + 2.0 * HELD_BACK * (to.d - here.rate) + HELD_BACK * HELD_BACK * (to.x - here.value)
        if all(is_zero(x) for x in here.row.values()):
            raise InputError(f'motion of "{name}": no joint moves it, so its motion cannot be prescribed.')
        rows.append(here.row)
        missing.append(pull - here.bias - inner(here.row, a))
    moves = [answer([r.get(k, 0.0) for k in range(m.nv)]) for r in rows]
    step("motion")
    lam = _solved([[inner(r, move) for move in moves] for r in rows], missing)
    total, felt = list(a), [0.0] * m.nv
    for x, r, move in zip(lam, rows, moves, strict=True):
        total = [p + x * s for p, s in zip(total, move, strict=True)]
        for k, y in r.items():
            felt[k] = felt[k] + x * y
    return total, lam, felt


def check_start(m: Mechanism, motions: Mapping[str, Motion], y: Any) -> None:
    """Raise an InputError if a run does not start on its prescribed motions.

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
        to = wanted(name, motion, 0.0)
        if not all(isinstance(x, int | float) for x in (to.x, to.d)):
            continue  # the motion depends on free parameters
        for k, one in enumerate(y):
            here = led(plain, name, one[: m.nq].tolist(), one[m.nq : m.nq + m.nv].tolist())
            if abs(here.value - to.x) > SAME or abs(here.rate - to.d) > SAME:
                run = f" (run {k})" if len(y) > 1 else ""
                raise InputError(
                    f'the start{run} is not on the motion of "{name}": it begins at {to.x:g} with {to.d:g} per second, '
                    f"and the start has {float(here.value):g} and {float(here.rate):g}. Give matching q0 and v0; with "
                    "loops mechanism.assemble({name: place}, {name: speed}, fixed=[name]) returns them."
                )


def _solved(A: list[list[Scalar]], b: list[Scalar]) -> list[Scalar]:
    """Solve A x = b by elimination without pivoting: A is symmetric and positive definite."""
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
