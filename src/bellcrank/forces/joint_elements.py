"""Force elements in one joint: spring and damper, and compliant limit stops.

JointSpring    tau = -spring(q - rest) - damper(v), from any law or measured points
EndStop        N = k z max(1 + d dz/dt, 0), z beyond a limit: a Hunt-Crossley force (impact.py)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.actuators.actuator import is_known
from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.forces.impact import damping_of, normal_force, stored_energy
from bellcrank.forces.tension import JointTension, SpringDamper
from bellcrank.model import Mechanism
from bellcrank.parameters.validation import check_order
from bellcrank.scalar import Scalar, ordered_sum


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


@dataclass(frozen=True)
class EndStop(JointTension):
    """Compliant stops at the limits of one joint.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Name of one joint coordinate, (name,).
    lower : Scalar, default -inf
        Lower limit, rad or m; may be infinite.
    upper : Scalar, default inf
        Upper limit, rad or m; may be infinite.
    stiffness : Scalar
        Stiffness beyond a limit, N m/rad or N/m, above 0.
    damping : Scalar, default 0.0
        Hunt-Crossley damping, s/rad or s/m; `damping_of(restitution, speed)` computes it.
    """

    lower: Scalar = -math.inf
    upper: Scalar = math.inf
    stiffness: Scalar = 0.0  # N m/rad, or N/m
    damping: Scalar = 0.0  # s/rad, or s/m; see damping_of(restitution, speed)

    def __post_init__(self) -> None:
        self._check_joint_count(1)
        self._check("damping")
        self._check("stiffness", above_zero=True)
        check_order(self, self._label, "lower", "upper")

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the force back from the limits at joint coordinate `z` and velocity `dz`, N m or N."""
        k, d = self.stiffness, self.damping
        return ordered_sum(s * normal_force(depth, s * dz, k, d) for s, depth in self._penetrations(z))

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at joint coordinate `z`, J."""
        return ordered_sum(stored_energy(depth, self.stiffness) for _, depth in self._penetrations(z))

    def _penetrations(self, q: Scalar) -> list[tuple[float, Scalar]]:
        """Return (direction, penetration) for each finite limit."""
        ends = [(-1.0, self.lower), (1.0, self.upper)]
        return [(sign, sign * (q - end)) for sign, end in ends if not (is_known(end) and math.isinf(end))]


@explain_argument_errors
def joint_stops(
    mechanism: Mechanism,
    stiffness: Scalar = 1e5,
    restitution: float = 0.3,
    speed: float = 1.0,
    joints: Sequence[str] = (),
) -> list[EndStop]:
    """Return one compliant stop for each joint that has limits, so that the limits take effect.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism whose joint limits are used.
    stiffness : Scalar, default 1e5
        Stiffness of each stop, N m/rad; N/m for a prismatic joint.
    restitution : float, default 0.3
        Ratio of the rebound speed to the impact speed.
    speed : float, default 1.0
        Impact speed at which `restitution` holds, rad/s or m/s.
    joints : sequence of str, optional
        Names of the joints; all that have limits if empty.

    Returns
    -------
    list[EndStop]
        Elements for `bc.system(..., elements=...)`.

    Raises
    ------
    InputError
        If a named joint has no limits.
    """
    limited_joints = {j.name: j for j in mechanism.own_joints if _has_limits(j.limits.lower, j.limits.upper)}
    for name in joints:
        if name not in limited_joints:
            raise InputError(
                f'joint_stops of "{mechanism.name}": joint "{name}" has no limits. Those that have: '
                f"{', '.join(limited_joints) or 'none'}."
            )
    stopped_joints = [
        j for name, j in limited_joints.items() if name in mechanism.columns[0] and (not joints or name in joints)
    ]
    d = damping_of(restitution, speed)
    return [EndStop(f"{j.name}.stop", (j.name,), j.limits.lower, j.limits.upper, stiffness, d) for j in stopped_joints]


def _has_limits(lower: Scalar, upper: Scalar) -> bool:
    return not all(is_known(x) and math.isinf(x) for x in (lower, upper))
