"""External forces on points of a machine, functions of position and velocity without branches: soil and barriers.

Cutting   soil at the edge of a blade, with parameters that the ground model keeps up to date

    z = max(height + slope . (x, y) - height of the edge, 0)          depth below the surface ahead
    R = square z^2 + linear z + constant z / (z + give)               ground/soils.py, for the current soil and blade
    f = -R u / sqrt(u.u + u_0^2)                                      against the edge's velocity u
    f_z *= loose where u_z > 0                                        nothing is cut on the way up
    f_z += B z / (z + give)                                           bearing force of the ground, B at large depth

Soil      level soil at the edge of a blade

    z = max(ground - height of the edge, 0)                           depth
    R = width z (cohesion + weight z)                                 cutting resistance; f and bearing as above

Pad       level ground below a point: f_z = k z / (1 + k z / B) (1 - d u_z), at least 0, bearing at most B; and friction
          mu f_z against the sliding
Block     a box in world axes: spring force out through the nearest side, with a damper
Post      an upright round post: spring force radially outwards, with a damper

The numbers of Cutting are scalars of any kind. As parameters of a system they are inputs of its step, and
ground/contact.py sets them at its own rate, from the surface ahead of the edge and from the soil that was swept up.

R of Soil has the two leading terms of the fundamental earth-moving equation, one that grows with the depth and one with
its square: A. R. Reece. The fundamental equation of earth-moving mechanics. Proceedings of the Institution of
Mechanical Engineers 179 (3F), 16-22, 1964. Orders of magnitude for loam: E. McKyes. Soil Cutting and Tillage. Elsevier,
1985.

Differences from the papers (see ground/soils.py): the earthmoving equation gives a force at the friction angle to the
blade; here a force of the same magnitude opposes the motion, whatever the orientation of the blade, so that soil never
drives a machine. Below the speed u_0 it acts like a damper, so nothing sticks. Soil moves no soil; soil that was cut is
there again, and the bucket carries none.

Pads, blocks and posts are compliant on purpose: the stiffness of steel would need steps of microseconds. The damping
follows K. H. Hunt, F. R. E. Crossley. Coefficient of restitution interpreted as damping in vibroimpact. ASME Journal of
Applied Mechanics 42(2), 440-445, 1975.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError, brief
from bellcrank.parameters.validation import check_order, check_range
from bellcrank.scalar import Scalar, clip, fabs, maximum, minimum, sqrt, where

Triple = list[Scalar]
ZERO_VECTOR = (0.0, 0.0, 0.0)
ExternalForce = Callable[..., tuple[list[Scalar], list[Scalar]]]


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


@dataclass(frozen=True)
class Soil(PointForce):
    """Level ground that resists cutting: a force against the motion that grows with depth, and a bearing force.

    Parameters
    ----------
    width : Scalar, default 1.2
        Width of the edge, m.
    ground : Scalar, default 0.0
        Height of the surface in the world, m.
    cohesion : Scalar, default 30e3
        Term linear in the depth, Pa; includes the blade's factor.
    weight : Scalar, default 40e3
        Term quadratic in the depth, N/m^3; includes the blade's factor.
    bearing : Scalar, default 20e3
        Largest bearing force, N.
    give : Scalar, default 0.05
        Depth at which half of the bearing force acts, m.
    slow : Scalar, default 0.05
        Speed u_0 below which the resistance acts like a damper, m/s.
    """

    width: Scalar = 1.2  # m, of the edge
    ground: Scalar = 0.0  # m, height of the surface
    cohesion: Scalar = 30e3  # Pa, includes the blade's factor
    weight: Scalar = 40e3  # N/m3, includes the blade's factor
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m, depth at which half of `bearing` acts
    slow: Scalar = 0.05  # m/s, u_0

    def __post_init__(self) -> None:
        check_range(self, "Soil", ("cohesion", "weight", "bearing"))
        check_range(self, "Soil", ("width", "give", "slow"), above_zero=True)

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on the edge at `p` (m) that moves with `u` (m/s), all in world axes."""
        z = maximum(self.ground - p[2], 0.0)
        f = against_motion(u, self.width * z * (self.cohesion + self.weight * z), self.slow)
        return [f[0], f[1], f[2] + self.bearing * z / (z + self.give)]


@dataclass(frozen=True)
class Cutting(PointForce):
    """Resistance of sloping ground to the edge of a blade, with coefficients of the earthmoving equation.

    Parameters
    ----------
    height : Scalar
        Height at x = y = 0 of the plane through the surface ahead of the edge, m.
    slope_x, slope_y : Scalar
        Slope of that plane along the world's x and y, m/m.
    square : Scalar
        Coefficient of the squared depth, N/m^2.
    linear : Scalar
        Coefficient of the depth, N/m.
    constant : Scalar
        Resistance from the surcharge, N.
    bearing : Scalar, default 20e3
        Largest bearing force, N.
    give : Scalar, default 0.05
        Depth at which half of the bearing force acts, m.
    slow : Scalar, default 0.05
        Speed u_0 below which the resistance acts like a damper, m/s.
    loose : Scalar, default 0.25
        Share of the vertical resistance that remains while the edge moves up.
    """

    height: Scalar  # m, surface plane at x = y = 0
    slope_x: Scalar  # rise over run
    slope_y: Scalar
    square: Scalar  # N/m2
    linear: Scalar  # N/m
    constant: Scalar  # N
    bearing: Scalar = 20e3  # N
    give: Scalar = 0.05  # m, depth at which half of `bearing` acts
    slow: Scalar = 0.05  # m/s, u_0
    loose: Scalar = 0.25  # share of the resistance on the way up

    def __post_init__(self) -> None:
        check_range(self, "Cutting", ("square", "linear", "constant", "bearing", "loose"))
        check_range(self, "Cutting", ("give", "slow"), above_zero=True)

    def depth(self, p: Any) -> Scalar:
        """Return the depth of the point `p` = (x, y, z) below the surface, m; 0 above it."""
        return maximum(self.height + self.slope_x * p[0] + self.slope_y * p[1] - p[2], 0.0)

    def resistance(self, z: Scalar) -> Scalar:
        """Return the cutting resistance at depth `z` (m), N."""
        return self.square * z * z + self.linear * z + self.constant * (z / (z + self.give))

    def force(self, p: Triple, u: Triple) -> Triple:
        """Return the force in N on the edge at `p` (m) that moves with `u` (m/s), all in world axes."""
        z = self.depth(p)
        f = against_motion(u, self.resistance(z), self.slow)
        return [f[0], f[1], where(u[2] > 0.0, self.loose, 1.0) * f[2] + self.bearing * z / (z + self.give)]


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
            force = [a + b for a, b in zip(force, f, strict=True)]
            moment = [a + b for a, b in zip(moment, n, strict=True)]
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
