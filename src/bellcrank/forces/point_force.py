"""External forces on a point of a machine, such as soil and barriers: functions of its position and velocity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from bellcrank.scalar import Scalar, sqrt

Triple = list[Scalar]


class PointForce(ABC):
    """Force at the origin of a frame, without a moment."""

    @abstractmethod
    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on a point at `p` (m) that moves with `u` (m/s), all in world axes."""

    def __call__(self, t: Scalar, pose: Any, velocity: Any) -> tuple[Triple, Triple]:
        """Return the force and the moment on the frame, in world axes.

        Parameters
        ----------
        t : Scalar
            Time, s.
        pose : array_like, shape (3, 4) or (4, 4)
            Pose of the frame in the world, position in m.
        velocity : sequence of Scalar, length 6
            Linear and angular velocity of the frame in world axes, m/s and rad/s.

        Returns
        -------
        tuple[list[Scalar], list[Scalar]]
            Force in N and moment in N m.
        """
        return self.force([pose[k, 3] for k in range(3)], [velocity[k] for k in range(3)]), [0.0, 0.0, 0.0]


def against_motion(u: Triple, R: Scalar, slow: Scalar) -> Triple:
    """Return a force of magnitude `R` against the velocity `u`; below the speed `slow` it acts like a damper."""
    speed = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + slow * slow)
    return [-R / speed * x for x in u]
