"""Programs that drive an excavator: the sticks of RESOLVED mode, moved so that the teeth go from place to place.

A program sees what a person sees, sixty times a second, and moves the same levers. `plain` says all of it in numbers:
with them a page without a server does the same (exporting/sources/pilots.js).
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
# radius m, swing rad, height m, bucket's angle rad. The ground is at -1.
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
PATIENCE = 14.0  # s; what cannot be reached is passed over


@dataclass(frozen=True)
class Sticks:
    """Hands on the RESOLVED sticks of one machine."""

    arm: ExcavatorArm
    joints: Sequence[int]  # where the angles of cab, boom, stick and bucket are in y
    start: Sequence[float]  # rad, what they are where y has zero
    speeds: Sequence[float]  # of full sticks: radius, arc, height, bucket
    turn: float  # rad/s, the cab's fastest

    def place(self, shot: Snapshot) -> Four:
        """Where the teeth are now."""
        theta = [float(shot.y[i]) + a for i, a in zip(self.joints, self.start, strict=True)]
        radius, swing, height, bucket = (float(x) for x in self.arm.forward(theta))
        return radius, swing, height, bucket

    def moved(self, at: Four, rates: Sequence[float]) -> list[float]:
        """Levers for rates of [radius, swing, height, bucket]; all slow down together, so that the way is straight."""
        radius, swing, height, bucket = rates
        wanted = (radius, max(-self.turn, min(self.turn, swing)) * max(at[0], 1.0), height, bucket)
        share = min([1.0, *(s / abs(x) for x, s in zip(wanted, self.speeds, strict=True) if x)])
        return [share * x for x in wanted]

    @property
    def plain(self) -> dict[str, Any]:
        arm = {name: float(getattr(self.arm, name)) for name in ("a", "c", "l1", "l2")}
        numbers = {"start": self.start, "speeds": self.speeds, "joints": self.joints}
        return {"arm": arm | {"tip": [float(x) for x in self.arm.tip]}, "turn": self.turn} | {
            name: list(some) for name, some in numbers.items()
        }


@dataclass
class Tour:
    """Goes round `places` for ever, each time a bucket's width further round, where the ground is still whole: what it
    dumps goes, a few rounds later, into its first holes, so that after a whole circle there is ground again. Call it
    with a snapshot: five levers, the last of which is the mode.
    """

    hands: Sticks
    places: Sequence[Four] = DIG
    further: float = -0.25  # rad
    at: int = 0
    _turned: float | None = field(default=None)  # where the round began
    _since: float = field(default=-math.inf)

    @property
    def goal(self) -> Four:
        radius, swing, height, bucket = self.places[self.at]
        return radius, swing + (self._turned or 0.0), height, bucket

    def __call__(self, shot: Snapshot) -> list[float]:
        now = self.hands.place(shot)
        if self._turned is None:
            self._turned = now[1]
        if not 0.0 <= shot.t - self._since < math.inf:
            self._since = shot.t
        error = [goal - x for goal, x in zip(self.goal, now, strict=True)]
        if max(map(abs, error)) < ARRIVED_WITHIN or shot.t - self._since > PATIENCE:
            self.at, self._since = (self.at + 1) % len(self.places), shot.t
            if self.at == len(self.places) - 1:
                self._turned += self.further  # the way back leads there
        return [*self.hands.moved(now, [GAIN * e for e in error]), 1.0]

    @property
    def plain(self) -> dict[str, Any]:
        places = [list(place) for place in self.places]
        return {"kind": "tour", "hands": self.hands.plain, "places": places, "further": self.further, "rest": [1.0]}


@dataclass
class PaperRun:
    """Wong's RESOLVED run (1991, section 5.5.2), by the sticks, again and again: to its beginning, 5 s still, 5 s out
    by 1.5 m and round by 15 degrees at constant speed, height and bucket angle, 5 s still.
    """

    hands: Sticks
    _there: float | None = None  # since when at the beginning

    @property
    def beginning(self) -> Four:
        """The paper says where the bucket's hinge is; the sticks move the teeth."""
        arm = self.hands.arm
        hinge = replace(arm, tip=(0.0, 0.0))
        radius, swing, height, bucket = (float(x) for x in arm.forward(hinge.inverse(wong.FROM)))
        return radius, swing, height, bucket

    def __call__(self, shot: Snapshot) -> list[float]:
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
        """Speeds of the four coordinates while it moves."""
        return [(b - a) / wong.MOVING for a, b in zip(wong.FROM, wong.TO, strict=True)]

    @property
    def plain(self) -> dict[str, Any]:
        times = {"still": wong.STILL, "moving": wong.MOVING, "seconds": wong.SECONDS}
        own = {"hands": self.hands.plain, "beginning": list(self.beginning), "rates": self.rates, "rest": [1.0]}
        return {"kind": "experiment"} | own | times


@dataclass(frozen=True)
class More:
    """A program for a machine that has more levers: those stay where they are."""

    program: Tour | PaperRun
    others: tuple[float, ...]

    def __call__(self, shot: Snapshot) -> list[float]:
        return [*self.program(shot), *self.others]

    @property
    def plain(self) -> dict[str, Any]:
        found = self.program.plain
        return found | {"rest": [*found["rest"], *self.others]}
