"""Ideal torque source: the commanded torque acts at once, up to a limit, as textbooks assume.

tau = clip(command, -limit, limit)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, limited
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class IdealTorque(Actuator):
    """Torque source without dynamics: the command acts at once, within ±limit.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    limit : Scalar, default inf
        Torque limit, N m.
    """

    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "N m"

    def __post_init__(self) -> None:
        self._check("limit")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return limited(command, self.limit), []
