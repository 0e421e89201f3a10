"""Elements that pull along the line between the origins of two frames.

    L        distance of the two origins              dL      how fast it grows
    T        tension: positive pulls them together    force on b: -T along the line from a to b

NonlinearSpring    T = spring(L - length) + damper(dL)
Cable              T = max(k e + c dL, 0) where e = L - length > 0, else 0: it cannot push
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.actuators.actuator import known
from bellcrank.errors import InputError
from bellcrank.forces.curves import area
from bellcrank.forces.element import NONE, Between, Triple, dot
from bellcrank.scalar import Scalar, maximum, sqrt, where

TOUCHING = 1e-150  # m^2: where two ends meet, nothing tells the direction


@dataclass(frozen=True)
class Line(Between):
    @abstractmethod
    def tension(self, L: Scalar, dL: Scalar) -> Scalar:
        """N, positive where it pulls."""

    @abstractmethod
    def stored(self, L: Scalar) -> Scalar:
        """The energy that is stored at a length L, J."""

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        p, L, dL = _length(pose, velocity)
        T = self.tension(L, dL)
        return [-(T / L) * one for one in p], NONE, []

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        return self.stored(_length(pose, NONE)[1])

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        _, L, dL = _length(pose, velocity)
        return (self.tension(L, dL) - self.tension_at_rest(L)) * dL

    def tension_at_rest(self, L: Scalar) -> Scalar:
        """The tension at the length L, at rest."""
        return self.tension(L, 0.0)


def _length(pose: Any, velocity: Sequence[Scalar]) -> tuple[Triple, Scalar, Scalar]:
    p = [pose[k, 3] for k in range(3)]
    L = sqrt(maximum(dot(p, p), TOUCHING))
    return p, L, dot(p, velocity) / L


@dataclass(frozen=True)
class NonlinearSpring(Line):
    """spring: N as a function of the stretch, m; damper: N as a function of its rate, m/s. Each is a function, or a
    Curve of measured points.
    """

    spring: Callable[[Scalar], Scalar] | None = None
    damper: Callable[[Scalar], Scalar] | None = None
    length: Scalar = 0.0  # m, without load

    def __post_init__(self) -> None:
        self._check_laws("spring", "damper")
        self._check("length")

    def tension(self, L: Scalar, dL: Scalar) -> Scalar:
        damped = 0.0 if self.damper is None else self.damper(dL)
        return self.tension_at_rest(L) + damped

    def tension_at_rest(self, L: Scalar) -> Scalar:
        """The tension at the length L, at rest."""
        return 0.0 if self.spring is None else self.spring(L - self.length)

    def stored(self, L: Scalar) -> Scalar:
        return 0.0 if self.spring is None else area(self.spring, L - self.length)


@dataclass(frozen=True)
class Cable(Line):
    """A rope between two frames: it pulls where it is longer than its length, and cannot push."""

    length: Scalar  # m, where it becomes taut
    stiffness: Scalar  # N/m
    damping: Scalar = 0.0  # N s/m, while it is taut

    def __post_init__(self) -> None:
        self._check("length", "damping")
        self._check("stiffness", above_zero=True)
        if known(self.length) and self.length == 0.0:
            raise InputError(f"{self._called}: length is 0 m; expected one above zero, at which it becomes taut.")

    def tension(self, L: Scalar, dL: Scalar) -> Scalar:
        e = L - self.length
        return where(e > 0.0, maximum(self.stiffness * e + self.damping * dL, 0.0), 0.0)

    def stored(self, L: Scalar) -> Scalar:
        e = maximum(L - self.length, 0.0)
        return 0.5 * self.stiffness * e * e
