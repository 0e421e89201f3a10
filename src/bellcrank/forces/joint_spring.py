"""A spring and a damper in one joint, by any law or by measured points: tau = -spring(q - rest) - damper(v)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.forces.curves import area
from bellcrank.forces.element import Coupling
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class JointSpring(Coupling):
    """joints: the name of one. spring: N m as a function of rad (N of m); damper: of rad/s (m/s)."""

    spring: Callable[[Scalar], Scalar] | None = None
    damper: Callable[[Scalar], Scalar] | None = None
    rest: Scalar = 0.0

    def __post_init__(self) -> None:
        self._pair(1)
        self._check_laws("spring", "damper")

    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        total: Scalar = 0.0
        if self.spring is not None:
            total = total - self.spring(q[0] - self.rest)
        if self.damper is not None:
            total = total - self.damper(v[0])
        return [total], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        return 0.0 if self.spring is None else area(self.spring, q[0] - self.rest)

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        return 0.0 if self.damper is None else self.damper(v[0]) * v[0]
