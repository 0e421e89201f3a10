"""Bushing: linear stiffness and damping in all six directions between two frames, in the axes of frame a.

    f = -k p - c v                                  p, v: position and velocity of b relative to a
    e = (R - R^T)/2 as a vector                     sin(angle) along the axis; the rotation angles if they are small
    n = -(tr(R) 1 - R)^T/2 (k e) - c w              so that n.w is exactly minus d(k e.e/2)/dt minus the damper's power

The rate of e is de/dt = (tr(R) 1 - R)/2 w. The restoring moment is largest at a right angle; the model is meant for
much smaller rotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.forces.element import Between, Triple
from bellcrank.scalar import Scalar

Six = tuple[Scalar, ...]


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

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
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
