"""Diesel engine and pump: flow available to all functions together, and speed of the engine under load.

    p = max of the load pressures of open functions, + margin         the pump follows the highest load pressure
    Q = min(D w, P(w) / p)                                            its flow, and its power limit
    P(w) = P_max clip((w - w_low) / (w_high - w_low), 0.2, 1)         power is reduced when the engine slows down
    J dw/dt = T(w) - Q p / (eta w)                                    engine: governor against the pump's torque
    T(w) = clip(k (w_0 - w), 0, T_max)

Where the demand of all levers exceeds Q, each function gets the same share of its demand (LinkageControl). Levers that
are moved together therefore slow each other down, more so if the highest load is large.

Source: flow, torque and power limits of pumps on an engine: N. D. Manring. Hydraulic Control Systems. Wiley, 2005,
chapter on pumps. Load sensing and sharing: P. Krus, as in actuators/proportional_valve.py. Numbers: data.toml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar import Scalar, clip, fabs, maximum, minimum, where

FULL_PRESSURE_OPENING = 0.02  # valve opening above which a function counts fully for the pump's pressure


@dataclass(frozen=True)
class Diesel:
    """Diesel engine with governor, and a load-sensing pump."""

    power: Scalar  # W, P_max
    speed: Scalar  # rad/s, w_0: set point of the governor
    inertia: Scalar  # kg m2, including pump and flywheel
    torque: Scalar  # N m, T_max
    governor: Scalar  # N m s/rad, k
    flow: Scalar  # m3/s, D w_0
    pressure: Scalar  # Pa, at which the pump's own relief valve opens
    margin: Scalar  # Pa
    efficiency: Scalar = 0.9  # eta
    derating_range: tuple[float, float] = (0.85, 0.95)  # w_low and w_high, as fractions of w_0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Diesel:
        """Return the engine of `given`, the table data("excavator_linkage")."""
        e, h = given["engine"], given["hydraulics"]
        engine_values = {key: e[key] for key in ("power", "speed", "inertia", "torque", "governor", "efficiency")}
        return cls(**engine_values, flow=h["pump_flow"], pressure=h["pump_pressure"], margin=h["margin"])

    @property
    def idle(self) -> float:
        """Speed without load, rad/s."""
        return float(self.speed)

    def load_pressure(self, openings: Sequence[Scalar], filled: Sequence[Scalar]) -> Scalar:
        """Return the pressure p of the pump, Pa.

        Parameters
        ----------
        openings
            Openings of the valves.
        filled
            Pressures of the chambers that the openings fill, Pa.
        """
        highest: Scalar = 0.0
        for o, p in zip(openings, filled, strict=True):
            highest = maximum(highest, clip(fabs(o) / FULL_PRESSURE_OPENING, 0.0, 1.0) * p)
        return clip(highest + self.margin, self.margin, self.pressure)

    def available(self, w: Scalar, p: Scalar) -> Scalar:
        """Return the flow Q at the engine's speed `w` and the pressure `p`, m3/s."""
        low, high = (x * self.speed for x in self.derating_range)
        power = self.efficiency * self.power * clip((w - low) / (high - low), 0.2, 1.0)
        return minimum(self.flow * (w / self.speed), power / p)

    def acceleration(self, w: Scalar, p: Scalar, Q: Scalar) -> Scalar:
        """Return the engine's acceleration dw/dt, rad/s2.

        Parameters
        ----------
        w
            Speed of the engine, rad/s.
        p
            Pressure of the pump, Pa.
        Q
            Flow of the pump, m3/s.
        """
        slowest = 0.2 * self.speed
        load_torque = Q * p / (self.efficiency * maximum(w, slowest))
        drive_torque = clip(self.governor * (self.speed - w), 0.0, self.torque)
        rate = (drive_torque - load_torque) / self.inertia
        return where(w > slowest, rate, maximum(rate, 0.0))
