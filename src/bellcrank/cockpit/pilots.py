"""Programs that drive the excavator: the sticks of RESOLVED mode, moved so that the teeth go from place to place.

A program sees what a person sees, sixty times a second, and moves the same levers. It goes by the desired angles, which
the control integrates: the machine itself lags behind them, as under a hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from bellcrank.cockpit.driven import Snapshot
from bellcrank.control.excavator_arm import ExcavatorArm

Four = tuple[float, float, float, float]
# radius m, swing rad, height m, bucket's angle rad. The ground is at -1.
DIG: tuple[Four, ...] = (
    (6.4, 0.0, 0.3, -1.45),  # out
    (6.3, 0.0, -1.3, -1.6),  # down
    (5.0, 0.0, -1.5, -2.2),  # drag
    (4.8, 0.0, -0.6, -2.9),  # curl
    (5.0, 0.0, 1.3, -3.0),  # lift
    (5.6, 1.2, 1.3, -3.0),  # swing
    (6.2, 1.2, 1.2, -1.2),  # dump
    (6.2, 0.0, 1.0, -1.3),  # back
)
GAIN = 1.2  # 1/s
NEAR = 0.06  # m and rad
PATIENCE = 14.0  # s; what cannot be reached is passed over


@dataclass
class Tour:
    """Goes round `places` for ever. Call it with a snapshot: five levers, the last of which is the mode."""

    arm: ExcavatorArm
    states: int  # where the desired angles begin in y
    speeds: Sequence[float]
    turn: float  # rad/s, the cab's fastest
    places: Sequence[Four] = DIG
    at: int = 0
    _since: float = field(default=-math.inf)

    def __call__(self, shot: Snapshot) -> list[float]:
        now = [float(x) for x in self.arm.forward([float(x) for x in shot.y[self.states : self.states + 4]])]
        if not 0.0 <= shot.t - self._since < math.inf:
            self._since = shot.t
        error = [goal - x for goal, x in zip(self.places[self.at], now, strict=True)]
        if max(map(abs, error)) < NEAR or shot.t - self._since > PATIENCE:
            self.at, self._since = (self.at + 1) % len(self.places), shot.t
        radius, swing, height, bucket = (GAIN * e for e in error)
        arc = max(-self.turn, min(self.turn, swing)) * max(now[0], 1.0)
        wanted = (radius, arc, height, bucket)
        # All slow down together, so that the way is straight.
        share = min([1.0, *(s / abs(x) for x, s in zip(wanted, self.speeds, strict=True) if x)])
        return [*(share * x for x in wanted), 1.0]
