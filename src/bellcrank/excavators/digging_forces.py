"""Forces of the ground on an excavator, and its stability on its tracks under them.

Forces: of the soil on the bucket, of its load, and of obstacles that block the bucket. The ground itself is updated
outside the integration step (ground/field.py); this module has the parameters through which it acts on the step.
Stability: utilisation of the limits of tipping and slipping.

    N = m g - F_z                                              load on the ground; F: soil and obstacles on the bucket
    x_p = (sum m_i g x_i - (r x F)_xy ...) / N                 its point of application: the centre of pressure
    tipping = max(|x_p| / half the tracks' length, |y_p| / half their gauge)         1: it begins to tip
    slipping = |F_xy| / (mu N)                                                       1: it begins to slip

Statics: the acceleration of the arm is neglected. Beyond 1 the tracks of excavator_linkage still hold; those of
excavator_tracked do not, and there all vectors are expressed relative to its carriage, with lever arms in its axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.forces import Block, Post, Together
from bellcrank.ground.contact import GroundContact
from bellcrank.ground.soils import GRAVITY
from bellcrank.model import Frame, Mechanism
from bellcrank.scalar import Scalar, fabs, maximum, sqrt

BUCKET = "bucket"


@dataclass(frozen=True)
class Footing:
    """Contact of the bucket, and dimensions of the machine that stands on the ground.

    Lengths are in m, measured from the swing axis and the ground. The bucket must not enter the tracks and the upper
    structure.
    """

    contact: GroundContact
    half_length: float  # half the length of a track
    sides: tuple[float, float]  # inner and outer side of a track, from the middle
    track_height: float  # height of the tracks
    structure_radius: float  # radius that the front of upper structure and cabin sweeps
    structure_height: float  # height of the upper structure
    mass: float  # kg, mass of the carriage on the ground, without the upper structure
    friction: float = 0.6  # friction coefficient of tracks on the ground, assumed

    @property
    def barriers(self) -> tuple[Any, ...]:
        """Obstacles for the bucket: both tracks and the upper structure."""
        base, (near, far) = self.contact.level, self.sides
        bottom, top, length = base - 1.0, base + self.track_height, self.half_length
        sides = (-far, -near), (near, far)
        tracks = [Block((-length, inner, bottom), (length, outer, top)) for inner, outer in sides]
        return (*tracks, Post(self.structure_radius, top, base + self.structure_height))


def with_digging_forces(plain: Mechanism, footing: Footing, walls: bool = True) -> tuple[Mechanism, Mapping[str, Any]]:
    """Return the mechanism with its load and with frames on its bucket, and the forces on those frames.

    Parameters
    ----------
    plain
        Excavator with a body "bucket" and a frame "tip".
    footing
        Contact of the bucket, and dimensions of the machine.
    walls
        If True, include the forces of tracks and upper structure, which must then not move.
    """
    c, barriers = footing.contact, footing.barriers if walls else ()
    frames = {"heel": Frame("heel", BUCKET, point=c.heel), "pin": Frame("pin", BUCKET)}
    laden = c.with_load(replace(plain, frames={**plain.frames, **frames}), BUCKET)
    forces = {
        "tip": Together((c.cutting, *barriers)),
        "heel": Together((c.pad("heel"), *barriers)),
        "pin": Together((c.pad("pin"), *barriers)),
    }
    return laden, forces


@dataclass(frozen=True)
class Stance:
    """Stability of a mechanism on its tracks under forces on its frames."""

    mechanism: Mechanism
    forces: Mapping[str, Any]
    footing: Footing
    carriage: str | None = None  # body of a moving carriage; None: fixed at the origin

    def utilisation(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
        """Return (tipping, slipping), from 0 to 1 while the machine stands.

        Parameters
        ----------
        t
            Time, s.
        q
            Joint positions.
        v
            Joint velocities.
        """
        tree, f = self.mechanism.tree, self.footing
        machine_mass: Scalar = 0.0
        for body in self.mechanism.bodies:
            machine_mass = machine_mass + body.mass
        centre = kinematics.com(tree, list(q))
        to_carriage = self._carriage_transform(q)
        centre = to_carriage(centre)
        load = (machine_mass + f.mass) * GRAVITY
        least_load = 0.05 * load  # lower bound of the load, for a machine that is lifted off
        moment = [machine_mass * GRAVITY * centre[0], machine_mass * GRAVITY * centre[1]]  # moments along x and y
        push: list[Scalar] = [0.0, 0.0]
        for frame, force in self.forces.items():
            pose = np.array(kinematics.pose(tree, list(q), frame), object)
            velocity = np.array(kinematics.velocity(tree, list(q), list(v), frame), object)
            F, _ = force(t, pose, velocity)
            height = pose[2, 3] - f.contact.level
            position, F = to_carriage(pose[:3, 3]), [*to_carriage([F[0], F[1], F[2]], turn_only=True)]
            load = load - F[2]
            for k in range(2):
                moment[k] = moment[k] - position[k] * F[2] + height * F[k]
                push[k] = push[k] + F[k]
        ground_load = maximum(load, least_load)
        along, beside = fabs(moment[0]) / (ground_load * f.half_length), fabs(moment[1]) / (ground_load * f.sides[1])
        return maximum(along, beside), sqrt(push[0] * push[0] + push[1] * push[1]) / (f.friction * ground_load)

    def _carriage_transform(self, q: Sequence[Scalar]) -> Any:
        """Return a function that expresses a position or direction relative to the carriage's heading and position."""
        if self.carriage is None:
            return lambda p, turn_only=False: list(p)
        X = kinematics.pose(self.mechanism.tree, list(q), self.carriage)
        x, y = X[0][3], X[1][3]
        size = sqrt(X[0][0] * X[0][0] + X[1][0] * X[1][0])
        c, s = X[0][0] / size, X[1][0] / size

        def transform(p: Sequence[Scalar], turn_only: bool = False) -> list[Scalar]:
            a, b = (p[0], p[1]) if turn_only else (p[0] - x, p[1] - y)
            return [c * a + s * b, c * b - s * a, p[2]]

        return transform
