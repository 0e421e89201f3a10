"""Spring and damper in parallel (Kelvin-Voigt element), passive.

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
    """Passive linear spring and damper on a joint.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    k : Scalar, default 0.0
        Stiffness, N m/rad.
    d : Scalar, default 0.0
        Damping, N m s/rad.
    rest : Scalar, default 0.0
        Joint angle without load, rad.
    """

    k: Scalar = 0.0  # N m / rad
    d: Scalar = 0.0  # N m s / rad
    rest: Scalar = 0.0  # rad

    commanded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check("k", "d")

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar = 0.0
    ) -> tuple[Scalar, list[Scalar]]:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return -self.k * (q - self.rest) - self.d * v, []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        return self.d
