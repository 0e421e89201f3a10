"""A desired motion that never runs away from the real one, so that a machine stops when its sticks are let go.

    lead = min(rest + lag |w|, most)                          how far the desired angle may be from the actual one
    dtheta_d = clip(w, c (theta - lead - theta_d), c (theta + lead - theta_d))

w is the rate that is asked for, lag the seconds by which the servo trails behind it when nothing is in its way, rest
what it needs to hold a load. Free, the desired angle goes at w. Held up, it waits within its lead. With w = 0 the lead
is `rest` alone: the desired angle comes back to where the joint is within a few 1/c, and goes along with a joint that
is still braking or is pushed away. So what is wanted never outlives the hand that wants it, and nothing springs back.
The rate is continuous in everything, so the desired angle does not chatter at the end of its leash.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.scalar import Scalar, clip, fabs, minimum

CATCH = 100.0  # 1/s, how fast a desired angle beyond its lead comes back: soon for a hand, slow for a step of 1 ms


@dataclass(frozen=True)
class Leash:
    rest: Scalar  # rad
    lag: Scalar  # s
    most: Scalar  # rad, with which the servo does all it can

    def __call__(self, desired: Scalar, rate: Scalar, actual: Scalar) -> Scalar:
        """The rate of a desired angle that is asked to go at `rate`."""
        lead = minimum(self.rest + self.lag * fabs(rate), self.most)
        return clip(rate, CATCH * (actual - lead - desired), CATCH * (actual + lead - desired))
