"""Passive joint forces: spring and damper, and friction with a Stribeck curve.

SpringDamper       tau = -k (q - rest) - d v, in parallel (Kelvin-Voigt element)
StribeckFriction   tau = -(F_c + (F_s - F_c) exp(-(v/v_s)^2)) tanh(v/v_t) - b v

F_c Coulomb level, F_s static level, v_s Stribeck speed, v_t speed within which the sign of v is smoothed, b viscous.

Sources: W. Fluegge. Viscoelasticity. Blaisdell, 1967, chapter 1. B. Armstrong-Helouvry, P. Dupont, C. Canudas de Wit. A
survey of models, analysis tools and compensation methods for the control of machines with friction. Automatica 30(7),
1083-1138, 1994. The smooth sign: S. Andersson, A. Soederberg, S. Bjoerklund. Friction models for sliding dry, boundary
and mixed lubricated contacts. Tribology International 40(4), 580-587, 2007.

Differences from the papers: with a smooth sign nothing ever sticks, but creeps at a speed of about v_t; and the peak
stays below F_s unless v_t is much smaller than v_s. A small v_t makes the system stiff: its rate is about F_s / (v_t
inertia).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, ForceAndRates
from bellcrank.scalar import Scalar, exp, fabs, maximum, tanh


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

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar = 0.0) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return -self.k * (q - self.rest) - self.d * v, []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        return self.d


@dataclass(frozen=True)
class StribeckFriction(Actuator):
    """Passive friction with a static peak, a Coulomb level and a viscous part, smooth at zero speed.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    F_c : Scalar
        Coulomb level, N m.
    F_s : Scalar
        Static level, N m.
    v_s : Scalar, default 0.1
        Stribeck speed, rad/s.
    v_t : Scalar, default 0.01
        Speed within which the sign of the velocity is smoothed, rad/s.
    b : Scalar, default 0.0
        Viscous friction, N m s/rad.
    """

    F_c: Scalar  # N m
    F_s: Scalar  # N m
    v_s: Scalar = 0.1  # rad/s
    v_t: Scalar = 0.01  # rad/s
    b: Scalar = 0.0  # N m s / rad

    commanded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check("F_c", "F_s", "b")
        self._check("v_s", "v_t", above_zero=True)

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar = 0.0) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        r = v / self.v_s
        level = self.F_c + (self.F_s - self.F_c) * exp(-(r * r))
        return -level * tanh(v / self.v_t) - self.b * v, []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        level = maximum(self.F_c, self.F_s)
        return level / maximum(fabs(v), self.v_t) + self.b  # tanh(u) <= min(u, 1)
