"""excavator_linkage on the ground: its bucket as a tool, and the dimensions of its tracks and upper structure."""

from __future__ import annotations

import math

from bellcrank.excavators.digging import Footing
from bellcrank.excavators.linkage.geometry import Linkage
from bellcrank.ground.contact import contact
from bellcrank.ground.field import Tool
from bellcrank.model import Mechanism

CAPACITY = 1.0  # m3, capacity of the bucket
CARRIAGE = 7500.0  # kg: remainder of the machine's mass (zoo/data.toml)
HALF, SIDES, TOP = 2.14, (0.89, 1.49), 0.78  # m, tracks: gauge 2.38 (cat320) and shoes of 0.6, assumed
HOUSE, ROOF = 1.75, 3.0  # m


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
    turn = math.atan2(z, x)  # the mouth faces from the line of the teeth towards the stick
    mouth = math.sin(turn), 0.0, -math.cos(turn)
    tool = Tool((0.0, 1.0, 0.0), mouth, linkage.given["bucket"]["width"], CAPACITY)
    counted = "carriage" in [b.name for b in mechanism.bodies]  # with moving tracks the carriage is a body
    return Footing(contact(tool, (x, y, z), 0.0), HALF, SIDES, TOP, HOUSE, ROOF, 0.0 if counted else CARRIAGE)
