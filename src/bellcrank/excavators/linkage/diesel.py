"""A diesel and the pump on it: how much oil there is for all functions together, and how the engine bears it.

    p = max of the load pressures of open functions, + margin         the pump works at the highest load
    Q = min(D w, P(w) / p)                                            its flow, and its power limit
    P(w) = P_max clip((w - w_low) / (w_high - w_low), 0.2, 1)         less of it where the engine slows down
    J dw/dt = T(w) - Q p / (eta w)                                    the engine: governor against the pump's torque
    T(w) = clip(k (w_0 - w), 0, T_max)

Where all levers together ask for more than Q, each gets the same share of what it asked for (LinkageControl). So levers
that are pulled together slow each other down, the more, the heavier the heaviest of them is.

Source: flow, torque and power limits of pumps on an engine: N. D. Manring. Hydraulic Control Systems. Wiley, 2005,
chapter on pumps. Load sensing and sharing: P. Krus, as in actuators/proportional_valve.py. Numbers: data.toml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar import Scalar, clip, fabs, maximum, minimum, where

OPEN = 0.02  # of a valve: less is closed, as far as the pump's pressure goes


@dataclass(frozen=True)
class Diesel:
    power: Scalar  # W, P_max
    speed: Scalar  # rad/s, w_0: what the governor keeps
    inertia: Scalar  # kg m2, with pump and flywheel
    torque: Scalar  # N m, T_max
    governor: Scalar  # N m s/rad, k
    flow: Scalar  # m3/s, D w_0
    pressure: Scalar  # Pa, where the pump's own relief valve opens
    margin: Scalar  # Pa
    efficiency: Scalar = 0.9  # eta
    yields: tuple[float, float] = (0.85, 0.95)  # w_low and w_high, of w_0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Diesel:
        """The engine that data("excavator_linkage") describes."""
        e, h = given["engine"], given["hydraulics"]
        own = {key: e[key] for key in ("power", "speed", "inertia", "torque", "governor", "efficiency")}
        return cls(**own, flow=h["pump_flow"], pressure=h["pump_pressure"], margin=h["margin"])

    @property
    def idle(self) -> float:
        """rad/s, without a load."""
        return float(self.speed)

    def load_pressure(self, openings: Sequence[Scalar], filled: Sequence[Scalar]) -> Scalar:
        """p: filled are the pressures of the chambers that the openings fill."""
        highest: Scalar = 0.0
        for o, p in zip(openings, filled, strict=True):
            highest = maximum(highest, clip(fabs(o) / OPEN, 0.0, 1.0) * p)
        return clip(highest + self.margin, self.margin, self.pressure)

    def available(self, w: Scalar, p: Scalar) -> Scalar:
        """Q at the engine's speed w and the pressure p."""
        low, high = (x * self.speed for x in self.yields)
        allowed = self.efficiency * self.power * clip((w - low) / (high - low), 0.2, 1.0)
        return minimum(self.flow * (w / self.speed), allowed / p)

    def burdened(self, w: Scalar, p: Scalar, Q: Scalar) -> Scalar:
        """dw/dt, where the pump gives the flow Q."""
        slowest = 0.2 * self.speed
        taken = Q * p / (self.efficiency * maximum(w, slowest))
        given = clip(self.governor * (self.speed - w), 0.0, self.torque)
        rate = (given - taken) / self.inertia
        return where(w > slowest, rate, maximum(rate, 0.0))
