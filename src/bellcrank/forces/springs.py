"""Springs, cable and bushing between two frames, and spring and limit stops in one joint.

Along the line between the origins of two frames:

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

JointSpring        tau = -spring(q - rest) - damper(v), from any law or measured points
EndStop            N = k z max(1 + d dz/dt, 0), z beyond a limit: a Hunt-Crossley force (impact.py)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.actuators.actuator import is_known
from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.forces.element import ZERO_VECTOR, Between, Triple, WrenchAndRates, dot
from bellcrank.forces.impact import damping_of, normal_force, stored_energy
from bellcrank.forces.tension import JointTension, SpringDamper, Tension
from bellcrank.model import Mechanism
from bellcrank.parameters.validation import check_order
from bellcrank.scalar import Scalar, maximum, ordered_sum, sqrt, where

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


@dataclass(frozen=True)
class JointSpring(SpringDamper, JointTension):
    """Nonlinear spring and damper in one joint.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Name of one joint coordinate, (name,).
    spring : callable, optional
        Torque in N m as a function of the deflection in rad (N and m for a prismatic joint), or a Curve.
    damper : callable, optional
        Torque in N m as a function of the velocity in rad/s (N and m/s for a prismatic joint), or a Curve.
    rest : Scalar, default 0.0
        Joint coordinate at which the spring is unloaded, rad or m.
    """

    spring: Callable[[Scalar], Scalar] | None = None
    damper: Callable[[Scalar], Scalar] | None = None
    rest: Scalar = 0.0

    def __post_init__(self) -> None:
        self._check_joint_count(1)
        self._check_laws("spring", "damper")

    @property
    def unloaded(self) -> Scalar:
        """Joint coordinate at which the spring is unloaded."""
        return self.rest


@dataclass(frozen=True)
class EndStop(JointTension):
    """Compliant stops at the limits of one joint.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Name of one joint coordinate, (name,).
    lower : Scalar, default -inf
        Lower limit, rad or m; may be infinite.
    upper : Scalar, default inf
        Upper limit, rad or m; may be infinite.
    stiffness : Scalar
        Stiffness beyond a limit, N m/rad or N/m, above 0.
    damping : Scalar, default 0.0
        Hunt-Crossley damping, s/rad or s/m; `damping_of(restitution, speed)` computes it.
    """

    lower: Scalar = -math.inf
    upper: Scalar = math.inf
    stiffness: Scalar = 0.0  # N m/rad, or N/m
    damping: Scalar = 0.0  # s/rad, or s/m; see damping_of(restitution, speed)

    def __post_init__(self) -> None:
        self._check_joint_count(1)
        self._check("damping")
        self._check("stiffness", above_zero=True)
        check_order(self, self._label, "lower", "upper")

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the force back from the limits at joint coordinate `z` and velocity `dz`, N m or N."""
        k, d = self.stiffness, self.damping
        return ordered_sum(s * normal_force(depth, s * dz, k, d) for s, depth in self._penetrations(z))

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at joint coordinate `z`, J."""
        return ordered_sum(stored_energy(depth, self.stiffness) for _, depth in self._penetrations(z))

    def _penetrations(self, q: Scalar) -> list[tuple[float, Scalar]]:
        """Return (direction, penetration) for each finite limit."""
        ends = [(-1.0, self.lower), (1.0, self.upper)]
        return [(sign, sign * (q - end)) for sign, end in ends if not (is_known(end) and math.isinf(end))]


@explain_argument_errors
def joint_stops(
    mechanism: Mechanism,
    stiffness: Scalar = 1e5,
    restitution: float = 0.3,
    speed: float = 1.0,
    joints: Sequence[str] = (),
) -> list[EndStop]:
    """Return one compliant stop for each joint that has limits, so that the limits take effect.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism whose joint limits are used.
    stiffness : Scalar, default 1e5
        Stiffness of each stop, N m/rad; N/m for a prismatic joint.
    restitution : float, default 0.3
        Ratio of the rebound speed to the impact speed.
    speed : float, default 1.0
        Impact speed at which `restitution` holds, rad/s or m/s.
    joints : sequence of str, optional
        Names of the joints; all that have limits if empty.

    Returns
    -------
    list[EndStop]
        Elements for `bc.system(..., elements=...)`.

    Raises
    ------
    InputError
        If a named joint has no limits.
    """
    limited_joints = {j.name: j for j in mechanism.own_joints if _has_limits(j.limits.lower, j.limits.upper)}
    for name in joints:
        if name not in limited_joints:
            raise InputError(
                f'joint_stops of "{mechanism.name}": joint "{name}" has no limits. Those that have: '
                f"{', '.join(limited_joints) or 'none'}."
            )
    stopped_joints = [
        j for name, j in limited_joints.items() if name in mechanism.columns[0] and (not joints or name in joints)
    ]
    d = damping_of(restitution, speed)
    return [EndStop(f"{j.name}.stop", (j.name,), j.limits.lower, j.limits.upper, stiffness, d) for j in stopped_joints]


def _has_limits(lower: Scalar, upper: Scalar) -> bool:
    return not all(is_known(x) and math.isinf(x) for x in (lower, upper))
