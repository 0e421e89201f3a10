"""Control of the excavator by sticks in JOINT mode and RESOLVED mode, and two runs (D. Wong 1991, chapter 5).

    dtheta_d = u                          JOINT: each stick is the desired rate of one joint
    dtheta_d = (inverse kinematics)(u)    RESOLVED: radial, arc and vertical speed of the tip, and the bucket's rate
    v = kv (dtheta_d - dtheta) + kp (theta_d - theta)                                                          5.5

theta_d is the integral of dtheta_d, as in the paper (sections 5.4.3 and 5.5.2), and therefore a state of the control.
The command v goes to RotaryHydraulics, which has the dead band and the limit of the spool.

Differences from the paper: dtheta is the joint's true velocity and theta_d is integrated with all other states; the
paper takes differences and sums at the rate of its display. At the boundary of the reach and at the stops the desired
motion stops or slides along. With a `leash` (control/trajectory.py) desired angles wait for a machine that cannot
follow, and it stops when the sticks are released. With a `bleed` the spools yield to oscillations of the load pressures
about their mean, which damps the arm on its oil.

The runs (section 5.5.2, figs 5.5 to 5.10) take 15 s each, with the numbers of chapter 5. Printed: 5 s at rest, 5 s of
motion, 5 s at rest, pressures from zero. RESOLVED: the cab turns 15 degrees while the tip moves from a radius of 5 m to
6.5 m at constant speed, height and bucket angle.

Not printed, and chosen here among the numbers for which all sentences about the figures can hold. `bellcrank papers
wong_feasible` samples the set of such numbers; that all sentences hold here is therefore no evidence for these values:

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

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, radians
from typing import Any, ClassVar

from bellcrank.actuators import RotaryHydraulics
from bellcrank.actuators.actuator import StateVariable, bounded_rate
from bellcrank.control.trajectory import Leash, Ramp
from bellcrank.errors import InputError
from bellcrank.excavators.geometry import ExcavatorArm
from bellcrank.scalar import Scalar, where
from bellcrank.zoo import data, excavator

JOINTS = ("cab", "boom", "stick", "bucket")

Profile = Callable[[Scalar], Sequence[Scalar]]  # scripted stick positions by time
REST_SECONDS, MOTION_SECONDS, SECONDS = 5.0, 5.0, 15.0
HEIGHT, BUCKET, OPENING = 3.0, -pi / 2, 0.1  # m, rad, cm/V
# Radius, swing, height, bucket.
START_TARGET, END_TARGET = (5.0, 0.0, HEIGHT, BUCKET), (6.5, radians(15.0), HEIGHT, BUCKET)


@dataclass(frozen=True)
class SpoolControl(ABC):
    """Control law: called with (t, q, v, x, u), it returns four spool commands and the rates of its states."""

    kp: Sequence[Scalar]
    kv: Sequence[Scalar]
    start: Sequence[float]  # rad, the desired angles at time 0
    profile: Profile | None = None  # scripted inputs; without it inputs come from u, by name
    stops: Sequence[tuple[Scalar, Scalar]] | None = None  # rad, limits of the desired angles
    leash: Leash | None = None  # limits the lead of the desired angles; without it they are integrated as printed
    bleed: Sequence[Scalar] | None = None  # V/psi
    memory: Scalar = 0.2  # s, time constant of the mean load pressures

    inputs: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in ("kp", "kv", "start", "stops", "bleed"):
            values = getattr(self, name)
            if values is not None and len(values) != 4:
                raise InputError(
                    f"{type(self).__name__}: {name} has {len(values)} entries; expected 4: {', '.join(JOINTS)}."
                )

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """State variables: mean load pressures, if they are needed, then desired angles."""
        means = [StateVariable(f"{j}_load", "psi") for j in JOINTS] if self.bleed is not None else []
        return (*means, *(StateVariable(f"{j}_d", "rad", q) for j, q in zip(JOINTS, self.start, strict=True)))

    @abstractmethod
    def rates(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Return the desired joint rates.

        Parameters
        ----------
        theta_d
            Desired joint angles, rad.
        u
            Stick positions.
        """

    def desired(self, t: Scalar, x: Any, u: Any = ()) -> tuple[list[Scalar], list[Scalar]]:
        """Return the desired joint angles and their rates, limited by the stops.

        Parameters
        ----------
        t
            Time, s.
        x
            States by name.
        u
            Inputs by name.
        """
        theta_d = [x[f"{j}_d"] for j in JOINTS]
        sticks = self.profile(t) if self.profile is not None else [u[name] for name in self.inputs]
        rates = self.rates(theta_d, sticks)
        if self.stops is not None:
            rates = [bounded_rate(a, r, *stop) for a, r, stop in zip(theta_d, rates, self.stops, strict=True)]
        return theta_d, rates

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any = ()) -> tuple[list[Scalar], list[Scalar]]:
        """Return spool commands and rates of the states.

        Parameters
        ----------
        t
            Time, s.
        q
            Joint positions.
        v
            Joint velocities.
        x
            States by name.
        u
            Inputs by name.
        """
        theta_d, rates = self.desired(t, x, u)
        commands = [self.kv[i] * (rates[i] - v[i]) + self.kp[i] * (theta_d[i] - q[i]) for i in range(4)]  # 5.5
        if self.leash is not None:
            rates = [self.leash(d, w, a) for d, w, a in zip(theta_d, rates, q, strict=True)]
        if self.bleed is None:
            return commands, rates
        swings = [x[f"{j}.p_in"] - x[f"{j}.p_out"] - x[f"{j}_load"] for j in JOINTS]
        commands = [c - b * p for c, b, p in zip(commands, self.bleed, swings, strict=True)]
        return commands, [*(p / self.memory for p in swings), *rates]


@dataclass(frozen=True)
class JointMode(SpoolControl):
    """Control in JOINT mode: each stick is the rate of one joint."""

    inputs: ClassVar[tuple[str, ...]] = JOINTS  # rad/s

    def rates(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Return the stick positions `u` as joint rates, at any desired angles `theta_d`."""
        return list(u)


@dataclass(frozen=True)
class _ArmControl(SpoolControl):
    arm: ExcavatorArm | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.arm is None:
            raise InputError(f"{type(self).__name__}: has no arm; expected arm=ExcavatorArm.of(mechanism).")

    def resolved(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        assert self.arm is not None
        return self.arm.stick_rates(theta_d, u)


@dataclass(frozen=True)
class ResolvedMode(_ArmControl):
    """Control in RESOLVED mode: the sticks are rates of the tip and of the bucket."""

    inputs: ClassVar[tuple[str, ...]] = ("radius", "arc", "height", "bucket")  # m/s, m/s, m/s, rad/s

    def rates(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Return joint rates for rates of the tip.

        Parameters
        ----------
        theta_d
            Desired joint angles, rad.
        u
            Rates of radius, arc, height and bucket.
        """
        return self.resolved(theta_d, u)


@dataclass(frozen=True)
class EitherMode(_ArmControl):
    """Control in both modes, with a switch among the inputs: RESOLVED above a half.

    Switching moves nothing, as both modes share the desired angles.
    """

    inputs: ClassVar[tuple[str, ...]] = ("first", "second", "third", "fourth", "resolved")

    def rates(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Return joint rates in the selected mode.

        Parameters
        ----------
        theta_d
            Desired joint angles, rad.
        u
            Four sticks and the switch.
        """
        *sticks, switch = u
        pairs = zip(self.resolved(theta_d, sticks), sticks, strict=True)
        return [where(switch > 0.5, tip, joint) for tip, joint in pairs]


def spool_outputs(control: SpoolControl, drives: Sequence[RotaryHydraulics]) -> list[Callable[..., Scalar]]:
    """Return the openings of the spools of `drives` under `control`, cm, as functions of (t, q, v, x, u)."""
    return [
        lambda t, q, v, x, u, i=i, drive=drive: drive.spool(control(t, q, v, x, u)[0][i])
        for i, drive in enumerate(drives)
    ]


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
