"""Soft barriers for points of a machine: ground pads, boxes and posts with spring and damper, without branches.

    pad     level ground below a point:     f_z = k z / (1 + k z / B) (1 - d u_z), at least 0, bearing at most B;
                                            and friction mu f_z against the sliding
    block   a box in world axes:            spring force out through the nearest side, with a damper
    post    an upright round post:          spring force radially outwards, with a damper

The barriers are compliant on purpose: the stiffness of steel would need steps of microseconds. The damping follows
K. H. Hunt, F. R. E. Crossley. Coefficient of restitution interpreted as damping in vibroimpact. ASME Journal of Applied
Mechanics 42(2), 440-445, 1975.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError, brief
from bellcrank.forces.point_force import PointForce, Triple
from bellcrank.parameters.validation import check_order, check_range
from bellcrank.scalar import Scalar, clip, fabs, maximum, minimum, sqrt, where

ZERO_VECTOR = (0.0, 0.0, 0.0)
ExternalForce = Callable[..., tuple[list[Scalar], list[Scalar]]]


@dataclass(frozen=True)
class Together:
    """Sum of several external forces on one frame.

    Parameters
    ----------
    parts : tuple of callable
        External forces, each a function of (t, pose, velocity).
    """

    parts: tuple[ExternalForce, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple | list) or not all(map(callable, self.parts)):
            raise InputError(f"Together: parts is {brief(self.parts)}; expected a tuple of forces.")

    def __call__(self, t: Scalar, pose: Any, velocity: Any) -> tuple[list[Scalar], list[Scalar]]:
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
        force, moment = list[Scalar](ZERO_VECTOR), list[Scalar](ZERO_VECTOR)
        for part in self.parts:
            f, n = part(t, pose, velocity)
            force, moment = (
                [a + b for a, b in zip(force, f, strict=True)],
                [a + b for a, b in zip(moment, n, strict=True)],
            )
        return force, moment


@dataclass(frozen=True)
class Pad(PointForce):
    """Level ground below one point, with limited bearing force and Coulomb friction.

    Parameters
    ----------
    height : Scalar, default 0.0
        Height of the ground in the world, m.
    stiffness : Scalar, default 1.5e6
        Stiffness k at small depth, N/m.
    damping : Scalar, default 1.0
        Hunt-Crossley damping d, s/m.
    bears : Scalar, default 60e3
        Largest bearing force B, N.
    friction : Scalar, default 0.5
        Coefficient of friction.
    slow : Scalar, default 0.05
        Speed below which friction acts like a damper, m/s.
    """

    height: Scalar = 0.0  # m, height of the ground
    stiffness: Scalar = 1.5e6  # N/m
    damping: Scalar = 1.0  # s/m, d
    bears: Scalar = 60e3  # N, B: as 0.3 m2 of soil that yields at 200 kPa
    friction: Scalar = 0.5  # mu
    slow: Scalar = 0.05  # m/s, below it friction acts like a damper

    def __post_init__(self) -> None:
        check_range(self, "Pad", ("stiffness", "damping", "friction"))
        check_range(self, "Pad", ("bears", "slow"), above_zero=True)

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on a point at `p` (m) that moves with `u` (m/s), all in world axes."""
        x, y, vertical_velocity = u
        z = maximum(self.height - p[2], 0.0)
        spring = self.stiffness * z
        normal_force = spring / (1.0 + spring / self.bears) * maximum(1.0 - self.damping * vertical_velocity, 0.0)
        friction_per_speed = self.friction * normal_force / sqrt(x * x + y * y + self.slow * self.slow)
        return [-friction_per_speed * x, -friction_per_speed * y, normal_force]


@dataclass(frozen=True)
class Block(PointForce):
    """Solid box in world axes that pushes a point inside it out through the nearest side.

    Parameters
    ----------
    lower, upper : sequence of 3 Scalar
        Opposite corners in the world, m.
    stiffness : Scalar, default 2e6
        Stiffness, N/m.
    damping : Scalar, default 1.0
        Hunt-Crossley damping, s/m.
    """

    lower: Sequence[Scalar]
    upper: Sequence[Scalar]
    stiffness: Scalar = 2.0e6  # N/m
    damping: Scalar = 1.0  # s/m

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            corner = getattr(self, name)
            if not (isinstance(corner, tuple | list) or getattr(corner, "ndim", 0) == 1) or len(corner) != 3:
                raise InputError(f"Block: {name} is {brief(corner)}; expected a corner, (x, y, z).")
            object.__setattr__(self, name, tuple(corner))
        check_order(self, "Block", "lower", "upper")
        check_range(self, "Block", ("stiffness", "damping"))

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on a point at `p` (m) that moves with `u` (m/s), all in world axes."""
        depths, directions = [], []
        for k, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            x, middle = p[k], 0.5 * (low + high)
            depths.append(maximum(0.5 * (high - low) - fabs(x - middle), 0.0))
            directions.append(where(x < middle, -1.0, 1.0))
        nearest = minimum(minimum(depths[0], depths[1]), depths[2])
        force = []
        for k in range(3):
            restoring_force = self.stiffness * nearest * maximum(1.0 - self.damping * directions[k] * u[k], 0.0)
            force.append(where(depths[k] <= nearest, directions[k] * restoring_force, 0.0))
        return force


@dataclass(frozen=True)
class Post(PointForce):
    """Upright round post about the world's z axis; its force fades out smoothly at both ends.

    Parameters
    ----------
    radius : Scalar
        Radius, m.
    low, high : Scalar
        Heights of both ends, m.
    stiffness : Scalar, default 2e6
        Stiffness, N/m.
    damping : Scalar, default 1.0
        Hunt-Crossley damping, s/m.
    soft : Scalar, default 0.2
        Length at each end over which the force fades out, m.
    """

    radius: Scalar
    low: Scalar
    high: Scalar
    stiffness: Scalar = 2.0e6  # N/m
    damping: Scalar = 1.0  # s/m
    soft: Scalar = 0.2  # m

    def __post_init__(self) -> None:
        check_order(self, "Post", "low", "high")
        check_range(self, "Post", ("stiffness", "damping"))
        check_range(self, "Post", ("radius", "soft"), above_zero=True)

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on a point at `p` (m) that moves with `u` (m/s), all in world axes."""
        x, y, z = p
        r = sqrt(x * x + y * y + 1e-12)
        radial_velocity = (x * u[0] + y * u[1]) / r
        fade = clip((z - self.low) / self.soft, 0.0, 1.0) * clip((self.high - z) / self.soft, 0.0, 1.0)
        depth = maximum(self.radius - r, 0.0)
        restoring_force = fade * self.stiffness * depth * maximum(1.0 - self.damping * radial_velocity, 0.0)
        return [restoring_force * x / r, restoring_force * y / r, 0.0]
