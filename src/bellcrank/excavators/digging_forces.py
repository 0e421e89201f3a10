"""Forces of the ground on an excavator: soil forces on the bucket, its load, and obstacles that block the bucket.

The ground itself is updated outside the integration step (ground/field.py); this module has the parameters through
which it acts on the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.forces import Block, Post, Together
from bellcrank.ground.contact import GroundContact
from bellcrank.model import Frame, Mechanism

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
        tracks = [
            Block(
                (-self.half_length, min(side * near, side * far), base - 1.0),
                (self.half_length, max(side * near, side * far), base + self.track_height),
            )
            for side in (-1.0, 1.0)
        ]
        return (*tracks, Post(self.structure_radius, base + self.track_height, base + self.structure_height))


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
