"""Forces: on a frame from outside, bc.system(..., forces={"frame": ...}), as functions of (t, pose, velocity); and
elements between two frames or between joints, bc.system(..., elements=[...]).
"""

from __future__ import annotations

from bellcrank.forces.bushing import Bushing
from bellcrank.forces.curves import Curve, curve
from bellcrank.forces.element import Between, Coupling, Element, JointLaw, Law
from bellcrank.forces.gears import Belt, Gear, Rack, Worm
from bellcrank.forces.impact import damping_of, restitution_of
from bellcrank.forces.joint_spring import JointSpring
from bellcrank.forces.lines import Cable, NonlinearSpring
from bellcrank.forces.soil import Soil
from bellcrank.forces.stops import EndStop, joint_stops

__all__ = [
    "Belt",
    "Between",
    "Bushing",
    "Cable",
    "Coupling",
    "Curve",
    "Element",
    "EndStop",
    "Gear",
    "JointLaw",
    "JointSpring",
    "Law",
    "NonlinearSpring",
    "Rack",
    "Soil",
    "Worm",
    "curve",
    "damping_of",
    "joint_stops",
    "restitution_of",
]
