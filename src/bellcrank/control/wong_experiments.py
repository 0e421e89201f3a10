"""Wong's two runs of the excavator (1991, section 5.5.2, figs 5.5 to 5.10), 15 s each, with the numbers of chapter 5.

Printed: 5 s still, 5 s of motion, 5 s still, pressures from zero. RESOLVED: the cab turns 15 degrees while the tip goes
from a radius of 5 m to 6.5 m at constant speed, height and bucket angle. Not printed, and ours: the height and the
bucket's angle, and the rates of the JOINT run, which come from a file. Here JOINT mode goes between the same two poses,
each joint at a constant rate.
"""

from __future__ import annotations

from math import pi, radians

from bellcrank.actuators import RotaryHydraulics
from bellcrank.control.excavator import JOINTS, JointMode, ResolvedMode
from bellcrank.control.excavator_arm import ExcavatorArm
from bellcrank.control.trajectory import Ramp
from bellcrank.scalar import Scalar
from bellcrank.zoo import data, excavator

STILL, MOVING, SECONDS = 5.0, 5.0, 15.0
HEIGHT, BUCKET = 0.0, -pi / 2  # ours: the bucket's hinge at the level of the tracks, its mass ahead of it and below
FROM, TO = (5.0, 0.0, HEIGHT, BUCKET), (6.5, radians(15.0), HEIGHT, BUCKET)  # radius, swing, height, bucket


def hydraulics(laminar: Scalar = 0.0) -> list[RotaryHydraulics]:
    """The four actuators of table 5.2."""
    given = data("excavator")["hydraulics"]
    shared = {k: given[k] for k in ("P_e", "k_f", "D_m", "beta_v")}
    shared |= {"deadband": given["spool_deadband"], "limit": given["spool_limit"], "laminar": laminar}
    rows = zip(JOINTS, given["P_s"], given["G"], given["beta_m"], strict=True)
    return [RotaryHydraulics(joint, P_s, G, beta_m, **shared) for joint, P_s, G, beta_m in rows]


def arm() -> ExcavatorArm:
    return ExcavatorArm.of(excavator())


def poses() -> tuple[list[float], list[float]]:
    """Joint angles at the start and at the end of both runs."""
    there: ExcavatorArm = arm()
    return [float(x) for x in there.inverse(FROM)], [float(x) for x in there.inverse(TO)]


def resolved_mode() -> ResolvedMode:
    path = Ramp(FROM, TO, MOVING, STILL)

    def sticks(t: Scalar) -> list[Scalar]:
        (radius, *_), (radial, swing, up, turn), _ = path(t)
        return [radial, radius * swing, up, turn]

    gains = data("excavator")["control"]
    return ResolvedMode(gains["kp"], gains["kv"], poses()[0], sticks, arm=arm())


def joint_mode() -> JointMode:
    start, end = poses()
    path = Ramp(start, end, MOVING, STILL)
    gains = data("excavator")["control"]
    return JointMode(gains["kp"], gains["kv"], start, lambda t: path(t)[1])
