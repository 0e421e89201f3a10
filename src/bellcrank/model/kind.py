"""What every joint type answers: the same short list of functions, over any scalar.

Frames: the joint moves a child frame F against a parent-side frame G. Where the joint has an axis it is z of both
frames (model/frames.py arranges that), so no formula here carries an axis vector. Velocities are those of F against G,
seen in F.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.scalar import Scalar, cos, is_zero, sin
from bellcrank.spatial.inertia import NO_INERTIA, Inertia
from bellcrank.spatial.moves import Move, Shift, Transform, Turn
from bellcrank.spatial.vector import AXES, NO_MOTION, SYM_ZERO, ZERO, Force, Motion, Vec, diagonal


@dataclass(frozen=True)
class Kind(ABC):
    """angle0 and distance0 are where F stands about and along z when the coordinates are zero."""

    angle0: float = 0.0
    distance0: Scalar = 0.0

    name: ClassVar[str]
    nq: ClassVar[int]
    nv: ClassVar[int]
    has_axis: ClassVar[bool] = True  # F may be turned about and shifted along z without anyone noticing
    coordinates: ClassVar[tuple[str, ...]]  # for tables: what each q is

    @abstractmethod
    def transform(self, q: Sequence[Scalar]) -> Transform:
        """The moves from G to F."""

    @abstractmethod
    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Columns of S: the velocity of F for each unit of v."""

    def forces(self, q: Sequence[Scalar]) -> tuple[list[Force], list[Force]]:
        """The six forces that a joint passes on, about F: (W, T). Each W does unit power along its own column of S and
        none along the others, each T none at all.

        Here for columns that are coordinate axes of F.
        """
        columns = [(*s.ang, *s.lin) for s in self.subspace(q)]
        free = [next(i for i, x in enumerate(s) if isinstance(x, float) and x == 1.0) for s in columns]
        return [FORCES[i] for i in free], [f for i, f in enumerate(FORCES) if i not in free]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """(dS/dt) v; zero where S is constant."""
        return NO_MOTION

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Columns of dS/dt, of which `bias` is the sum along v; zero where S is constant."""
        return [NO_MOTION] * self.nv

    def turning_axes(self, v: Sequence[Scalar]) -> list[Scalar]:
        """w x v: what dv/dt lacks of an acceleration where v is given in axes that turn with the body; zero elsewhere.

        An armature feels the whole acceleration.
        """
        return [0.0] * self.nv

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """dq/dt; a joint whose q is more than the sum of its v has its own."""
        return list(v)

    def felt(self, q: Sequence[Scalar], f: Sequence[Scalar]) -> list[Scalar]:
        """Forces on the coordinates as v feels them: `rate` transposed, so that the power is the same."""
        return list(f)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        """q after moving with the constant velocity dv for one unit of time, exactly on the joint's manifold."""
        return [a + b for a, b in zip(q, dv, strict=True)]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        """The dv that leads from q0 to q1: `integrate` undone. A joint with an `integrate` of its own has one, too."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def neutral(self) -> list[float]:
        """The coordinates at which F is on G (up to angle0 and distance0)."""
        return [0.0] * self.nq

    def unfelt(self, inertia: Inertia) -> Inertia:
        """The part of a child's inertia that this joint's motion cannot change: the parent may carry it instead.

        Moving it there leaves the joint forces and the mass matrix as they are and empties the child (M. Gautier and
        W. Khalil, Direct calculation of minimum set of inertial parameters of serial robots, 1990).
        """
        return NO_INERTIA


def turn_z(q: Scalar, angle0: Scalar) -> Turn:
    """A turn by q + angle0; an offset of quarter turns only swaps and negates sine and cosine."""
    quarters = angle0 / (math.pi / 2) if isinstance(angle0, float | int) else math.inf  # alike bodies share a symbol
    if quarters < math.inf and quarters == round(quarters):
        c, s = cos(q), sin(q)
        for _ in range(round(quarters) % 4):
            c, s = -s, c
        return Turn(2, c, s)
    return Turn(2, cos(q + angle0), sin(q + angle0))


def shift_z(d: Scalar) -> list[Move]:
    return [] if is_zero(d) else [Shift(Vec(0.0, 0.0, d))]


TURN_Z = Motion(AXES[2], ZERO)
SLIDE_Z = Motion(ZERO, AXES[2])
FORCES = (*(Force(e, ZERO) for e in AXES), *(Force(ZERO, e) for e in AXES))  # moments, then forces, along x, y, z


def turned_alike(inertia: Inertia) -> Inertia:
    """What looks the same after any turn about z: m and h_z on the axis, and equal moments about x and y."""
    return Inertia(inertia.m, Vec(0.0, 0.0, inertia.h.z), diagonal(inertia.I.yy, inertia.I.yy, 0.0))


def moved_along_alike(inertia: Inertia) -> Inertia:
    """The same when the body also slides along z: then no mass may leave it."""
    return Inertia(0.0, ZERO, diagonal(inertia.I.yy, inertia.I.yy, 0.0))


def slid_alike(inertia: Inertia) -> Inertia:
    """What looks the same after any translation: moments of inertia without mass."""
    return Inertia(0.0, ZERO, inertia.I)


def point_mass(inertia: Inertia) -> Inertia:
    """What looks the same after any rotation about the origin, and can be told from nothing there."""
    return Inertia(inertia.m, ZERO, SYM_ZERO)
