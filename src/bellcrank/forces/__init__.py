"""Force laws: external forces on frames, and force elements between frames or joints.

An external force is a function of (t, pose, velocity), passed as `bc.system(..., forces={"frame": ...})`. A force
element acts between two frames, between joints or in a joint and is passed as `bc.system(..., elements=[...])`.
"""

from __future__ import annotations

from bellcrank.forces.bearings import BearingFriction
from bellcrank.forces.contact import Contact, feet
from bellcrank.forces.element import Between, Coupling, Element, JointLaw, Law
from bellcrank.forces.gears import Belt, Gear, Rack, Worm
from bellcrank.forces.impact import damping_of, restitution_of
from bellcrank.forces.latch import Latch
from bellcrank.forces.point_forces import Block, Cutting, Pad, Post, Soil, Together
from bellcrank.forces.shapes import Box, Capsule, Cylinder, Plane, Sphere, Terrain, grid
from bellcrank.forces.springs import Bushing, Cable, EndStop, JointSpring, NonlinearSpring, joint_stops
from bellcrank.forces.tension import Curve, curve
from bellcrank.forces.tyres import LinearTyre, MagicTyre, read_tyre

__all__ = [
    "BearingFriction",
    "Belt",
    "Between",
    "Block",
    "Box",
    "Bushing",
    "Cable",
    "Capsule",
    "Contact",
    "Coupling",
    "Curve",
    "Cutting",
    "Cylinder",
    "Element",
    "EndStop",
    "Gear",
    "JointLaw",
    "JointSpring",
    "Latch",
    "Law",
    "LinearTyre",
    "MagicTyre",
    "NonlinearSpring",
    "Pad",
    "Plane",
    "Post",
    "Rack",
    "Soil",
    "Sphere",
    "Terrain",
    "Together",
    "Worm",
    "curve",
    "damping_of",
    "feet",
    "grid",
    "joint_stops",
    "read_tyre",
    "restitution_of",
]  # fmt: skip
