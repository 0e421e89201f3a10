"""Desired motions: q_d, dq_d and ddq_d of every joint at a time, over any scalar.

Before its start and after its end a trajectory is held: time is clipped, and nothing branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

from bellcrank.errors import InputError
from bellcrank.misfits import explained, explained_class
from bellcrank.parameters.part_numbers import check_range
from bellcrank.scalar import Scalar, clip, cos, sin, where

MOST_JOINTS = 1_000_000
Vectors = tuple[list[Scalar], list[Scalar], list[Scalar]]


@explained_class("__init__")
@dataclass(frozen=True)
class Trajectory(ABC):
    """From `start` at time 0 to `end` at time T, one number for each joint."""

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
        """s, ds/dt and d2s/dt2, where s goes from 0 at the start to 1 at the end."""

    def __call__(self, t: Scalar) -> Vectors:
        way = [b - a for a, b in zip(self.start, self.end, strict=True)]
        s, ds, dds = self.progress(t)
        return [a + w * s for a, w in zip(self.start, way, strict=True)], [w * ds for w in way], [w * dds for w in way]


@explained_class("__init__")
@dataclass(frozen=True)
class Cycloid(Trajectory):
    """s = (w t - sin w t) / 2 pi, w = 2 pi / T: it starts and ends without speed and without acceleration.

    From 0 to pi this is (w t - sin w t) / 2: Wong 1991 eq 3.43 (after Angeles and Ma 1988) and Saha 2001 eq 18.
    """

    def progress(self, t: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        w = 2.0 * pi / self.T
        a = w * clip(t, 0.0, self.T)
        return (a - sin(a)) / (2.0 * pi), w * (1.0 - cos(a)) / (2.0 * pi), w * w * sin(a) / (2.0 * pi)


@explained_class("__init__")
@dataclass(frozen=True)
class Ramp(Trajectory):
    """s = t / T: constant speed, with a jump of speed at both ends (the sticks of an excavator: Wong 1991, 5.5.2)."""

    begin: Scalar = 0.0  # the time it sets off

    def progress(self, t: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        since = t - self.begin
        speed = where(since < 0.0, 0.0, where(since < self.T, 1.0 / self.T, 0.0))
        return clip(since, 0.0, self.T) / self.T, speed, 0.0


@explained
def wong(n: int, T: Scalar = 10.0) -> Cycloid:
    """Wong 1991, eq 3.43: all n joints from 0 to pi (PUMA 600: T = 10 s, torso: T = 5 s)."""
    if isinstance(n, int) and not 0 < n <= MOST_JOINTS:
        raise InputError(f"wong: n is {n}; expected how many joints there are, 1 to {MOST_JOINTS:,}.")
    return Cycloid((0.0,) * n, (pi,) * n, T)


@explained
def saha(start: Sequence[Scalar], end: Sequence[Scalar], T: Scalar = 10.0) -> Cycloid:
    """Saha 2001, eq 18, from the ends he gives for each arm.

    Departs: eq 18 as printed has no ends and always goes from 0 to pi; it is stretched to them.
    """
    return Cycloid(tuple(start), tuple(end), T)
