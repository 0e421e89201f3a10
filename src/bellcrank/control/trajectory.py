"""Desired motions: trajectories, inverse dynamics that follows them, and setpoints that stay close to the actual joint.

A trajectory has position, velocity and acceleration of every joint as functions of time, for any scalars. Before its
start and after its end it holds its position: time is clipped, and nothing branches.

Inverse dynamics is a controller, open loop or with feedback (computed torque):

    open loop         tau = ID(q_d, v_d, a_d)                                    Wong 1991 eq 3.44; Saha 2001, section 4
    computed torque   tau = ID(q, v, a_d + kv (v_d - v) + kp (q_d - q))          exact model: e'' + kv e' + kp e = 0

Source: J. Y. S. Luh, M. W. Walker, R. P. C. Paul. Resolved-acceleration control of mechanical manipulators. IEEE
Transactions on Automatic Control 25(3), 468-474, 1980.

A leash limits a rate-controlled setpoint, so that a machine stops when its sticks are released:

    lead = min(rest + lag |w|, most)                          largest distance of the desired from the actual angle
    dtheta_d = clip(w, c (theta - lead - theta_d), c (theta + lead - theta_d))

w is the commanded rate, lag the time by which the unobstructed servo trails the setpoint, rest the lead it needs to
hold a load. Without obstruction the desired angle moves at w. If the joint is blocked, the desired angle waits within
its lead. With w = 0 the lead is `rest` alone: the desired angle returns to the joint within a few 1/c, and follows a
joint that is still braking or is pushed away. A setpoint therefore never outlasts the command, and nothing springs
back. The rate is continuous in all arguments, so the desired angle does not chatter at the end of its leash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Any

from bellcrank.argument_errors import explain_argument_errors, explain_methods, is_matrix_view
from bellcrank.dynamics import applicable_methods, method
from bellcrank.errors import BellcrankError, InputError, brief
from bellcrank.model import Mechanism, regrouped
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, clip, cos, fabs, minimum, sin, where

MAX_JOINTS = 1_000_000
RETURN_RATE_HZ = 100.0  # 1/s, return rate of a setpoint beyond its lead: fast for an operator, slow for a step of 1 ms
Vectors = tuple[list[Scalar], list[Scalar], list[Scalar]]
QUANTITY = "inverse_dynamics"
Gains = Scalar | Sequence[Scalar]


@explain_methods("__init__")
@dataclass(frozen=True)
class Trajectory(ABC):
    """Base class of motions from `start` at time 0 to `end` at time T.

    Parameters
    ----------
    start : sequence of Scalar
        Positions at the start, one for each joint, rad or m.
    end : sequence of Scalar
        Positions at the end.
    T : Scalar
        Duration, s, above 0.
    """

    start: Sequence[Scalar]
    end: Sequence[Scalar]
    T: Scalar

    def __post_init__(self) -> None:
        if len(self.start) != len(self.end):
            raise InputError(
                f"{type(self).__name__}: start has {len(self.start)} numbers and end has {len(self.end)}; "
                "expected one for each joint in both."
            )
        check_range(self, type(self).__name__, ("T",), above_zero=True)

    @abstractmethod
    def progress(self, t: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return s, ds/dt and d2s/dt2 at time `t` (s), where s goes from 0 at the start to 1 at the end."""

    def __call__(self, t: Scalar) -> Vectors:
        """Return (q, v, a) at time `t` (s), each with one value for each joint."""
        displacement = [b - a for a, b in zip(self.start, self.end, strict=True)]
        s, ds, dds = self.progress(t)
        position = [a + w * s for a, w in zip(self.start, displacement, strict=True)]
        return position, [w * ds for w in displacement], [w * dds for w in displacement]


@explain_methods("__init__")
@dataclass(frozen=True)
class Cycloid(Trajectory):
    """Cycloidal motion, which starts and ends with zero velocity and acceleration.

    s = (w t - sin w t) / 2 pi, w = 2 pi / T. From 0 to pi this is (w t - sin w t) / 2: Wong 1991 eq 3.43 (after Angeles
    and Ma 1988) and Saha 2001 eq 18.

    Parameters
    ----------
    start : sequence of Scalar
        Positions at the start, one for each joint, rad or m.
    end : sequence of Scalar
        Positions at the end.
    T : Scalar
        Duration, s, above 0.
    """

    def progress(self, t: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return s, ds/dt and d2s/dt2 at time `t` (s), where s goes from 0 at the start to 1 at the end."""
        w = 2.0 * pi / self.T
        a = w * clip(t, 0.0, self.T)
        return (a - sin(a)) / (2.0 * pi), w * (1.0 - cos(a)) / (2.0 * pi), w * w * sin(a) / (2.0 * pi)


@explain_methods("__init__")
@dataclass(frozen=True)
class Ramp(Trajectory):
    """Motion at constant speed, s = t / T, with a velocity step at both ends.

    The sticks of an excavator command such motions: Wong 1991, 5.5.2.

    Parameters
    ----------
    start : sequence of Scalar
        Positions at the start, one for each joint, rad or m.
    end : sequence of Scalar
        Positions at the end.
    T : Scalar
        Duration, s, above 0.
    begin : Scalar, default 0.0
        Start time, s.
    """

    begin: Scalar = 0.0  # s, start time

    def progress(self, t: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return s, ds/dt and d2s/dt2 at time `t` (s), where s goes from 0 at the start to 1 at the end."""
        elapsed = t - self.begin
        speed = where(elapsed < 0.0, 0.0, where(elapsed < self.T, 1.0 / self.T, 0.0))
        return clip(elapsed, 0.0, self.T) / self.T, speed, 0.0


@explain_argument_errors
def wong(n: int, T: Scalar = 10.0) -> Cycloid:
    """Return the test motion of Wong 1991, eq 3.43: all joints from 0 to pi.

    The source uses T = 10 s for the PUMA 600 and T = 5 s for the torso.

    Parameters
    ----------
    n : int
        Number of joints.
    T : Scalar, default 10.0
        Duration, s.

    Returns
    -------
    Cycloid
        Trajectory of all joints.

    Raises
    ------
    InputError
        If `n` is outside its range.
    """
    if isinstance(n, int) and not 0 < n <= MAX_JOINTS:
        raise InputError(f"wong: n is {n}; expected the number of joints, 1 to {MAX_JOINTS:,}.")
    return Cycloid((0.0,) * n, (pi,) * n, T)


@explain_argument_errors
def saha(start: Sequence[Scalar], end: Sequence[Scalar], T: Scalar = 10.0) -> Cycloid:
    """Return the test motion of Saha 2001, eq 18, between given positions.

    Differences from the paper: eq 18 as printed has no end positions and always goes from 0 to pi; here it is scaled to
    `start` and `end`.

    Parameters
    ----------
    start : sequence of Scalar
        Positions at the start, rad or m; the source gives them for each arm.
    end : sequence of Scalar
        Positions at the end.
    T : Scalar, default 10.0
        Duration, s.

    Returns
    -------
    Cycloid
        Trajectory of all joints.
    """
    return Cycloid(tuple(start), tuple(end), T)


@dataclass(frozen=True)
class Leash:
    """Limit on the lead of a desired angle over the actual one."""

    rest: Scalar  # rad
    lag: Scalar  # s
    most: Scalar  # rad, lead at which the servo reaches its limit

    def __call__(self, desired: Scalar, rate: Scalar, actual: Scalar) -> Scalar:
        """Return the rate of the desired angle for the commanded `rate`, rad/s."""
        lead = minimum(self.rest + self.lag * fabs(rate), self.most)
        return clip(rate, RETURN_RATE_HZ * (actual - lead - desired), RETURN_RATE_HZ * (actual + lead - desired))


@explain_methods("__init__")
@dataclass(frozen=True)
class InverseDynamics:
    """Inverse-dynamics controller with one ideal torque on each coordinate; open loop if all gains are zero.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism without loops, whose joints have one coordinate each.
    trajectory : callable
        trajectory(t) returns (q, v, a), each with one value for each joint.
    kp : Scalar or sequence of Scalar, default 0.0
        Position gain, 1/s^2; one value, or one for each coordinate.
    kv : Scalar or sequence of Scalar, default 0.0
        Velocity gain, 1/s; one value, or one for each coordinate.
    method : str, default "rnea"
        Method of inverse dynamics, or "auto".
    """

    mechanism: Mechanism
    trajectory: Callable[[Scalar], Vectors]
    kp: Gains = 0.0  # 1/s^2; one value, or one for each coordinate
    kv: Gains = 0.0  # 1/s
    method: str = "rnea"

    def __post_init__(self) -> None:
        m = self.mechanism
        if m.nq != m.nv:
            raise InputError(
                f'InverseDynamics: "{m.name}" has nq {m.nq} and nv {m.nv}; expected joints of one coordinate each, '
                "because the position error q_d - q is taken coordinate by coordinate."
            )
        if m.loops:
            raise InputError(
                f'InverseDynamics: "{m.name}" has loops, and this controller drives every joint. Compute forces with '
                "inverse_dynamics(q, v, a, actuated=[...]) instead."
            )
        try:
            n = len(self.trajectory(0.0)[0])
        except BellcrankError:
            raise
        except Exception as error:  # a user-defined function may raise anything
            raise InputError(
                f"InverseDynamics: the trajectory failed at t = 0: {type(error).__name__}: {error}. "
                "Expected a function of t that returns (q, v, a)."
            ) from error
        if n != m.nv:
            raise InputError(
                f'InverseDynamics: the trajectory has {n} joints and "{m.name}" has {m.nv}; expected equal numbers.'
            )
        for name in ("kp", "kv"):
            gains = getattr(self, name)
            if isinstance(gains, Sequence) and (is_matrix_view(gains) or len(gains) != m.nv):
                given = f"is {brief(gains)}" if is_matrix_view(gains) else f"has {len(gains)} numbers"
                raise InputError(
                    f"InverseDynamics: {name} {given}; expected one, or {m.nv}: {', '.join(m.columns[1])}."
                )
        _ = self.torque  # raises if the method does not exist

    @property
    def open_loop(self) -> bool:
        """True if there is no feedback: all gains are zero."""
        return all(isinstance(k, (int, float)) and k == 0 for k in (*self._each(self.kp), *self._each(self.kv)))

    @cached_property
    def torque(self) -> Callable[..., list[Scalar]]:
        """Inverse dynamics as a function of (q, v, a), for any scalars."""
        tree = regrouped(self.mechanism.tree)  # regrouped inertias: equal forces with fewer operations
        solver = applicable_methods(QUANTITY, tree)[0] if self.method == "auto" else method(self.method, QUANTITY, tree)
        function: Any = solver.function(QUANTITY)
        return lambda q, v, a: list(function(tree, q, v, a))

    def _each(self, gains: Gains) -> Sequence[Scalar]:
        return gains if isinstance(gains, Sequence) else [gains] * self.mechanism.nv

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any = (), u: Any = ()) -> list[Scalar]:
        """Return the torques at time `t` for state (`q`, `v`); `x` and `u` are not used."""
        q_d, v_d, a_d = self.trajectory(t)
        if self.open_loop:
            return self.torque(q_d, v_d, a_d)
        n = range(self.mechanism.nv)
        q, v, kp, kv = [q[i] for i in n], [v[i] for i in n], self._each(self.kp), self._each(self.kv)
        return self.torque(q, v, [a_d[i] + kv[i] * (v_d[i] - v[i]) + kp[i] * (q_d[i] - q[i]) for i in n])
