"""Wong's two runs of the excavator (1991, section 5.5.2, figs 5.5 to 5.10), 15 s each, with the numbers of chapter 5.

Printed: 5 s at rest, 5 s of motion, 5 s at rest, pressures from zero. RESOLVED: the cab turns 15 degrees while the tip
moves from a radius of 5 m to 6.5 m at constant speed, height and bucket angle.

Not printed, and chosen here so that every sentence about the figures holds (a test checks them):

* The opening of the spool, 0.1 cm/V. At 1 cm/V the control would lift the sagging boom at once, where the paper reports
  that the dead band keeps its spool shut; the cab would hardly lag; and with its spool open the bucket would oscillate
  at 570 to 640 rad/s, while RK4 with the paper's step of 0.01 s is stable up to 283. At 0.1 cm/V it is 270 to 300: with
  that step the bucket rings after the end of the motion, and everything else is accurate to 0.02 degrees. (At 0.05 the
  motion has not settled by 15 s; 0.2 would fit the sentences too, but not the step.)
* The height of the bucket's hinge, 3 m. There gravity pulls both boom and stick to smaller angles at the start, and the
  boom goes down during the motion, as in the paper; near the ground it does neither.
* The bucket's angle: its mass is ahead of the hinge and below, so that it sags too.
* The rates of JOINT mode, which came from a file: here constant, between the same two poses.
"""

from __future__ import annotations

from math import pi, radians

from bellcrank.actuators import RotaryHydraulics
from bellcrank.control.trajectory import Ramp
from bellcrank.excavators.rotary.arm import ExcavatorArm
from bellcrank.excavators.rotary.spool_control import JOINTS, JointMode, ResolvedMode
from bellcrank.scalar import Scalar
from bellcrank.zoo import data, excavator

REST_SECONDS, MOTION_SECONDS, SECONDS = 5.0, 5.0, 15.0
HEIGHT, BUCKET, OPENING = 3.0, -pi / 2, 0.1  # m, rad, cm/V
# Radius, swing, height, bucket.
START_TARGET, END_TARGET = (5.0, 0.0, HEIGHT, BUCKET), (6.5, radians(15.0), HEIGHT, BUCKET)


def hydraulics(laminar: Scalar = 0.0, opening: Scalar = OPENING) -> list[RotaryHydraulics]:
    """Return the four actuators of table 5.2.

    Parameters
    ----------
    laminar
        Pressure drop below which the flow is laminar, psi.
    opening
        Opening of the spool per volt, cm/V.
    """
    numbers = data("excavator")["hydraulics"]
    shared = {k: numbers[k] for k in ("P_e", "k_f", "D_m", "beta_v")}
    shared |= {"deadband": numbers["spool_deadband"], "limit": numbers["spool_limit"]}
    shared |= {"laminar": laminar, "opening": opening}
    rows = zip(JOINTS, numbers["P_s"], numbers["G"], numbers["beta_m"], strict=True)
    return [RotaryHydraulics(joint, P_s, G, beta_m, **shared) for joint, P_s, G, beta_m in rows]


def arm() -> ExcavatorArm:
    """Return the kinematics of the arm, with the tip at the bucket's hinge."""
    return ExcavatorArm.of(excavator())


def poses() -> tuple[list[float], list[float]]:
    """Return the joint angles at the start and at the end of both runs."""
    kinematics: ExcavatorArm = arm()
    return [float(x) for x in kinematics.inverse(START_TARGET)], [float(x) for x in kinematics.inverse(END_TARGET)]


def resolved_mode() -> ResolvedMode:
    """Return the control of the run in RESOLVED mode."""
    path = Ramp(START_TARGET, END_TARGET, MOTION_SECONDS, REST_SECONDS)

    def sticks(t: Scalar) -> list[Scalar]:
        (radius, *_), (radial, swing, up, turn), _ = path(t)
        return [radial, radius * swing, up, turn]

    gains = data("excavator")["control"]
    return ResolvedMode(gains["kp"], gains["kv"], poses()[0], sticks, arm=arm())


def joint_mode() -> JointMode:
    """Return the control of the run in JOINT mode."""
    start, end = poses()
    path = Ramp(start, end, MOTION_SECONDS, REST_SECONDS)
    gains = data("excavator")["control"]
    return JointMode(gains["kp"], gains["kv"], start, lambda t: path(t)[1])
