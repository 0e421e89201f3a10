"""Force elements between two frames: nonlinear spring and cable along the line between their origins, and bushing.

    L        distance of the two origins              dL      its rate
    T        tension: positive pulls them together    force on b: -T along the line from a to b

NonlinearSpring    T = spring(L - length) + damper(dL)
Cable              T = max(k e + c dL, 0) where e = L - length > 0, else 0: it cannot push

Bushing            linear stiffness and damping in all six directions, in the axes of frame a

    f = -k p - c v                                  p, v: position and velocity of b relative to a
    e = (R - R^T)/2 as a vector                     sin(angle) along the axis; the rotation angles if they are small
    n = -(tr(R) 1 - R)^T/2 (k e) - c w              so that n.w is exactly minus d(k e.e/2)/dt minus the damper's power

The rate of e is de/dt = (tr(R) 1 - R)/2 w. The restoring moment is largest at a right angle; the model is meant for
much smaller rotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.actuators.actuator import is_known
from bellcrank.errors import InputError
from bellcrank.forces.element import ZERO_VECTOR, Between, Triple, WrenchAndRates, dot
from bellcrank.forces.tension import SpringDamper, Tension
from bellcrank.scalar import Scalar, maximum, sqrt, where

MIN_SQUARED_LENGTH = 1e-150  # m^2, smallest squared length: coincident ends have no direction
Six = tuple[Scalar, ...]


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

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
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


@dataclass(frozen=True)
class Bushing(Between):
    """Rubber bushing between two frames: six stiffnesses and six dampings.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    stiffness : tuple of 6 Scalar
        Along x, y, z in N/m, then about x, y, z in N m/rad.
    damping : tuple of 6 Scalar, default zeros
        Along x, y, z in N s/m, then about x, y, z in N m s/rad.
    rest : tuple of 3 Scalar, default (0, 0, 0)
        Position of b in frame a without load, m.
    """

    stiffness: Six
    damping: Six = (0.0,) * 6
    rest: tuple[Scalar, Scalar, Scalar] = (0.0, 0.0, 0.0)  # m

    def __post_init__(self) -> None:
        for field_name, count in (("stiffness", 6), ("damping", 6), ("rest", 3)):
            numbers = getattr(self, field_name)
            if not isinstance(numbers, tuple | list) or len(numbers) != count:
                raise InputError(f"{self._label}: {field_name} is {numbers!r}; expected {count} numbers.")
        self._check("stiffness", "damping")

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return the force and moment on frame b and the state rates; see `Between.__call__`."""
        k, c = self.stiffness, self.damping
        p, e, trace = self._strain(pose)
        force = [-k[i] * p[i] - c[i] * velocity[i] for i in range(3)]
        g = [k[3 + i] * e[i] for i in range(3)]
        moment = []
        for i in range(3):
            turned = pose[0, i] * g[0] + pose[1, i] * g[1] + pose[2, i] * g[2]
            moment.append(-0.5 * (trace * g[i] - turned) - c[3 + i] * velocity[3 + i])
        return force, moment, []

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `pose` and `x` as in `Between.energy`."""
        p, e, _ = self._strain(pose)
        total: Scalar = 0.0
        for k, s in zip(self.stiffness, [*p, *e], strict=True):
            total = total + 0.5 * k * s * s
        return total

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `pose`, `velocity` and `x` as in `Between.loss`."""
        total: Scalar = 0.0
        for c, v in zip(self.damping, velocity, strict=True):
            total = total + c * v * v
        return total

    def _strain(self, pose: Any) -> tuple[Triple, Triple, Scalar]:
        p = [pose[i, 3] - self.rest[i] for i in range(3)]
        e = [0.5 * (pose[(i + 2) % 3, (i + 1) % 3] - pose[(i + 1) % 3, (i + 2) % 3]) for i in range(3)]
        return p, e, pose[0, 0] + pose[1, 1] + pose[2, 2]
