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
class DigMove:
    """One move of the cycle: its duration and its final waypoint."""

    label: str
    seconds: float
    radius: float  # m, distance of the teeth from the swing axis
    swing: float  # degrees
    height: float  # m, above the ground
    bucket: float  # degrees, angle of the line from the bucket's pin to the teeth above the horizontal

    @property
    def waypoint(self) -> tuple[float, float, float, float]:
        """Final waypoint: radius, swing, height and bucket angle in m and rad."""
        return self.radius, radians(self.swing), self.height, radians(self.bucket)


CYCLE = (
    DigMove("reach", 2.0, 7.6, 0.0, 0.3, -75.0),
    DigMove("plunge", 2.5, 7.3, 0.0, -0.45, -85.0),
    DigMove("drag", 5.0, 5.0, 0.0, -0.55, -120.0),
    DigMove("curl", 3.5, 4.3, 0.0, 0.6, -175.0),
    DigMove("lift", 3.0, 4.6, 0.0, 2.6, -180.0),
    DigMove("swing", 5.0, 4.8, 80.0, 3.0, -180.0),
    DigMove("dump", 4.5, 6.6, 80.0, 2.2, -80.0),
    DigMove("return", 4.5, 6.8, 0.0, 1.2, -75.0),
)


@dataclass(frozen=True)
class DiggingCycle:
    """Periodic path through the waypoints of `moves`."""

    moves: tuple[DigMove, ...] = CYCLE

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
        cycle_time = self.phase(t)
        waypoints = [self.moves[-1].waypoint, *(m.waypoint for m in self.moves)]
        position: list[Scalar] = list(waypoints[0])
        rate: list[Scalar] = [0.0] * 4
        begin = 0.0
        for k, move in enumerate(self.moves):
            a = clip((cycle_time - begin) / move.seconds, 0.0, 1.0) * (2.0 * pi)
            s, ds = (a - sin(a)) / (2.0 * pi), (1.0 - cos(a)) / move.seconds
            for i in range(4):
                distance = waypoints[k + 1][i] - waypoints[k][i]
                if distance:
                    position[i], rate[i] = position[i] + distance * s, rate[i] + distance * ds
            begin += move.seconds
        return position, rate
