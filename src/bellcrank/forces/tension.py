"""Tensions: force laws in one coordinate, which is a distance of frames or a sum of joint coordinates.

T(z, dz/dt)      pulls z back: its power on the bodies is -T dz/dt
E(z)             stored energy, dE/dz = T(z, 0)
loss             (T(z, dz/dt) - T(z, 0)) dz/dt
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.forces.curves import law_integral
from bellcrank.forces.element import Coupling
from bellcrank.scalar import Scalar, ordered_sum


class Tension(ABC):
    """Force law in one coordinate: a distance in m or an angle in rad."""

    @abstractmethod
    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the tension in N or N m, positive if it reduces `z`, at the rate `dz`."""

    @abstractmethod
    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at `z`, J."""

    def lost(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the dissipated power at `z` and its rate `dz`, W."""
        return (self.pull(z, dz) - self.pull(z, 0.0)) * dz


class SpringDamper(Tension):
    """Spring and damper, each a function, a Curve, or None."""

    spring: Callable[[Scalar], Scalar] | None
    damper: Callable[[Scalar], Scalar] | None

    @property
    @abstractmethod
    def unloaded(self) -> Scalar:
        """Coordinate at which the spring is unloaded."""

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the tension in N or N m, positive if it reduces `z`, at the rate `dz`."""
        elastic = 0.0 if self.spring is None else self.spring(z - self.unloaded)
        return elastic + (0.0 if self.damper is None else self.damper(dz))

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at `z`, J."""
        return 0.0 if self.spring is None else law_integral(self.spring, z - self.unloaded)

    def lost(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the dissipated power at `z` and its rate `dz`, W."""
        return 0.0 if self.damper is None else self.damper(dz) * dz


@dataclass(frozen=True)
class JointTension(Coupling, Tension):
    """Base class of elements with a tension in a weighted sum of joint coordinates.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the joint coordinates on which the element acts.
    """

    @property
    def weights(self) -> tuple[Scalar, ...]:
        """Change of z for each unit of the joint coordinates."""
        return (1.0,)

    def coordinate(self, q: Sequence[Scalar]) -> Scalar:
        """Return z for the joint coordinates `q`, or its rate for their velocities."""
        return ordered_sum(w * x for w, x in zip(self.weights, q, strict=True))

    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return the forces on the joints and the state rates; see `Coupling.__call__`."""
        T = self.pull(self.coordinate(q), self.coordinate(v))
        return [-w * T for w in self.weights], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `q` and `x` as in `Coupling.energy`."""
        return self.stored(self.coordinate(q))

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `q`, `v` and `x` as in `Coupling.loss`."""
        return self.lost(self.coordinate(q), self.coordinate(v))
