"""Spring and damper in one joint, from any law or measured points: tau = -spring(q - rest) - damper(v)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellcrank.forces.tension import JointTension, SpringDamper
from bellcrank.scalar import Scalar


@dataclass(frozen=True)
class JointSpring(SpringDamper, JointTension):
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

    @property
    def unloaded(self) -> Scalar:
        """Joint coordinate at which the spring is unloaded."""
        return self.rest
