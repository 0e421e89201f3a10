"""Projection onto the allowed states: unit quaternions, and actuator states inside their limits."""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.dynamics import kinematics
from bellcrank.integrate.problem import State
from bellcrank.scalar import clip, sqrt
from bellcrank.sim.system.systems import System


def projection(s: System) -> Callable[[State], State]:
    """Return the projection for the system `s`: it normalises quaternions and clips actuator states to their limits."""
    m = s.mechanism
    bounds = s.limits()

    def project(y: State) -> State:
        y = normalised(s, y)
        for k, pair in enumerate(bounds, m.nq + m.nv):
            if pair is not None:
                y[k] = clip(y[k], *pair)
        return y

    return project


def normalised(s: System, y: State) -> State:
    """Return the state `y` of the system `s` with normalised quaternions."""
    y = list(y)
    for i in s.quaternions:
        n = 1.0 / sqrt(sum((x * x for x in y[i + 1 : i + 4]), y[i] * y[i]))
        y[i : i + 4] = [x * n for x in y[i : i + 4]]
    return y


def quaternion_rotation(s: System) -> Callable[[State, State, State], State]:
    """Return (q, q1, displacement) -> q1 with its quaternions rotated from those of q by the displacement.

    (1 + w/2) applied after the quaternion of q is, except for its length, the Cayley map of w. `s` is the system.
    """

    def roll(q: State, q1: State, displacement: State) -> State:
        change, out = kinematics.rate(s.mechanism.tree, q, displacement), list(q1)
        for i in s.quaternions:
            out[i : i + 4] = [a + b for a, b in zip(q[i : i + 4], change[i : i + 4], strict=True)]
        return out

    return roll
