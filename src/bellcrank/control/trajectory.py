"""Desired motions: trajectories, and setpoints that stay close to the actual joint.

A trajectory has position, velocity and acceleration of every joint as functions of time, for any scalars. Before its
start and after its end it holds its position: time is clipped, and nothing branches.

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
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

from bellcrank.argument_errors import explain_argument_errors, explain_methods
from bellcrank.errors import InputError
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, clip, cos, fabs, minimum, sin, where

MAX_JOINTS = 1_000_000
RETURN_RATE_HZ = 100.0  # 1/s, return rate of a setpoint beyond its lead: fast for an operator, slow for a step of 1 ms
Vectors = tuple[list[Scalar], list[Scalar], list[Scalar]]


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
