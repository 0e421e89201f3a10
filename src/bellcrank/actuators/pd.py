"""PD servo: a spring to the desired position and a damper to the ground, up to a torque limit.

    tau = clip(kp (q_d - q) - kd v, -limit, limit)

Source: M. Takegaki, S. Arimoto. A new feedback method for dynamic control of manipulators. ASME Journal of Dynamic
Systems, Measurement, and Control 103(2), 119-125, 1981: it is stable on any arm, for it only adds a spring and a
damper. Under a load it stops short by load / kp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, damping_below, limited
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class PD(Actuator):
    """A spring and a damper towards the commanded position: kp (N m/rad), kd (N m s/rad), and at most limit (N m)."""

    kp: Scalar  # N m / rad
    kd: Scalar = 0.0  # N m s / rad
    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "rad"

    def __post_init__(self) -> None:
        self._check("kp", "kd", "limit")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        return limited(self.kp * (command - q) - self.kd * v, self.limit), []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        return damping_below(self.kp * (command - q) - self.kd * v, self.limit, self.kd)
