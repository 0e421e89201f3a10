"""PD servo: a spring to the desired position and a damper to the ground, up to a torque limit.

    tau = clip(kp (q_d - q) - kd v, -limit, limit)

Source: M. Takegaki, S. Arimoto. A new feedback method for dynamic control of manipulators. ASME Journal of Dynamic
Systems, Measurement, and Control 103(2), 119-125, 1981: the servo is stable on any arm, because it only adds a spring
and a damper. Its steady error under a load is load / kp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, limited, limited_damping
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class PD(Actuator):
    """PD servo to the commanded position, with a torque limit.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    kp : Scalar
        Position gain, N m/rad.
    kd : Scalar, default 0.0
        Velocity gain, N m s/rad.
    limit : Scalar, default inf
        Torque limit, N m.
    """

    kp: Scalar  # N m / rad
    kd: Scalar = 0.0  # N m s / rad
    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "rad"

    def __post_init__(self) -> None:
        self._check("kp", "kd", "limit")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return limited(self.kp * (command - q) - self.kd * v, self.limit), []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        return limited_damping(self.kp * (command - q) - self.kd * v, self.limit, self.kd)
