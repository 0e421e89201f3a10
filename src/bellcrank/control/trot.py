"""Trot gait of a quadruped: diagonal legs swing together, and the feet land where they keep the balance.

    f = T v / 4 + k (v - w)                  landing point of a swinging foot from below its hip, T: period of the gait
    dx/dt = -w - (w - v)                     rate of the target of a foot on the ground, with w the desired speed
    knee = acos(L / 2l),  thigh = knee - asin(x / L)        leg of two equal links that reaches to (x, -z), L long

The foot placement is that of M. H. Raibert, Legged Robots That Balance, MIT Press, 1986, chapter 2; the lateral one is
equal with w = 0, apart from a turn that restores the heading. The gait is a sampled controller whose states are its
phase and the feet's targets: bc.Sampled(gait, every=gait.every, states=gait.states). Its joint targets go to PD servos.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, acos, asin, clip, maximum, sin, sqrt, where

MAX_STRETCH = 0.98  # share of a leg's length, so that it is never straight
MAX_HIP_SINE = 0.5  # sine of the hip's largest angle


@dataclass(frozen=True)
class Leg:
    """Joints and position of one leg.

    Parameters
    ----------
    hip : str
        Joint about x.
    thigh : str
        Upper joint about y.
    calf : str
        Lower joint about y.
    ahead : float
        Distance of the hip in front of the trunk's centre, m.
    first : bool
        True for the diagonal pair that swings first.
    """

    hip: str
    thigh: str
    calf: str
    ahead: float
    first: bool


@dataclass(frozen=True)
class Trot:
    """Trot controller: targets of all leg joints, for a trunk on a floating joint that faces along x.

    Parameters
    ----------
    legs : mapping of str to Leg
        Legs by name.
    base : str
        Name of the floating joint.
    link : float
        Length of thigh and of calf, m.
    height : float
        Height of the hips above the feet, m.
    speed : Scalar, default 0.5
        Desired speed, m/s; the robot is slower because its servos yield.
    period : float, default 0.4
        Period of the gait, s.
    lift : float, default 0.07
        Height to which a swinging foot is lifted, m.
    gain : float, default 0.03
        Gain k of the foot placement, s.
    start : float, default 0.5
        Time at which the robot starts to walk, s.
    every : float, default 4e-3
        Sampling period, s.
    """

    legs: Mapping[str, Leg]
    base: str  # the floating joint
    link: float  # m, length of thigh and of calf
    height: float  # m, from the hips to the feet
    speed: Scalar = 0.5  # m/s, desired; the robot is slower because its servos yield
    period: float = 0.4  # s
    lift: float = 0.07  # m
    gain: float = 0.03  # s, k
    start: float = 0.5  # s, start of walking
    every: float = 4e-3  # s

    def __post_init__(self) -> None:
        check_range(self, "Trot", ("link", "height", "period", "lift", "every"), above_zero=True)
        check_range(self, "Trot", ("gain", "start"))
        if not 0.0 < self.height < MAX_STRETCH * 2 * self.link:
            raise InputError(
                f"Trot: height is {self.height!r} m; expected a height above 0 and below "
                f"{MAX_STRETCH * 2 * self.link:.3g} m, the reach of two links of {self.link!r} m."
            )
        if not 2 * self.every < self.period:
            raise InputError(
                f"Trot: a sample every {self.every!r} s is too slow for a gait period of {self.period!r} s."
            )

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the controlled joints: hip, thigh and calf of each leg."""
        return tuple(joint for leg in self.legs.values() for joint in (leg.hip, leg.thigh, leg.calf))

    @property
    def states(self) -> dict[str, float]:
        """Initial values of the controller's states: the phase, and x and y of each foot's target."""
        return {"phase": 0.0} | {f"{name}.{axis}": 0.0 for name in self.legs for axis in "xy"}

    @property
    def stance(self) -> dict[str, float]:
        """Joint angles of the standing robot, by name."""
        return {joint: float(x) for leg in self.legs.values() for joint, x in self._reach(leg, 0.0, 0.0, 0.0).items()}

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Scalar], dict[str, Scalar]]:
        """Return the joint targets now, and the states (phase and foot targets) at the next sample."""
        walking = clip(t - self.start, 0.0, 1.0)
        qx, qy, qz, qw = (q[f"{self.base}.{c}"] for c in ("qx", "qy", "qz", "qw"))
        turn = -2.0 * (qw * qz + qx * qy)  # rad/s, against the heading
        speed, wanted = (v[f"{self.base}.0"], v[f"{self.base}.1"]), walking * self.speed
        targets: dict[str, Scalar] = {}
        next_states: dict[str, Scalar] = {"phase": _wrapped(x["phase"] + self.every / self.period)}
        for name, leg in self.legs.items():
            phase = _wrapped(x["phase"] + (0.0 if leg.first else 0.5))
            foot_target = x[f"{name}.x"], x[f"{name}.y"]
            turn_velocity = leg.ahead * turn
            next_states[f"{name}.x"] = self._next(foot_target[0], phase, speed[0], wanted, 2.0 * wanted - speed[0])
            next_states[f"{name}.y"] = self._next(
                foot_target[1], phase, speed[1], 0.0, turn_velocity, 0.25 * self.period * turn_velocity
            )
            foot_height = clip(10.0 * walking, 0.0, 1.0) * self.lift * maximum(sin(2.0 * math.pi * phase), 0.0)
            targets |= self._reach(leg, *foot_target, foot_height)
        return targets, {name: where(t < self.start, 0.0, value) for name, value in next_states.items()}

    def _next(
        self,
        target: Scalar,
        phase: Scalar,
        speed: Scalar,
        wanted: Scalar,
        stance_rate: Scalar,
        landing_offset: Scalar = 0.0,
    ) -> Scalar:
        """Return a foot's target at the next sample: moving to its landing point, or back with the ground."""
        landing_point = 0.25 * self.period * speed + self.gain * (speed - wanted) + landing_offset
        remaining_time = maximum(0.5 - phase, 0.0) * self.period
        return where(
            phase < 0.5,
            target + self.every / (remaining_time + self.every) * (landing_point - target),
            target - self.every * stance_rate,
        )

    def _reach(self, leg: Leg, x: Scalar, y: Scalar, foot_height: Scalar) -> dict[str, Scalar]:
        z = self.height - foot_height
        leg_length = sqrt(x * x + z * z)
        knee = acos(clip(leg_length / (2.0 * self.link), 0.0, MAX_STRETCH))
        roll = asin(clip(y / self.height, -MAX_HIP_SINE, MAX_HIP_SINE))
        return {leg.hip: roll, leg.thigh: knee - asin(x / leg_length), leg.calf: -2.0 * knee}


def _wrapped(phase: Scalar) -> Scalar:
    """Return the phase wrapped to less than 1."""
    return where(phase >= 1.0, phase - 1.0, phase)
