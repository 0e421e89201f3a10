"""Compliant gears, racks, belts and worm gears between joints, with backlash and slip instead of constraint equations.

    Gear    z = q_b - ratio q_a              beyond +-backlash/2 a tooth pushes (impact.py); also for a rack
    Belt    s = r_a q_a - r_b q_b            two strands, T = max(T_0 +- (k s + c ds/dt), 0): each can only pull
    Worm    z = r q_worm sin g - R q_wheel cos g      normal to the thread, at the lead angle g
            N = k z + c dz/dt,  F = mu |N| tanh(u/u_0)  along the thread, u = r v_worm cos g + R v_wheel sin g

A worm with mu > tan g is self-locking: the wheel cannot drive it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.forces.element import Coupling, ForcesAndRates
from bellcrank.forces.impact import normal_force, stored_energy
from bellcrank.forces.tension import JointTension
from bellcrank.scalar import Scalar, cos, fabs, maximum, ordered_sum, sin, tanh


@dataclass(frozen=True)
class Gear(JointTension):
    """Gear pair with compliant teeth and backlash: q_b = ratio q_a within the play.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of joints a and b: two revolute joints, or a revolute joint and a rack.
    ratio : Scalar
        Transmission ratio dq_b/dq_a, not zero.
    stiffness : Scalar
        Tooth stiffness at joint b, N m/rad or N/m.
    backlash : Scalar, default 0.0
        Play at joint b from flank to flank, rad or m.
    damping : Scalar, default 0.0
        Hunt-Crossley damping of the teeth, s/rad or s/m.
    """

    ratio: Scalar
    stiffness: Scalar  # at joint b: N m/rad, or N/m
    backlash: Scalar = 0.0  # at joint b, from one flank to the other: rad, or m
    damping: Scalar = 0.0  # s/rad, or s/m: see impact.py

    def __post_init__(self) -> None:
        self._check_joint_count()
        self._check_not_zero("ratio")
        self._check("backlash", "damping")
        self._check("stiffness", above_zero=True)

    @property
    def weights(self) -> tuple[Scalar, ...]:
        """Change of the offset of the teeth for each unit of the joint coordinates."""
        return self.ratio, -1.0

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the force on joint b at the offset `z` of the teeth and its rate `dz`, N m or N."""
        front, back = (
            normal_force(sign * z - 0.5 * self.backlash, sign * dz, self.stiffness, self.damping)
            for sign in (1.0, -1.0)
        )
        return front - back

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at the offset `z` of the teeth, J."""
        return stored_energy(fabs(z) - 0.5 * self.backlash, self.stiffness)


@dataclass(frozen=True)
class Rack(Gear):
    """Rack and pinion with compliant teeth and backlash.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the pinion's and of the rack's joint, in this order.
    ratio : Scalar
        Radius of the pinion, m/rad.
    stiffness : Scalar
        Tooth stiffness along the rack, N/m.
    backlash : Scalar, default 0.0
        Play along the rack from flank to flank, m.
    damping : Scalar, default 0.0
        Hunt-Crossley damping of the teeth, s/m.
    """


@dataclass(frozen=True)
class Belt(JointTension):
    """Elastic belt round two pulleys, with two strands that can only pull.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the joints of pulleys a and b.
    radius_a, radius_b : Scalar
        Pulley radii, m. A negative radius crosses the belt, so that the pulleys turn in opposite directions.
    stiffness : Scalar
        Stiffness of one strand, N/m.
    damping : Scalar, default 0.0
        Damping of one strand, N s/m.
    tension : Scalar, default 0.0
        Tension of each strand at rest, N.
    """

    radius_a: Scalar  # m
    radius_b: Scalar  # m
    stiffness: Scalar  # N/m, of one strand
    damping: Scalar = 0.0  # N s/m
    tension: Scalar = 0.0  # N, of each strand at rest

    def __post_init__(self) -> None:
        self._check_joint_count()
        self._check_not_zero("radius_a", "radius_b")
        self._check("damping", "tension")
        self._check("stiffness", above_zero=True)

    @property
    def weights(self) -> tuple[Scalar, ...]:
        """Change of the stretch of a strand for each unit of the joint coordinates, m/rad."""
        return self.radius_a, -self.radius_b

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the difference of both tensions in N at the stretch `z` (m) of a strand and its rate `dz` (m/s)."""
        tight, slack = self._strand_tensions(z, dz)
        return tight - slack

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored in both taut strands at the stretch `z` (m), J."""
        return ordered_sum(T * T * (0.5 / self.stiffness) for T in self._strand_tensions(z, 0.0))

    def _strand_tensions(self, z: Scalar, dz: Scalar) -> tuple[Scalar, Scalar]:
        tension_change = self.stiffness * z + self.damping * dz
        return maximum(self.tension + tension_change, 0.0), maximum(self.tension - tension_change, 0.0)


@dataclass(frozen=True)
class Worm(Coupling):
    """Worm gear with a compliant thread and friction along it.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the worm's and of the wheel's joint, in this order.
    radius_worm, radius_wheel : Scalar
        Radii, m.
    lead : Scalar
        Lead angle of the thread, rad.
    stiffness : Scalar
        Stiffness normal to the thread, N/m.
    damping : Scalar, default 0.0
        Damping normal to the thread, N s/m.
    friction : Scalar, default 0.0
        Coefficient of friction along the thread.
    slow : Scalar, default 1e-3
        Sliding speed below which friction acts like a damper, m/s.
    """

    radius_worm: Scalar  # m
    radius_wheel: Scalar  # m
    lead: Scalar  # rad, of the thread
    stiffness: Scalar  # N/m, normal to the thread
    damping: Scalar = 0.0  # N s/m
    friction: Scalar = 0.0
    slow: Scalar = 1e-3  # m/s, below it friction acts like a damper

    def __post_init__(self) -> None:
        self._check_joint_count()
        self._check("damping", "friction")
        self._check("stiffness", "slow", "radius_worm", "radius_wheel", above_zero=True)

    @property
    def ratio(self) -> Scalar:
        """Rotation of the wheel for one rotation of the worm."""
        return self.radius_worm * sin(self.lead) / (self.radius_wheel * cos(self.lead))

    @property
    def locks(self) -> bool:
        """True if the gear is self-locking: the wheel cannot drive the worm."""
        return bool(self.friction > math.tan(self.lead))

    def __call__(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> ForcesAndRates:
        """Return the forces on the joints and the state rates; see `Coupling.__call__`."""
        N, F, _ = self._forces(q, v)
        s, c = sin(self.lead), cos(self.lead)
        return [-self.radius_worm * (N * s + F * c), self.radius_wheel * (N * c - F * s)], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `q` and `x` as in `Coupling.energy`."""
        z = self._normal_offset(q)
        return 0.5 * self.stiffness * z * z

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `q`, `v` and `x` as in `Coupling.loss`."""
        dz = self._normal_offset(v)
        _, F, u = self._forces(q, v)
        return self.damping * dz * dz + F * u

    def _forces(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        """Return the normal force, the friction force along the thread and the sliding speed."""
        N = self.stiffness * self._normal_offset(q) + self.damping * self._normal_offset(v)
        u = self.radius_worm * cos(self.lead) * v[0] + self.radius_wheel * sin(self.lead) * v[1]
        return N, self.friction * fabs(N) * tanh(u / self.slow), u

    def _normal_offset(self, q: Sequence[Scalar]) -> Scalar:
        return self.radius_worm * sin(self.lead) * q[0] - self.radius_wheel * cos(self.lead) * q[1]
