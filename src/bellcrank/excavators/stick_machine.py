"""An excavator that is driven by two sticks: its levers, plots, gauges and outputs, and programs that move the levers.

The axes of the sticks are assigned to levers in each mode (JOINT, RESOLVED) and pattern (ISO, SAE).

A program moves the teeth from waypoint to waypoint by the sticks of RESOLVED mode. It sees the same state as an
operator, sixty times a second, and moves the same levers. `plain` describes a program by numbers, so that a page
without a server can run it too (exporting/sources/pilots.js).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.cockpit.machines import Axes, Gauge, Joysticks, Lever, Machine, Plot
from bellcrank.excavators import spool_control as wong
from bellcrank.excavators.digging_forces import Stance
from bellcrank.excavators.geometry import ExcavatorArm
from bellcrank.ground.contact import GroundContact
from bellcrank.scalar import Scalar
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot
from bellcrank.sim.system.systems import System

TipCoordinates = tuple[float, float, float, float]
# Radius m, swing rad, height m, bucket angle rad. The ground is at -1 m.
DIG_WAYPOINTS: tuple[TipCoordinates, ...] = (
    (6.4, 0.0, 0.3, -1.45),  # out
    (6.3, 0.0, -1.3, -1.6),  # down
    (5.0, 0.0, -1.5, -2.2),  # drag
    (4.8, 0.0, -0.6, -2.9),  # curl
    (5.0, 0.0, 1.3, -3.0),  # lift
    (5.6, 1.25, 1.3, -3.0),  # swing
    (6.2, 1.25, 1.2, -1.2),  # dump
    (6.2, 0.0, 1.0, -1.3),  # back
)
WAYPOINT_GAIN = 1.2  # 1/s
ARRIVED_WITHIN = 0.06  # m and rad
WAYPOINT_TIMEOUT = 14.0  # s, after which a waypoint that cannot be reached is skipped


@dataclass(frozen=True)
class Sticks:
    """RESOLVED sticks of one machine."""

    arm: ExcavatorArm
    joints: Sequence[int]  # indices of cab, boom, stick and bucket in y
    start: Sequence[float]  # rad, angles at y = 0
    speeds: Sequence[float]  # speeds of full sticks: radius, arc, height, bucket
    turn: float  # rad/s, largest rate of the cab

    def place(self, shot: DriveSnapshot) -> TipCoordinates:
        """Return radius, swing, height and bucket angle of the teeth in the snapshot `shot`."""
        theta = [float(shot.y[i]) + a for i, a in zip(self.joints, self.start, strict=True)]
        radius, swing, height, bucket = (float(x) for x in self.arm.forward(theta))
        return radius, swing, height, bucket

    def lever_values(self, tip: TipCoordinates, rates: Sequence[float]) -> list[float]:
        """Return lever values for rates of [radius, swing, height, bucket], scaled together to keep the path straight.

        Parameters
        ----------
        tip
            Position of the teeth.
        rates
            Desired rates of the four coordinates.
        """
        radius, swing, height, bucket = rates
        lever_rates = (radius, max(-self.turn, min(self.turn, swing)) * max(tip[0], 1.0), height, bucket)
        share = min([1.0, *(s / abs(x) for x, s in zip(lever_rates, self.speeds, strict=True) if x)])
        return [share * x for x in lever_rates]

    def towards(self, tip: TipCoordinates, goal: TipCoordinates) -> tuple[list[float], bool]:
        """Return lever values that move the teeth from `tip` to `goal`, and whether they have arrived."""
        error = [a - b for a, b in zip(goal, tip, strict=True)]
        return self.lever_values(tip, [WAYPOINT_GAIN * e for e in error]), max(map(abs, error)) < ARRIVED_WITHIN

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        arm = {name: float(getattr(self.arm, name)) for name in ("a", "c", "l1", "l2")}
        numbers = {"start": self.start, "speeds": self.speeds, "joints": self.joints}
        lists = {name: list(some) for name, some in numbers.items()}
        return {"arm": arm | {"tip": [float(x) for x in self.arm.tip]}, "turn": self.turn} | lists


@dataclass
class Tour:
    """Endless tour of `places`, each round a bucket's width further along the swing.

    Each round digs in undisturbed ground. The dumped soil falls, a few rounds later, into the first holes, so that
    after a full circle there is ground again. Called with a snapshot, it returns the values of all levers.
    """

    hands: Sticks
    places: Sequence[TipCoordinates] = DIG_WAYPOINTS
    other_levers: tuple[float, ...] = (1.0,)  # RESOLVED mode, and levers of the machine besides the sticks
    angle_step: float = -0.25  # rad
    index: int = 0
    _round_angle: float | None = field(default=None)  # swing angle at the start of the round
    _goal_time: float = field(default=-math.inf)

    @property
    def goal(self) -> TipCoordinates:
        """Current waypoint."""
        radius, swing, height, bucket = self.places[self.index]
        return radius, swing + (self._round_angle or 0.0), height, bucket

    def __call__(self, shot: DriveSnapshot) -> list[float]:
        """Return the lever values for the snapshot `shot`."""
        tip = self.hands.place(shot)
        if self._round_angle is None:
            self._round_angle = tip[1]
        if not 0.0 <= shot.t - self._goal_time < math.inf:
            self._goal_time = shot.t
        levers, has_arrived = self.hands.towards(tip, self.goal)
        if has_arrived or shot.t - self._goal_time > WAYPOINT_TIMEOUT:
            self.index, self._goal_time = (self.index + 1) % len(self.places), shot.t
            if self.index == len(self.places) - 1:
                self._round_angle += self.angle_step  # the return move already leads to the next round
        return [*levers, *self.other_levers]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        places = [list(place) for place in self.places]
        tour = {"kind": "tour", "hands": self.hands.plain, "places": places, "further": self.angle_step}
        return tour | {"rest": list(self.other_levers)}


@dataclass
class PaperRun:
    """Wong's RESOLVED run (1991, section 5.5.2), repeated by the sticks.

    It goes to the start, rests for 5 s, moves for 5 s by 1.5 m in radius and 15 degrees in swing at constant speed,
    height and bucket angle, and rests for 5 s.
    """

    hands: Sticks
    other_levers: tuple[float, ...] = (1.0,)
    _arrival_time: float | None = None  # time of arrival at the start

    @property
    def beginning(self) -> TipCoordinates:
        """Start of the run for the teeth, which the sticks move; the paper gives that of the bucket's hinge."""
        arm = self.hands.arm
        hinge = replace(arm, tip=(0.0, 0.0))
        radius, swing, height, bucket = (float(x) for x in arm.forward(hinge.inverse(wong.START_TARGET)))
        return radius, swing, height, bucket

    def __call__(self, shot: DriveSnapshot) -> list[float]:
        """Return the lever values for the snapshot `shot`."""
        tip = self.hands.place(shot)
        if self._arrival_time is not None and not 0.0 <= shot.t - self._arrival_time < wong.SECONDS:
            self._arrival_time = None
        if self._arrival_time is None:
            levers, has_arrived = self.hands.towards(tip, self.beginning)
            self._arrival_time = shot.t if has_arrived else None
            return [*levers, *self.other_levers]
        moving = wong.REST_SECONDS <= shot.t - self._arrival_time < wong.REST_SECONDS + wong.MOTION_SECONDS
        return [*self.hands.lever_values(tip, self.rates if moving else (0.0,) * 4), *self.other_levers]

    @property
    def rates(self) -> list[float]:
        """Rates of the four coordinates during the motion."""
        return [(b - a) / wong.MOTION_SECONDS for a, b in zip(wong.START_TARGET, wong.END_TARGET, strict=True)]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        times = {"still": wong.REST_SECONDS, "moving": wong.MOTION_SECONDS, "seconds": wong.SECONDS}
        motion = {"hands": self.hands.plain, "beginning": list(self.beginning), "rates": self.rates}
        return {"kind": "experiment"} | motion | {"rest": list(self.other_levers)} | times


DEG = 180.0 / math.pi
TEETH_PLOT = Plot("Teeth", "m", ("tip.radius", "tip.height"))
Output = Callable[..., Scalar]

# Lever and direction of each axis: x to the right, y away from the operator. JOINT_AXES: cab, boom, stick, bucket.
JOINT_AXES: Axes = {
    "left.x": ("first", -1.0),  # left: the cab turns left
    "left.y": ("third", 1.0),  # away: stick out
    "right.x": ("fourth", 1.0),  # left: the bucket curls in
    "right.y": ("second", -1.0),  # away: boom down
}
# RESOLVED_AXES: radius, arc, height, bucket. Each hand controls the same kind of motion as in JOINT.
RESOLVED_AXES: Axes = {
    "left.x": ("second", -1.0),
    "left.y": ("first", 1.0),
    "right.x": ("fourth", 1.0),
    "right.y": ("third", -1.0),
}
# Two joysticks in RESOLVED mode, as in Wong 1991, section 5.3: one with three axes for the teeth (x: swing, y: radius,
# third: height, which falls when the handle is twisted to the right), and one for the bucket (away: open).
JOYSTICKS: Mapping[str, Joysticks] = {
    "RESOLVED": ((("second", -1.0), ("first", 1.0), ("third", -1.0)), (("fourth", 1.0),)),
}
# Label of each lever, and its effect below and above zero.
LEVER_LABELS = {
    "JOINT": {
        "first": ("swing", "right", "left"),
        "second": ("boom", "down", "up"),
        "third": ("stick", "in", "out"),
        "fourth": ("bucket", "curl", "open"),
    },
    "RESOLVED": {
        "first": ("teeth", "in", "out"),
        "second": ("swing", "right", "left"),
        "third": ("teeth", "down", "up"),
        "fourth": ("bucket", "curl", "open"),
    },
}


def _sae_axes(axes: Axes) -> Axes:
    """Return the SAE pattern: forward and backward motions of the two sticks are exchanged."""
    return {**axes, "left.y": axes["right.y"], "right.y": axes["left.y"]}


MODES = ("JOINT", "RESOLVED")
PATTERNS = {
    "ISO": {"JOINT": JOINT_AXES, "RESOLVED": RESOLVED_AXES},
    "SAE": {"JOINT": _sae_axes(JOINT_AXES), "RESOLVED": _sae_axes(RESOLVED_AXES)},
}


def stick_machine(
    plant: System, hands: Sticks, rates: Sequence[float], joints: Sequence[str], contact: GroundContact, *,
    levers: Sequence[Lever] = (), plots: Sequence[Plot], gauges: Sequence[Gauge],
    waypoints: Sequence[TipCoordinates] = DIG_WAYPOINTS, **more: Any,
) -> Machine:  # fmt: skip
    """Return the machine of an excavator.

    Parameters
    ----------
    plant
        System with the outputs of `tip_outputs` and `stance_outputs`; the sticks are its first four inputs.
    hands
        Sticks of RESOLVED mode.
    rates
        Joint rates of full sticks in JOINT mode, rad/s.
    joints
        Names of cab, boom, stick and bucket.
    contact
        Contact of the bucket with the ground.
    levers, plots, gauges
        Those besides the sticks, the joints and the stability. Programs leave these levers at zero.
    waypoints
        Waypoints of the digging program.
    more
        Further fields of a Machine.
    """
    names = plant.inputs[:4]
    spans = {"JOINT": rates, "RESOLVED": hands.speeds}
    other_levers = (1.0, *(0.0 for _ in levers))  # programs drive in RESOLVED mode
    sticks = [Lever(name, "", -max(a, b), max(a, b)) for name, a, b in zip(names, *spans.values(), strict=True)]
    return Machine(
        plant,
        (*sticks, Lever("resolved", "", 0.0, 1.0, None), *levers),
        (
            Plot("Joint angles", "deg", tuple(f"{j}.q" for j in joints), DEG),
            Plot("Joint rates", "deg/s", tuple(f"{j}.v" for j in joints), DEG),
            *plots,
        ),
        patterns=PATTERNS,
        joysticks=JOYSTICKS,
        mode="resolved",
        modes=MODES,
        words=LEVER_LABELS,
        spans={mode: dict(zip(names, ends, strict=True)) for mode, ends in spans.items()},
        ground=contact.level,
        trace=("bucket", contact.tip),
        contact=contact,
        pilots={"dig": lambda: Tour(hands, waypoints, other_levers), "resolved": lambda: PaperRun(hands, other_levers)},
        gauges=(*gauges, *(Gauge(x, x, "%", 0.0, 100.0, 100.0, 80.0) for x in ("tipping", "slipping"))),
        **more,
    )


def tip_outputs(tip: Callable[[Any], Sequence[Scalar]], load: Scalar) -> dict[str, Output]:
    """Return the outputs of the teeth and of the bucket's load.

    Parameters
    ----------
    tip
        Function of q that returns radius, swing, height and bucket angle of the teeth.
    load
        Mass in the bucket, kg.
    """
    return {
        "tip.radius": lambda t, q, v, x, u: tip(q)[0],
        "tip.height": lambda t, q, v, x, u: tip(q)[2],
        "payload": lambda t, q, v, x, u: load + 0.0 * t,
    }


def stance_outputs(stance: Stance) -> dict[str, Output]:
    """Return the outputs of the stability `stance`."""
    return {
        "tipping": lambda t, q, v, x, u: stance.utilisation(t, q, v)[0],
        "slipping": lambda t, q, v, x, u: stance.utilisation(t, q, v)[1],
    }
