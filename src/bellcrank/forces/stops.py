"""Stops at the ends of a joint's way: N = k z max(1 + d dz/dt, 0), z beyond an end (impact.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.actuators.actuator import known
from bellcrank.errors import InputError
from bellcrank.forces.element import Coupling
from bellcrank.forces.impact import damping_of, push, stored
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.parameters.part_numbers import check_order
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class EndStop(Coupling):
    """joints: the name of one. Beyond lower and upper (rad, or m) it is pushed back; either may be infinite."""

    lower: Scalar = -math.inf
    upper: Scalar = math.inf
    stiffness: Scalar = 0.0  # N m/rad, or N/m
    damping: Scalar = 0.0  # s/rad, or s/m; damping_of(restitution, speed) has it

    def __post_init__(self) -> None:
        self._pair(1)
        self._check("damping")
        self._check("stiffness", above_zero=True)
        check_order(self, self._called, "lower", "upper")

    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        total: Scalar = 0.0
        for sign, z in self._beyond(q[0]):
            total = total - sign * push(z, sign * v[0], self.stiffness, self.damping)
        return [total], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        total: Scalar = 0.0
        for _, z in self._beyond(q[0]):
            total = total + stored(z, self.stiffness)
        return total

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        total: Scalar = 0.0
        for sign, z in self._beyond(q[0]):
            dz = sign * v[0]
            total = total + (push(z, dz, self.stiffness, self.damping) - push(z, 0.0, self.stiffness, 0.0)) * dz
        return total

    def _beyond(self, q: Scalar) -> list[tuple[float, Scalar]]:
        """(direction, how far beyond) of each end that there is."""
        ends = [(-1.0, self.lower), (1.0, self.upper)]
        return [(sign, sign * (q - end)) for sign, end in ends if not (known(end) and math.isinf(end))]


@explained
def joint_stops(
    mechanism: Mechanism,
    stiffness: Scalar = 1e5,
    restitution: float = 0.3,
    speed: float = 1.0,
    joints: Sequence[str] = (),
) -> list[EndStop]:
    """A stop at every limit of the mechanism's joints, or of those that are named: limits that act.

    stiffness: N m/rad, N/m on a slide. restitution: what a joint that comes with `speed` keeps of it.
    """
    limited = {j.name: j for j in mechanism.own_joints if _limited(j.limits.lower, j.limits.upper)}
    for name in joints:
        if name not in limited:
            raise InputError(
                f'joint_stops of "{mechanism.name}": joint "{name}" has no limits. Those that have: '
                f"{', '.join(limited) or 'none'}."
            )
    single = [j for name, j in limited.items() if name in mechanism.columns[0] and (not joints or name in joints)]
    d = damping_of(restitution, speed)
    return [EndStop(f"{j.name}.stop", (j.name,), j.limits.lower, j.limits.upper, stiffness, d) for j in single]


def _limited(lower: Scalar, upper: Scalar) -> bool:
    return not all(known(x) and math.isinf(x) for x in (lower, upper))
