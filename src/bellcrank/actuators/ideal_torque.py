"""Ideal torque: what is commanded acts at once, up to a limit. The actuator that textbooks assume.

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
    """What is commanded acts at once, within ±limit (N m)."""

    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "N m"

    def __post_init__(self) -> None:
        self._check("limit")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        return limited(command, self.limit), []
