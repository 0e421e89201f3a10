"""What must hold inside a state: quaternions have unit length, and states of actuators stay inside their limits."""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.dynamics import kinematics
from bellcrank.integrate.problem import State
from bellcrank.scalar import clip, sqrt
from bellcrank.sim.systems import System


def projection(s: System) -> Callable[[State], State]:
    """Puts a state back where it belongs: quaternions to unit length, actuator states inside their limits."""
    m = s.mechanism
    bounds = s.limits()

    def project(y: State) -> State:
        y = turned(s, y)
        for k, pair in enumerate(bounds, m.nq + m.nv):
            if pair is not None:
                y[k] = clip(y[k], *pair)
        return y

    return project


def turned(s: System, y: State) -> State:
    """The state with quaternions of unit length."""
    y = list(y)
    for i in s.quaternions:
        n = 1.0 / sqrt(sum((x * x for x in y[i + 1 : i + 4]), y[i] * y[i]))
        y[i : i + 4] = [x * n for x in y[i : i + 4]]
    return y


def rolled(s: System) -> Callable[[State, State, State], State]:
    """(q, q1, displacement): (1 + w/2) behind the quaternion of q is Cayley's map of w, but for its length."""

    def roll(q: State, q1: State, displacement: State) -> State:
        change, out = kinematics.rate(s.mechanism.tree, q, displacement), list(q1)
        for i in s.quaternions:
            out[i : i + 4] = [a + b for a, b in zip(q[i : i + 4], change[i : i + 4], strict=True)]
        return out

    return roll
