"""Spring and damper side by side (the Kelvin-Voigt element), passive.

    tau = -k (q - rest) - d v

Source: W. Fluegge. Viscoelasticity. Blaisdell, 1967, chapter 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class SpringDamper(Actuator):
    """A spring and damper on a joint, without a command: stiffness, damping, rest."""

    k: Scalar = 0.0  # N m / rad
    d: Scalar = 0.0  # N m s / rad
    rest: Scalar = 0.0  # rad

    commanded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check("k", "d")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar = 0.0
    ) -> tuple[Scalar, list[Scalar]]:
        return -self.k * (q - self.rest) - self.d * v, []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        return self.d
