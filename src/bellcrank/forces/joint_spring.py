"""Spring and damper in one joint, from any law or measured points: tau = -spring(q - rest) - damper(v)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.forces.curves import law_integral
from bellcrank.forces.element import Coupling
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class JointSpring(Coupling):
    """Nonlinear spring and damper in one joint.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Name of one joint coordinate, (name,).
    spring : callable, optional
        Torque in N m as a function of the deflection in rad (N and m for a prismatic joint), or a Curve.
    damper : callable, optional
        Torque in N m as a function of the velocity in rad/s (N and m/s for a prismatic joint), or a Curve.
    rest : Scalar, default 0.0
        Joint coordinate at which the spring is unloaded, rad or m.
    """

    spring: Callable[[Scalar], Scalar] | None = None
    damper: Callable[[Scalar], Scalar] | None = None
    rest: Scalar = 0.0

    def __post_init__(self) -> None:
        self._check_joint_count(1)
        self._check_laws("spring", "damper")

    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return the forces on the joints and the state rates; see `Coupling.__call__`."""
        total: Scalar = 0.0
        if self.spring is not None:
            total = total - self.spring(q[0] - self.rest)
        if self.damper is not None:
            total = total - self.damper(v[0])
        return [total], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `q` and `x` as in `Coupling.energy`."""
        return 0.0 if self.spring is None else law_integral(self.spring, q[0] - self.rest)

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `q`, `v` and `x` as in `Coupling.loss`."""
        return 0.0 if self.damper is None else self.damper(v[0]) * v[0]
