"""A block of rubber between two frames: six stiffnesses and six dampings, in the axes of frame a.

    f = -k p - c v                                  p, v: place and velocity of b, as a sees them
    e = (R - R^T)/2 as a vector                     sin(angle) along the axis: the angles, as long as they are small
    n = -(tr(R) 1 - R)^T/2 (k e) - c w              so that n.w is exactly the rate of k e.e/2 and the damper's power

e turns as de/dt = (tr(R) 1 - R)/2 w. At right angles the block is at its strongest; it is meant for far less.
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
    """stiffness: (x, y, z) in N/m, then about (x, y, z) in N m/rad; damping likewise. rest: where b is in a at rest."""

    stiffness: Six
    damping: Six = (0.0,) * 6
    rest: tuple[Scalar, Scalar, Scalar] = (0.0, 0.0, 0.0)  # m

    def __post_init__(self) -> None:
        for what, count in (("stiffness", 6), ("damping", 6), ("rest", 3)):
            given = getattr(self, what)
            if not isinstance(given, tuple | list) or len(given) != count:
                raise InputError(f"{self._called}: {what} is {given!r}; expected {count} numbers.")
        self._check("stiffness", "damping")

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
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
        p, e, _ = self._strain(pose)
        total: Scalar = 0.0
        for k, s in zip(self.stiffness, [*p, *e], strict=True):
            total = total + 0.5 * k * s * s
        return total

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        total: Scalar = 0.0
        for c, v in zip(self.damping, velocity, strict=True):
            total = total + c * v * v
        return total

    def _strain(self, pose: Any) -> tuple[Triple, Triple, Scalar]:
        p = [pose[i, 3] - self.rest[i] for i in range(3)]
        e = [0.5 * (pose[(i + 2) % 3, (i + 1) % 3] - pose[(i + 1) % 3, (i + 2) % 3]) for i in range(3)]
        return p, e, pose[0, 0] + pose[1, 1] + pose[2, 2]
