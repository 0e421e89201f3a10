"""Dig-swing-dump cycle as a periodic path of the teeth: [radius, swing, height, bucket angle] and its rate.

Between two waypoints each of the four coordinates moves as a cycloid (trajectory.py), which starts and ends at rest;
the moves add up to a closed cycle. The waypoints are chosen here for level ground at height 0 and a machine of the
20 t class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians

from bellcrank.scalar import Scalar, atan2, clip, cos, sin, where


@dataclass(frozen=True)
class Move:
    """One move of the cycle: its duration and its final waypoint."""

    what: str
    seconds: float
    radius: float  # m, distance of the teeth from the swing axis
    swing: float  # degrees
    height: float  # m, above the ground
    bucket: float  # degrees, angle of the line from the bucket's pin to the teeth above the horizontal

    @property
    def place(self) -> tuple[float, float, float, float]:
        """Final waypoint: radius, swing, height and bucket angle in m and rad."""
        return self.radius, radians(self.swing), self.height, radians(self.bucket)


CYCLE = (
    Move("reach", 2.0, 7.6, 0.0, 0.3, -75.0),
    Move("plunge", 2.5, 7.3, 0.0, -0.45, -85.0),
    Move("drag", 5.0, 5.0, 0.0, -0.55, -120.0),
    Move("curl", 3.5, 4.3, 0.0, 0.6, -175.0),
    Move("lift", 3.0, 4.6, 0.0, 2.6, -180.0),
    Move("swing", 5.0, 4.8, 80.0, 3.0, -180.0),
    Move("dump", 4.5, 6.6, 80.0, 2.2, -80.0),
    Move("return", 4.5, 6.8, 0.0, 1.2, -75.0),
)


@dataclass(frozen=True)
class DiggingCycle:
    """Periodic path through the waypoints of `moves`."""

    moves: tuple[Move, ...] = CYCLE

    @property
    def period(self) -> float:
        """Duration of the cycle, s."""
        return sum(m.seconds for m in self.moves)

    def phase(self, t: Scalar) -> Scalar:
        """Return the time since the cycle began, s, for the time `t`.

        The remainder is computed from an angle, by `atan2` of sine and cosine, without a modulo operation.
        """
        w = 2.0 * pi / self.period
        a = atan2(sin(w * t), cos(w * t))
        return where(a < 0.0, a + 2.0 * pi, a) / w

    def __call__(self, t: Scalar) -> tuple[list[Scalar], list[Scalar]]:
        """Return position and rate at the time `t`."""
        since = self.phase(t)
        places = [self.moves[-1].place, *(m.place for m in self.moves)]
        at: list[Scalar] = list(places[0])
        rate: list[Scalar] = [0.0] * 4
        begin = 0.0
        for k, move in enumerate(self.moves):
            a = clip((since - begin) / move.seconds, 0.0, 1.0) * (2.0 * pi)
            s, ds = (a - sin(a)) / (2.0 * pi), (1.0 - cos(a)) / move.seconds
            for i in range(4):
                way = places[k + 1][i] - places[k][i]
                if way:
                    at[i], rate[i] = at[i] + way * s, rate[i] + way * ds
            begin += move.seconds
        return at, rate
