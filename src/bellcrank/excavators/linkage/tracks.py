"""excavator_linkage on the ground: its bucket as a tool, its dimensions, and its tracks.

The tracks carry a free carriage that rests on eight contact points, tips, slips and travels.

Each contact point is a compliant sphere with friction (forces/contact.py). The belt moves over the ground at a speed
that is a parameter for each side, so that the machine travels and turns. Obstacles for the bucket move with the
carriage. Assumed: the ground under the tracks is level, with the stiffness CONTACT_STIFFNESS, and is not changed by
digging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.excavators.digging_forces import Footing
from bellcrank.excavators.linkage.geometry import Linkage
from bellcrank.forces import Contact, Element, Law, Plane, Sphere, Together
from bellcrank.forces.element import WrenchAndRates
from bellcrank.ground.contact import ground_contact
from bellcrank.ground.field import Tool
from bellcrank.model import Frame, Mechanism
from bellcrank.parameters import parameter
from bellcrank.scalar import Scalar

BUCKET_CAPACITY = 1.0  # m3, capacity of the bucket
CARRIAGE_MASS = 7500.0  # kg: remainder of the machine's mass (zoo/data.toml)
# m, tracks: gauge 2.38 (cat320) and shoes of 0.6, assumed.
TRACK_HALF_LENGTH, TRACK_SIDES, TRACK_HEIGHT = 2.14, (0.89, 1.49), 0.78
FOOTING_DIMENSIONS = (TRACK_HALF_LENGTH, TRACK_SIDES, TRACK_HEIGHT, 1.75, 3.0)  # m, with the upper structure
CARRIAGE_BODY = "carriage"
SPHERE_RADIUS = 0.1  # m, radius of a contact sphere
CONTACT_STIFFNESS = 2.0e6  # N/m per contact point: 22 t sink in by 14 mm
CONTACT_DAMPING = 1.5  # s/m
CREEP_SPEED = 5e-3  # m/s, below which friction acts like a damper; a parked machine creeps more slowly
CONTACT_NUMBERS: dict[str, Any] = {"stiffness": CONTACT_STIFFNESS, "damping": CONTACT_DAMPING, "slow": CREEP_SPEED}
CONTACT_POINTS = tuple(
    (f"{side}{k}", (x * TRACK_HALF_LENGTH / 3.0, y * (TRACK_SIDES[0] + TRACK_SIDES[1]) / 2.0, SPHERE_RADIUS))
    for side, y in (("left", 1.0), ("right", -1.0))
    for k, x in enumerate((3.0, 1.0, -1.0, -3.0))
)


def footing(mechanism: Mechanism, linkage: Linkage) -> Footing:
    """Return contact and dimensions of an excavator.

    Parameters
    ----------
    mechanism
        Excavator with a frame "tip" at the teeth.
    linkage
        Geometry.
    """
    x, y, z = (float(a) for a in mechanism.frame("tip").point)
    mouth_angle = math.atan2(z, x)  # the mouth faces from the line of the teeth towards the stick
    mouth = math.sin(mouth_angle), 0.0, -math.cos(mouth_angle)
    tool = Tool((0.0, 1.0, 0.0), mouth, linkage.given["bucket"]["width"], BUCKET_CAPACITY)
    carriage_is_body = CARRIAGE_BODY in [b.name for b in mechanism.bodies]  # with moving tracks the carriage is a body
    mass = 0.0 if carriage_is_body else CARRIAGE_MASS
    return Footing(ground_contact(tool, (x, y, z), 0.0), *FOOTING_DIMENSIONS, mass)


@dataclass(frozen=True)
class Belt(Contact):
    """Contact point under a track with a moving belt: the shoe on the ground moves backwards at `speed`."""

    speed: Scalar = 0.0  # m/s, speed of the machine without slip

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return force, moment and state rates of the contact with the moving shoe.

        Parameters
        ----------
        t
            Time, s.
        pose
            Pose of the track's frame relative to the ground.
        velocity
            Velocity of the frame relative to the ground.
        x
            States of the contact.
        """
        return super().__call__(t, pose, self._shoe_velocity(pose, velocity), x)

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power less the power of the belt's drive, W.

        Parameters
        ----------
        t
            Time, s.
        pose
            Pose of the track's frame relative to the ground.
        velocity
            Velocity of the frame relative to the ground.
        x
            States of the contact.
        """
        shoe = self._shoe_velocity(pose, velocity)
        force = super().__call__(t, pose, shoe, x)[0]
        drive_power = sum((f * (v - s) for f, v, s in zip(force, velocity[:2], shoe[:2], strict=False)), start=0.0)
        return super().loss(t, pose, shoe, x) - drive_power

    def _shoe_velocity(self, pose: Any, velocity: Sequence[Scalar]) -> list[Scalar]:
        """Return the velocity of the shoe that touches the ground."""
        return [velocity[k] - self.speed * pose[k, 0] for k in range(2)] + list(velocity[2:])


def with_track_frames(plain: Mechanism) -> Mechanism:
    """Return the mechanism `plain` with a frame at each contact point of its carriage."""
    frames = {f"track.{name}": Frame(f"track.{name}", CARRIAGE_BODY, point=place) for name, place in CONTACT_POINTS}
    return replace(plain, frames={**plain.frames, **frames})


def tracks(footing: Footing, probes: Sequence[str]) -> list[Element]:
    """Return the contacts of the tracks, and the obstacles of the carriage for frames of the bucket.

    Parameters
    ----------
    footing
        Dimensions of the machine.
    probes
        Names of the bucket's frames.
    """
    speeds = {side: parameter(f"tracks.{side}", 0.0, "m/s") for side in ("left", "right")}
    shapes, contact = (Plane(), Sphere(SPHERE_RADIUS)), {**CONTACT_NUMBERS, "friction": footing.friction}
    contacts: list[Element] = [
        Belt(f"track.{name}", "ground", f"track.{name}", *shapes, **contact, speed=speeds[name[:-1]])
        for name, _ in CONTACT_POINTS
    ]
    walls = Together(footing.barriers)
    return contacts + [Law(f"walls.{probe}", CARRIAGE_BODY, probe, walls) for probe in probes]


def static_penetration(mass: float) -> float:
    """Return the static penetration of the tracks under a `mass`, m."""
    return mass * 9.81 / (len(CONTACT_POINTS) * CONTACT_STIFFNESS)
