"""Force elements along the line between the origins of two frames: nonlinear spring and cable.

    L        distance of the two origins              dL      its rate
    T        tension: positive pulls them together    force on b: -T along the line from a to b

NonlinearSpring    T = spring(L - length) + damper(dL)
Cable              T = max(k e + c dL, 0) where e = L - length > 0, else 0: it cannot push
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.actuators.actuator import is_known
from bellcrank.errors import InputError
from bellcrank.forces.element import ZERO_VECTOR, Between, Triple, dot
from bellcrank.forces.tension import SpringDamper, Tension
from bellcrank.scalar import Scalar, maximum, sqrt, where

MIN_SQUARED_LENGTH = 1e-150  # m^2, smallest squared length: coincident ends have no direction


@dataclass(frozen=True)
class Line(Between, Tension):
    """Base class of elements with a tension along the line between two frame origins.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    """

    def tension(self, L: Scalar, dL: Scalar) -> Scalar:
        """Return the tension in N, positive if it pulls, at length `L` (m) and rate `dL` (m/s)."""
        return self.pull(L, dL)

    def tension_at_rest(self, L: Scalar) -> Scalar:
        """Return the static tension at length `L` (m), N."""
        return self.pull(L, 0.0)

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        """Return the force and moment on frame b and the state rates; see `Between.__call__`."""
        p, L, dL = _length(pose, velocity)
        T = self.pull(L, dL)
        return [-(T / L) * one for one in p], ZERO_VECTOR, []

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `pose` and `x` as in `Between.energy`."""
        return self.stored(_length(pose, ZERO_VECTOR)[1])

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `pose`, `velocity` and `x` as in `Between.loss`."""
        _, L, dL = _length(pose, velocity)
        return self.lost(L, dL)


def _length(pose: Any, velocity: Sequence[Scalar]) -> tuple[Triple, Scalar, Scalar]:
    p = [pose[k, 3] for k in range(3)]
    L = sqrt(maximum(dot(p, p), MIN_SQUARED_LENGTH))
    return p, L, dot(p, velocity) / L


@dataclass(frozen=True)
class NonlinearSpring(SpringDamper, Line):
    """Nonlinear spring and damper between two frame origins.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    spring : callable, optional
        Force in N as a function of the stretch L - length in m, or a Curve of measured points.
    damper : callable, optional
        Force in N as a function of the rate dL/dt in m/s, or a Curve of measured points.
    length : Scalar, default 0.0
        Length without load, m.
    """

    spring: Callable[[Scalar], Scalar] | None = None
    damper: Callable[[Scalar], Scalar] | None = None
    length: Scalar = 0.0  # m, without load

    def __post_init__(self) -> None:
        self._check_laws("spring", "damper")
        self._check("length")

    @property
    def unloaded(self) -> Scalar:
        """Length without load, m."""
        return self.length


@dataclass(frozen=True)
class Cable(Line):
    """Cable between two frame origins: it pulls where it is longer than its length, and cannot push.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    length : Scalar
        Length at which the cable becomes taut, m, above 0.
    stiffness : Scalar
        Stiffness of the taut cable, N/m.
    damping : Scalar, default 0.0
        Damping of the taut cable, N s/m.
    """

    length: Scalar  # m, where it becomes taut
    stiffness: Scalar  # N/m
    damping: Scalar = 0.0  # N s/m, while it is taut

    def __post_init__(self) -> None:
        self._check("length", "damping")
        self._check("stiffness", above_zero=True)
        if is_known(self.length) and self.length == 0.0:
            raise InputError(
                f"{self._label}: length is 0 m; expected a length above zero, at which the cable becomes taut."
            )

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the tension in N at length `z` (m) and rate `dz` (m/s)."""
        e = z - self.length
        return where(e > 0.0, maximum(self.stiffness * e + self.damping * dz, 0.0), 0.0)

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at length `z` (m), J."""
        e = maximum(z - self.length, 0.0)
        return 0.5 * self.stiffness * e * e
