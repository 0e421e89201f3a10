"""Interface of all joint types: a short list of functions over any scalar.

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

from bellcrank.scalar import Scalar, cos, is_zero, sin
from bellcrank.spatial.inertia import NO_INERTIA, Inertia
from bellcrank.spatial.moves import Move, Shift, Transform, Turn
from bellcrank.spatial.vector import AXES, NO_MOTION, SYM_ZERO, ZERO, Force, Motion, Vec, diagonal

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
