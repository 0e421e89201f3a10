"""excavator_linkage on the ground: its bucket as a tool, and what it stands on."""

from __future__ import annotations

import math

from bellcrank.excavators.digging import Footing
from bellcrank.excavators.linkage.geometry import Linkage
from bellcrank.ground.contact import contact
from bellcrank.ground.field import Tool
from bellcrank.model import Mechanism

CAPACITY = 1.0  # m3, of the bucket
CARRIAGE = 7500.0  # kg: what is left of the machine's weight (zoo/data.toml)
HALF, SIDES, TOP = 2.14, (0.89, 1.49), 0.78  # m, of the tracks: gauge 2.38 (cat320) and shoes of 0.6, assumed
HOUSE, ROOF = 1.75, 3.0  # m


def footing(mechanism: Mechanism, linkage: Linkage) -> Footing:
    x, y, z = (float(a) for a in mechanism.frame("tip").point)
    turn = math.atan2(z, x)  # the mouth looks from the teeth's line to the side of the stick
    mouth = math.sin(turn), 0.0, -math.cos(turn)
    tool = Tool((0.0, 1.0, 0.0), mouth, linkage.given["bucket"]["width"], CAPACITY)
    counted = "carriage" in [b.name for b in mechanism.bodies]  # on tracks that move, it is a body
    return Footing(contact(tool, (x, y, z), 0.0), HALF, SIDES, TOP, HOUSE, ROOF, 0.0 if counted else CARRIAGE)
