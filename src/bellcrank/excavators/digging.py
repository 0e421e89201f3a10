"""A machine on ground that it digs: the forces on its bucket, the load in it, and what it must not go through.

The ground itself is beside the step (ground/field.py); here are the parameters by which the step feels it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.forces import Block, Post, Together
from bellcrank.ground.contact import Contact
from bellcrank.model import Frame, Mechanism

BUCKET = "bucket"


@dataclass(frozen=True)
class Footing:
    """Contact of the bucket, and the tracks and the house that it does not go through: half lengths and heights in m,
    from the swing axis and the ground.
    """

    contact: Contact
    half: float  # of the length of a track
    sides: tuple[float, float]  # from the middle: where a track begins and ends
    top: float  # of the tracks
    house: float  # radius that the front of house and cabin sweep
    roof: float  # its height
    mass: float  # kg, of the carriage that stands on the ground: without all that turns on it
    friction: float = 0.6  # of tracks on the ground, assumed

    @property
    def barriers(self) -> tuple[Any, ...]:
        base, (near, far) = self.contact.level, self.sides
        tracks = [
            Block(
                (-self.half, min(side * near, side * far), base - 1.0),
                (self.half, max(side * near, side * far), base + self.top),
            )
            for side in (-1.0, 1.0)
        ]
        return (*tracks, Post(self.house, base + self.top, base + self.roof))


def digging(plain: Mechanism, footing: Footing, walls: bool = True) -> tuple[Mechanism, Mapping[str, Any]]:
    """The mechanism with its load and with frames on its bucket, and the forces on them. walls: also of tracks and
    house, which stay where they are.
    """
    c, around = footing.contact, footing.barriers if walls else ()
    frames = {"heel": Frame("heel", BUCKET, point=c.heel), "pin": Frame("pin", BUCKET)}
    made = c.laden(replace(plain, frames={**plain.frames, **frames}), BUCKET)
    forces = {
        "tip": Together((c.cutting, *around)),
        "heel": Together((c.pad("heel"), *around)),
        "pin": Together((c.pad("pin"), *around)),
    }
    return made, forces
