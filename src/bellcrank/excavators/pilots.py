"""Programs that drive an excavator by the sticks of RESOLVED mode, moving the teeth from waypoint to waypoint.

A program sees the same state as an operator, sixty times a second, and moves the same levers. `plain` describes a
program by numbers, so that a page without a server can run it too (exporting/sources/pilots.js).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.cockpit.plant import Snapshot
from bellcrank.excavators.rotary import experiments as wong
from bellcrank.excavators.rotary.arm import ExcavatorArm

Four = tuple[float, float, float, float]
# Radius m, swing rad, height m, bucket angle rad. The ground is at -1 m.
DIG: tuple[Four, ...] = (
    (6.4, 0.0, 0.3, -1.45),  # out
    (6.3, 0.0, -1.3, -1.6),  # down
    (5.0, 0.0, -1.5, -2.2),  # drag
    (4.8, 0.0, -0.6, -2.9),  # curl
    (5.0, 0.0, 1.3, -3.0),  # lift
    (5.6, 1.25, 1.3, -3.0),  # swing
    (6.2, 1.25, 1.2, -1.2),  # dump
    (6.2, 0.0, 1.0, -1.3),  # back
)
GAIN = 1.2  # 1/s
ARRIVED_WITHIN = 0.06  # m and rad
PATIENCE = 14.0  # s, after which a waypoint that cannot be reached is skipped


@dataclass(frozen=True)
class Sticks:
    """RESOLVED sticks of one machine."""

    arm: ExcavatorArm
    joints: Sequence[int]  # indices of cab, boom, stick and bucket in y
    start: Sequence[float]  # rad, angles at y = 0
    speeds: Sequence[float]  # speeds of full sticks: radius, arc, height, bucket
    turn: float  # rad/s, largest rate of the cab

    def place(self, shot: Snapshot) -> Four:
        """Return radius, swing, height and bucket angle of the teeth in the snapshot `shot`."""
        theta = [float(shot.y[i]) + a for i, a in zip(self.joints, self.start, strict=True)]
        radius, swing, height, bucket = (float(x) for x in self.arm.forward(theta))
        return radius, swing, height, bucket

    def moved(self, at: Four, rates: Sequence[float]) -> list[float]:
        """Return lever values for rates of [radius, swing, height, bucket], scaled together to keep the path straight.

        Parameters
        ----------
        at
            Position of the teeth.
        rates
            Desired rates of the four coordinates.
        """
        radius, swing, height, bucket = rates
        wanted = (radius, max(-self.turn, min(self.turn, swing)) * max(at[0], 1.0), height, bucket)
        share = min([1.0, *(s / abs(x) for x, s in zip(wanted, self.speeds, strict=True) if x)])
        return [share * x for x in wanted]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        arm = {name: float(getattr(self.arm, name)) for name in ("a", "c", "l1", "l2")}
        numbers = {"start": self.start, "speeds": self.speeds, "joints": self.joints}
        return {"arm": arm | {"tip": [float(x) for x in self.arm.tip]}, "turn": self.turn} | {
            name: list(some) for name, some in numbers.items()
        }


@dataclass
class Tour:
    """Endless tour of `places`, each round a bucket's width further along the swing.

    Each round digs in undisturbed ground. The dumped soil falls, a few rounds later, into the first holes, so that
    after a full circle there is ground again. Called with a snapshot, it returns five lever values, the last of which
    is the mode.
    """

    hands: Sticks
    places: Sequence[Four] = DIG
    further: float = -0.25  # rad
    at: int = 0
    _turned: float | None = field(default=None)  # swing angle at the start of the round
    _since: float = field(default=-math.inf)

    @property
    def goal(self) -> Four:
        """Current waypoint."""
        radius, swing, height, bucket = self.places[self.at]
        return radius, swing + (self._turned or 0.0), height, bucket

    def __call__(self, shot: Snapshot) -> list[float]:
        """Return the lever values for the snapshot `shot`."""
        now = self.hands.place(shot)
        if self._turned is None:
            self._turned = now[1]
        if not 0.0 <= shot.t - self._since < math.inf:
            self._since = shot.t
        error = [goal - x for goal, x in zip(self.goal, now, strict=True)]
        if max(map(abs, error)) < ARRIVED_WITHIN or shot.t - self._since > PATIENCE:
            self.at, self._since = (self.at + 1) % len(self.places), shot.t
            if self.at == len(self.places) - 1:
                self._turned += self.further  # the return move already leads to the next round
        return [*self.hands.moved(now, [GAIN * e for e in error]), 1.0]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        places = [list(place) for place in self.places]
        return {"kind": "tour", "hands": self.hands.plain, "places": places, "further": self.further, "rest": [1.0]}


@dataclass
class PaperRun:
    """Wong's RESOLVED run (1991, section 5.5.2), repeated by the sticks.

    It goes to the start, rests for 5 s, moves for 5 s by 1.5 m in radius and 15 degrees in swing at constant speed,
    height and bucket angle, and rests for 5 s.
    """

    hands: Sticks
    _there: float | None = None  # time of arrival at the start

    @property
    def beginning(self) -> Four:
        """Start of the run for the teeth, which the sticks move; the paper gives that of the bucket's hinge."""
        arm = self.hands.arm
        hinge = replace(arm, tip=(0.0, 0.0))
        radius, swing, height, bucket = (float(x) for x in arm.forward(hinge.inverse(wong.FROM)))
        return radius, swing, height, bucket

    def __call__(self, shot: Snapshot) -> list[float]:
        """Return the lever values for the snapshot `shot`."""
        now = self.hands.place(shot)
        if self._there is not None and not 0.0 <= shot.t - self._there < wong.SECONDS:
            self._there = None
        if self._there is None:
            error = [goal - x for goal, x in zip(self.beginning, now, strict=True)]
            if max(map(abs, error)) < ARRIVED_WITHIN:
                self._there = shot.t
            return [*self.hands.moved(now, [GAIN * e for e in error]), 1.0]
        moving = wong.STILL <= shot.t - self._there < wong.STILL + wong.MOVING
        return [*self.hands.moved(now, self.rates if moving else (0.0,) * 4), 1.0]

    @property
    def rates(self) -> list[float]:
        """Rates of the four coordinates during the motion."""
        return [(b - a) / wong.MOVING for a, b in zip(wong.FROM, wong.TO, strict=True)]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        times = {"still": wong.STILL, "moving": wong.MOVING, "seconds": wong.SECONDS}
        own = {"hands": self.hands.plain, "beginning": list(self.beginning), "rates": self.rates, "rest": [1.0]}
        return {"kind": "experiment"} | own | times


@dataclass(frozen=True)
class More:
    """Program for a machine with additional levers, which keep constant values."""

    program: Tour | PaperRun
    others: tuple[float, ...]

    def __call__(self, shot: Snapshot) -> list[float]:
        """Return the lever values for the snapshot `shot`."""
        return [*self.program(shot), *self.others]

    @property
    def plain(self) -> dict[str, Any]:
        """Description by plain numbers, for JSON."""
        found = self.program.plain
        return found | {"rest": [*found["rest"], *self.others]}
