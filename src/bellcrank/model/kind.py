"""Joint types: a short list of functions over any scalar, and the types between rigid bodies.

The types are those of Wong (1991), table 6.1, and more; joints/modal.py has those of flexible bodies.

Frames: the joint moves a child frame F against a parent-side frame G. A joint axis is z of both frames
(model/internal_frames.py arranges that), so no formula here contains an axis vector. Velocities are those of F relative
to G, in the axes of F.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.model.quaternion import (
    arc_displacement,
    quaternion_difference,
    quaternion_rate,
    rotate_quaternion,
    rotation_matrix,
    sinc_pair,
)
from bellcrank.scalar import Scalar, cos, is_zero, sin
from bellcrank.spatial.inertia import NO_INERTIA, Inertia
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, FullRotation, Move, Shift, Transform, Turn
from bellcrank.spatial.vector import AXES, NO_MOTION, SYM_ZERO, ZERO, Force, Motion, Vec, diagonal, vec

TURN_Z = Motion(AXES[2], ZERO)
SLIDE_Z = Motion(ZERO, AXES[2])
FORCES = (*(Force(e, ZERO) for e in AXES), *(Force(ZERO, e) for e in AXES))  # moments, then forces, along x, y, z


def no_invariant_part(inertia: Inertia) -> Inertia:
    """Return no inertia: a part of any `inertia` that every motion leaves unchanged."""
    return NO_INERTIA


def turn_invariant_part(inertia: Inertia) -> Inertia:
    """Return the part of `inertia` that turns about z leave unchanged: m, h_z, and equal moments about x and y."""
    return Inertia(inertia.m, Vec(0.0, 0.0, inertia.h.z), diagonal(inertia.I.yy, inertia.I.yy, 0.0))


def screw_invariant_part(inertia: Inertia) -> Inertia:
    """Return the part of `inertia` that turns about z and slides along z leave unchanged, which has no mass."""
    return Inertia(0.0, ZERO, diagonal(inertia.I.yy, inertia.I.yy, 0.0))


def slide_invariant_part(inertia: Inertia) -> Inertia:
    """Return the part of `inertia` that any translation leaves unchanged: moments of inertia without mass."""
    return Inertia(0.0, ZERO, inertia.I)


def rotation_invariant_part(inertia: Inertia) -> Inertia:
    """Return the part of `inertia` that any rotation about the origin leaves unchanged: a point mass there."""
    return Inertia(inertia.m, ZERO, SYM_ZERO)


@dataclass(frozen=True)
class Kind(ABC):
    """Base class of joint types.

    angle0 and distance0 are the angle about z and the distance along z from G to F when the coordinates are zero.
    """

    angle0: float = 0.0
    distance0: Scalar = 0.0

    name: ClassVar[str]
    nq: ClassVar[int]
    nv: ClassVar[int]
    has_axis: ClassVar[bool] = True  # F may be turned about and shifted along z with no other effect
    coordinates: ClassVar[tuple[str, ...]]  # description of each q, for tables
    columns: ClassVar[tuple[Motion, ...]] = ()  # of the motion subspace S, where it is constant
    # Part of a child's inertia that the joint's motion cannot change.
    invariant_part: ClassVar[Callable[[Inertia], Inertia]] = no_invariant_part

    @abstractmethod
    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`: the velocity of F for each unit of v."""
        return list(self.columns)

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """Return the six forces (W, T) that a joint transmits at `q`, about F.

        Each W does unit power along its own column of S and none along the others; the T do no power at all. This
        default is for columns that are coordinate axes of F.
        """
        columns = [(*s.ang, *s.lin) for s in self.subspace(q)]
        free = [next(i for i, x in enumerate(s) if isinstance(x, float) and x == 1.0) for s in columns]
        return [FORCES[i] for i in free], [f for i, f in enumerate(FORCES) if i not in free]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Return (dS/dt) v at `q` and `v`; zero where S is constant."""
        return NO_MOTION

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of dS/dt at `q` and `v`, whose sum along v is `bias`; zero where S is constant."""
        return [NO_MOTION] * self.nv

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return w x v for velocities `v` in axes that turn with the body; zero elsewhere.

        dv/dt lacks this part of the acceleration. An armature acts on the whole acceleration.
        """
        return [0.0] * self.nv

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`; overridden where q is not the integral of v."""
        return list(v)

    def felt(self, q: Sequence[Scalar], f: Sequence[Scalar]) -> list[Scalar]:
        """Return forces `f` on the coordinates at `q` as forces along v.

        This is `rate` transposed, so that the power is the same.
        """
        return list(f)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`, exactly on the joint's manifold."""
        return [a + b for a, b in zip(q, dv, strict=True)]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`, the inverse of `integrate`.

        A joint type that overrides `integrate` overrides this, too.
        """
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def neutral(self) -> list[float]:
        """Return the coordinates at which F coincides with G (up to angle0 and distance0)."""
        return [0.0] * self.nq

    def unfelt(self, inertia: Inertia) -> Inertia:
        """Return the part of a child's `inertia` that the joint's motion cannot change.

        The parent may carry it instead: that leaves the joint forces and the mass matrix as they are and empties the
        child (M. Gautier and W. Khalil, Direct calculation of minimum set of inertial parameters of serial robots,
        1990).
        """
        return type(self).invariant_part(inertia)


def turn_z(q: Scalar, angle0: Scalar) -> Turn:
    """Return a turn about z by `q` + `angle0`; an offset of quarter turns only swaps and negates sine and cosine."""
    # A rolled class has a symbol here.
    quarters = angle0 / (math.pi / 2) if isinstance(angle0, float | int) else math.inf
    if quarters < math.inf and quarters == round(quarters):
        c, s = cos(q), sin(q)
        for _ in range(round(quarters) % 4):
            c, s = -s, c
        return Turn(2, c, s)
    return Turn(2, cos(q + angle0), sin(q + angle0))


def shift_z(d: Scalar) -> list[Move]:
    """Return the moves of a shift along z by `d`: none where it is zero."""
    return [] if is_zero(d) else [Shift(Vec(0.0, 0.0, d))]


# -- types between rigid bodies; first the screws about z: fixed, revolute, prismatic, helical and cylindrical joints


class Fixed(Kind):
    """No motion: nq and nv are 0.

    `mechanism_of` merges the two bodies of a fixed joint, so no tree contains this type. It provides nq, nv and
    coordinates for the table.
    """

    name, nq, nv, has_axis = "fixed", 0, 0, False
    coordinates = ()

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return IDENTITY_TRANSFORM

    def unfelt(self, inertia: Inertia) -> Inertia:
        """Return the part of a child's `inertia` that the joint's motion cannot change."""
        return inertia


class Revolute(Kind):
    """A turn about z; q is the angle, v its rate."""

    name, nq, nv = "revolute", 1, 1
    coordinates = ("angle",)
    columns = (TURN_Z,)
    invariant_part = turn_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(self.distance0), turn_z(q[0], self.angle0)])


class Prismatic(Kind):
    """A slide along z; q is the distance, v its rate."""

    name, nq, nv = "prismatic", 1, 1
    coordinates = ("distance",)
    columns = (SLIDE_Z,)
    invariant_part = slide_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([turn_z(0.0, self.angle0), *shift_z(q[0] + self.distance0)])


@dataclass(frozen=True)
class Helical(Kind):
    """A turn about z with a proportional slide along z: `pitch` metres per radian."""

    pitch: Scalar = 0.0

    name, nq, nv = "helical", 1, 1
    coordinates = ("angle",)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(q[0] * self.pitch + self.distance0), turn_z(q[0], self.angle0)])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        return [TURN_Z + SLIDE_Z * self.pitch]

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """Return the six transmitted forces (W, T) at `q`."""
        mx, my, mz, fx, fy, fz = FORCES
        return [mz], [mx, my, fx, fy, fz - mz * self.pitch]


class Cylindrical(Kind):
    """A turn about z, then a slide along z; q is (angle, distance), v their rates."""

    name, nq, nv = "cylindrical", 2, 2
    coordinates = ("angle", "distance")
    columns = (TURN_Z, SLIDE_Z)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([*shift_z(q[1] + self.distance0), turn_z(q[0], self.angle0)])


class Universal(Kind):
    """Two turns about perpendicular axes; q are the two angles, v their rates.

    The first axis is z, fixed in the parent, and the second is x, fixed in the child.
    """

    name, nq, nv, has_axis = "universal", 2, 2, False
    coordinates = ("angle about the first axis", "angle about the second axis")
    invariant_part = rotation_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([turn_z(q[0], 0.0), Turn(0, cos(q[1]), sin(q[1]))])

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        return [Motion(Vec(0.0, sin(q[1]), cos(q[1])), ZERO), Motion(AXES[0], ZERO)]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Return (dS/dt) v at `q` and `v`."""
        k = v[0] * v[1]
        return Motion(Vec(0.0, cos(q[1]) * k, -(sin(q[1]) * k)), ZERO)

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of dS/dt at `q` and `v`."""
        return [Motion(Vec(0.0, cos(q[1]) * v[1], -(sin(q[1]) * v[1])), ZERO), NO_MOTION]

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """Return the six transmitted forces (W, T) at `q`."""
        c, s = cos(q[1]), sin(q[1])
        return [Force(Vec(0.0, s, c), ZERO), FORCES[0]], [Force(Vec(0.0, c, -s), ZERO), *FORCES[3:]]


class Spherical(Kind):
    """Any rotation about a common point.

    q is the unit quaternion (x, y, z, w) of child against parent; v is the angular velocity in the child's axes.
    """

    name, nq, nv, has_axis = "spherical", 4, 3, False
    coordinates = ("qx", "qy", "qz", "qw")
    columns = tuple(Motion(e, ZERO) for e in AXES)
    invariant_part = rotation_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([FullRotation(rotation_matrix(q))])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        return quaternion_rate(q, vec(v))

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        return rotate_quaternion(q, vec(dv))

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`, the inverse of `integrate`."""
        return list(quaternion_difference(q0, q1)[0])

    def neutral(self) -> list[float]:
        """Return the coordinates at which F coincides with G."""
        return [0.0, 0.0, 0.0, 1.0]


class Planar(Kind):
    """A plate on a plane: two translations and a turn about z.

    q is (x, y, angle) of the child in the parent's xy plane; v = (vx, vy, w) in the child's axes.
    """

    name, nq, nv, has_axis = "planar", 3, 3, False
    coordinates = ("x", "y", "angle")
    columns = (Motion(ZERO, AXES[0]), Motion(ZERO, AXES[1]), TURN_Z)
    invariant_part = screw_invariant_part

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([Shift(Vec(q[0], q[1], 0.0)), turn_z(q[2], 0.0)])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        c, s = cos(q[2]), sin(q[2])
        return [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return w x v for the velocities `v`."""
        return [-(v[2] * v[1]), v[2] * v[0], 0.0]

    def felt(self, q: Sequence[Scalar], f: Sequence[Scalar]) -> list[Scalar]:
        """Return forces `f` on the coordinates at `q` as forces along v."""
        c, s = cos(q[2]), sin(q[2])
        return [c * f[0] + s * f[1], c * f[1] - s * f[0], f[2]]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        a, b = sinc_pair(dv[2])  # the arc of a constant body velocity
        dx, dy = a * dv[0] - b * dv[1], b * dv[0] + a * dv[1]
        c, s = cos(q[2]), sin(q[2])
        return [q[0] + c * dx - s * dy, q[1] + s * dx + c * dy, q[2] + dv[2]]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`; whole turns of the angle are kept."""
        turn, x, y = q1[2] - q0[2], q1[0] - q0[0], q1[1] - q0[1]
        a, b = sinc_pair(turn)
        c, s = cos(q0[2]), sin(q0[2])
        k = 1.0 / (a * a + b * b)
        x, y = (c * x + s * y) * k, (c * y - s * x) * k
        return [a * x + b * y, a * y - b * x, turn]


class Floating(Kind):
    """Free motion of the child: position and unit quaternion.

    q = [x y z qx qy qz qw]; v = [linear, angular] in the child's frame, as in Pinocchio and ROS.
    """

    name, nq, nv, has_axis = "floating", 7, 6, False
    coordinates = ("x", "y", "z", "qx", "qy", "qz", "qw")
    columns = (*(Motion(ZERO, e) for e in AXES), *(Motion(e, ZERO) for e in AXES))

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return Transform([Shift(vec(q[:3])), FullRotation(rotation_matrix(q[3:]))])

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return dq/dt at `q` and `v`."""
        return [*(rotation_matrix(q[3:]) @ vec(v[:3])), *quaternion_rate(q[3:], vec(v[3:]))]

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return w x v for the velocities `v`."""
        return [*vec(v[3:]).cross(vec(v[:3])), 0.0, 0.0, 0.0]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """Return `q` after one unit of time with constant velocity `dv`."""
        moved = vec(q[:3]) + rotation_matrix(q[3:]) @ arc_displacement(vec(dv[:3]), vec(dv[3:]))
        return [*moved, *rotate_quaternion(q[3:], vec(dv[3:]))]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """Return the dv that leads from `q0` to `q1`, the inverse of `integrate`."""
        w, k = quaternion_difference(q0[3:], q1[3:])
        p = rotation_matrix(q0[3:]).T @ (vec(q1[:3]) - vec(q0[:3]))
        turned = w.cross(p)
        return [*(p - turned * 0.5 + w.cross(turned) * k), *w]  # inverse of `arc_displacement`

    def neutral(self) -> list[float]:
        """Return the coordinates at which F coincides with G."""
        return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
