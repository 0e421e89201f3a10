"""excavator_linkage on the ground: its bucket as a tool, and the dimensions of its tracks and upper structure."""

from __future__ import annotations

import math

from bellcrank.excavators.digging_forces import Footing
from bellcrank.excavators.linkage.geometry import Linkage
from bellcrank.ground.contact import ground_contact
from bellcrank.ground.field import Tool
from bellcrank.model import Mechanism

BUCKET_CAPACITY = 1.0  # m3, capacity of the bucket
CARRIAGE_MASS = 7500.0  # kg: remainder of the machine's mass (zoo/data.toml)
# m, tracks: gauge 2.38 (cat320) and shoes of 0.6, assumed.
TRACK_HALF_LENGTH, TRACK_SIDES, TRACK_HEIGHT = 2.14, (0.89, 1.49), 0.78
STRUCTURE_RADIUS, STRUCTURE_HEIGHT = 1.75, 3.0  # m


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
    carriage_is_body = "carriage" in [b.name for b in mechanism.bodies]  # with moving tracks the carriage is a body
    return Footing(
        ground_contact(tool, (x, y, z), 0.0),
        TRACK_HALF_LENGTH,
        TRACK_SIDES,
        TRACK_HEIGHT,
        STRUCTURE_RADIUS,
        STRUCTURE_HEIGHT,
        0.0 if carriage_is_body else CARRIAGE_MASS,
    )
