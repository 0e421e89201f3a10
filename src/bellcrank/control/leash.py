"""Rate-controlled setpoint that stays close to the actual joint, so that a machine stops when its sticks are released.

    lead = min(rest + lag |w|, most)                          largest distance of the desired from the actual angle
    dtheta_d = clip(w, c (theta - lead - theta_d), c (theta + lead - theta_d))

w is the commanded rate, lag the time by which the unobstructed servo trails the setpoint, rest the lead it needs to
hold a load. Without obstruction the desired angle moves at w. If the joint is blocked, the desired angle waits within
its lead. With w = 0 the lead is `rest` alone: the desired angle returns to the joint within a few 1/c, and follows a
joint that is still braking or is pushed away. A setpoint therefore never outlasts the command, and nothing springs
back. The rate is continuous in all arguments, so the desired angle does not chatter at the end of its leash.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.scalar import Scalar, clip, fabs, minimum

RETURN_RATE_HZ = 100.0  # 1/s, return rate of a setpoint beyond its lead: fast for an operator, slow for a step of 1 ms


@dataclass(frozen=True)
class Leash:
    """Limit on the lead of a desired angle over the actual one."""

    rest: Scalar  # rad
    lag: Scalar  # s
    most: Scalar  # rad, lead at which the servo reaches its limit

    def __call__(self, desired: Scalar, rate: Scalar, actual: Scalar) -> Scalar:
        """Return the rate of the desired angle for the commanded `rate`, rad/s."""
        lead = minimum(self.rest + self.lag * fabs(rate), self.most)
        return clip(rate, RETURN_RATE_HZ * (actual - lead - desired), RETURN_RATE_HZ * (actual + lead - desired))
