"""Control of excavator_linkage in JOINT mode, in RESOLVED mode or by autopilot; the outputs are four spool commands.

    dtheta_d = u                              JOINT: the sticks are rates of the joints
    dtheta_d = (inverse kinematics)(u)        RESOLVED: radial, arc and vertical speed of the teeth, the bucket's rate
    dtheta_d = (inverse kinematics)(path)     autopilot: rate of a path, plus a correction towards the path
    x_d, dx_d = (linkage)(theta_d, dtheta_d)                          cylinder positions and speeds
    o = (a dx_d + k a (x_d - x) + Q) / flow                           valve openings: feedforward and feedback
    Q = kv a (dx_d - dx) - G (p - mean of p)                          damping by speed and load pressure
    o <- o min(1, Q / sum |o| flow)                                   shares of the pump's flow Q

theta_d is a state, limited by a leash (control/trajectory.py): when the sticks are released, the machine stops where it
is. Where a cylinder would reach its end theta_d stops (held); at the end of the arm's reach the teeth slide along its
boundary (ExcavatorArm.allowed); and the stick cannot be straight, because its cylinder ends before that. So no
configuration here is singular. In RESOLVED mode all rates are scaled down together so that no joint exceeds its
full-stick rate in JOINT mode, and the teeth stay on their path. The correction towards theta_d has the same speed
limit, and a load that falls faster is braked, because a fast motion would stop too late.

An arm on trapped oil is a spring with very little damping. Damping comes from flow against the load pressure less its
recent mean, as a constant load needs no flow (dynamic pressure feedback). This flow must act faster than the spool's
lag permits: the command leads the spool by the factor `hurry`.

Diesel engine and pump give the flow available to all functions together, and the speed of the engine under load:

    p = max of the load pressures of open functions, + margin         the pump follows the highest load pressure
    Q = min(D w, P(w) / p)                                            its flow, and its power limit
    P(w) = P_max clip((w - w_low) / (w_high - w_low), 0.2, 1)         power is reduced when the engine slows down
    J dw/dt = T(w) - Q p / (eta w)                                    engine: governor against the pump's torque
    T(w) = clip(k (w_0 - w), 0, T_max)

Where the demand of all levers exceeds Q, each function gets the same share of its demand. Levers that are moved
together therefore slow each other down, more so if the highest load is large. Numbers: data.toml.

Source: D. E. Whitney. Resolved motion rate control of manipulators and human prostheses. IEEE Transactions on Man-
Machine Systems 10(2), 47-53, 1969; for excavators Wong 1991, section 5.4.3. Sharing the flow: Krus 1988, as in
actuators/proportional_valve.py. Dynamic pressure feedback: H. E. Merritt, Hydraulic Control Systems, Wiley 1967.
Flow, torque and power limits of pumps on an engine: N. D. Manring. Hydraulic Control Systems. Wiley, 2005, chapter on
pumps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from bellcrank.actuators import StateVariable
from bellcrank.actuators.actuator import bounded_rate
from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.control.trajectory import Leash
from bellcrank.errors import InputError
from bellcrank.excavators.geometry import JOINTS, DiggingCycle, Linkage
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


FUNCTIONS = ("swing", "boom", "stick", "bucket")
FULL_STICK_RATES = (1.0, 0.32, 0.5, 0.7)  # rad/s of full sticks, JOINT: within the limits of pump and cylinders
PATH_LIMITS = (1.5, 0.9, 1.5, 1.2)  # m/s, rad/s, m/s, rad/s, of the autopilot's teeth and bucket
FULL_STICK_SPEEDS = (1.2, 3.0, 1.0, 0.7)  # m/s, m/s, m/s, rad/s, RESOLVED
NO_FLOWS = (0.0, 0.0, 0.0, 0.0)
LEASH = Leash(0.01, 0.25, 0.25)  # the feed forward does most of the work


@dataclass(frozen=True)
class LinkageControl:
    """Control law: called with (t, q, v, x, u), it returns four spool commands and the rates of its states.

    Inputs first to fourth are the rates that the mode uses (swing, boom, stick, bucket in JOINT mode; radius, arc,
    height, bucket in RESOLVED mode); resolved and autopilot are switches that are on above a half.
    """

    actuators: Sequence[Hydraulic]  # on swing, boom, stick and bucket
    linkage: Linkage = field(default_factory=Linkage.of_zoo)
    path: Callable[[Scalar], tuple[list[Scalar], list[Scalar]]] = field(default_factory=DiggingCycle)
    gain: Sequence[Scalar] = (0.8, 0.8, 1.2, 2.0)  # 1/s, k
    rate_gain: Sequence[Scalar] = (0.5, 0.7, 0.4, 0.3)  # kv
    bleed: Sequence[Scalar] = (1e-11, 8e-11, 6e-11, 5e-11)  # m3/s/Pa, G: about 2 zeta omega times the oil's capacity
    memory: Scalar = 0.2  # s, time constant of the mean load pressures
    hurry: Scalar = 3.0  # lead of a command, as a multiple of the spool's error
    rein: Sequence[Scalar] = (0.0, 1.5, 1.5, 0.0)  # against a load that drives its function faster than a full stick
    back: Scalar = 0.8  # 1/s, gain of the autopilot towards its path
    leash: Leash = LEASH

    inputs: ClassVar[tuple[str, ...]] = ("first", "second", "third", "fourth", "resolved", "autopilot")

    def __post_init__(self) -> None:
        joints = tuple(a.joint for a in self.actuators)
        if joints != JOINTS:
            raise InputError(f"LinkageControl: actuators are on {', '.join(joints)}; expected {', '.join(JOINTS)}.")

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """State variables: the engine's speed, mean load pressures, then desired angles."""
        loads = [float(_load_pressure(a, a.p_A, a.p_B)) for a in self.actuators]
        pumps = [a.valve.p_pump for a in self.actuators]
        means = [StateVariable(f"{n}_load", "Pa", *x) for n, *x in zip(FUNCTIONS, loads, pumps, strict=True)]
        return (
            StateVariable("engine", "rad/s", self.diesel.idle, self.diesel.idle),
            *means,
            *(StateVariable(f"{n}_d", "rad", a) for n, a in zip(FUNCTIONS, self.linkage.start, strict=True)),
        )

    @cached_property
    def diesel(self) -> Diesel:
        """Engine and pump."""
        return Diesel.of(self.linkage.given)

    def desired(self, t: Scalar, theta_d: Sequence[Scalar], u: Any) -> list[Scalar]:
        """Return the desired joint rates, before they are limited by the stops.

        Parameters
        ----------
        t
            Time, s.
        theta_d
            Desired joint angles, rad.
        u
            Inputs by name.
        """
        sticks = [u[name] for name in self.inputs[:4]]
        arm = self.linkage.arm
        by_tip = limit_together(arm.stick_rates(theta_d, sticks), FULL_STICK_RATES)
        place, rate = self.path(t)
        wanted = [r + self.back * (p - a) for r, p, a in zip(rate, place, arm.forward(theta_d), strict=True)]
        by_path = arm.limited_rates(theta_d, [clip(w, -s, s) for w, s in zip(wanted, PATH_LIMITS, strict=True)])
        by_hand = [where(u["resolved"] > 0.5, a, b) for a, b in zip(by_tip, sticks, strict=True)]
        return [where(u["autopilot"] > 0.5, a, b) for a, b in zip(by_path, by_hand, strict=True)]

    def wanted(
        self,
        theta_d: Sequence[Scalar],
        rates: Sequence[Scalar],
        theta: Sequence[Scalar],
        more: Sequence[Scalar] = NO_FLOWS,
    ) -> list[Scalar]:
        """Return the openings of the valves for an unlimited oil supply.

        Parameters
        ----------
        theta_d
            Desired joint angles, rad.
        rates
            Desired joint rates, rad/s.
        theta
            Actual joint angles, rad.
        more
            Additional flow through each valve, m3/s.
        """
        x_d, x = self.linkage.extensions(theta_d), self.linkage.extensions(theta)
        errors = [theta_d[0] - theta[0], *(a - b for a, b in zip(x_d, x, strict=True))]
        speeds = []
        for w, k, e, full in zip(
            self.speeds(theta_d, rates), self.gain, errors, self.speeds(theta_d, FULL_STICK_RATES), strict=True
        ):
            fastest = maximum(fabs(w), fabs(full))  # the correction is no faster than a full stick
            speeds.append(clip(w + k * e, -fastest, fastest))
        openings = []
        for actuator, speed, flow in zip(self.actuators, speeds, more, strict=True):
            a_A, a_B = actuator.areas
            openings.append(clip((speed * where(speed > 0.0, a_A, a_B) + flow) / actuator.valve.flow, -1.0, 1.0))
        return openings

    def supply(self, wanted: Sequence[Scalar], x: Any) -> tuple[Scalar, Scalar, Scalar]:
        """Return the share of its demand that each function gets, the pump's pressure, and its flow.

        Parameters
        ----------
        wanted
            Demanded openings of the valves.
        x
            States by name.
        """
        d = self.diesel
        names = [a.joint for a in self.actuators]
        filled = [where(o > 0.0, x[f"{n}.p_A"], x[f"{n}.p_B"]) for o, n in zip(wanted, names, strict=True)]
        p = d.load_pressure(wanted, filled)
        demand = sum((fabs(o) * a.valve.flow for o, a in zip(wanted, self.actuators, strict=True)), 0.0)
        share = minimum(1.0, d.available(x["engine"], p) / maximum(demand, 0.01 * d.flow))
        return share, p, share * demand

    def speeds(self, theta: Sequence[Scalar], rates: Sequence[Scalar]) -> list[Scalar]:
        """Return the speeds of motor and cylinders for joint rates.

        Parameters
        ----------
        theta
            Joint angles, rad.
        rates
            Joint rates, rad/s.
        """
        return [rates[0], *(gear * w for gear, w in zip(self.linkage.gears(theta), rates[1:], strict=True))]

    def damping(
        self, speeds: Sequence[Scalar], fastest: Sequence[Scalar], v: Any, swings: Sequence[Scalar]
    ) -> list[Scalar]:
        """Return the flows that damp deviations from desired speeds and oscillations of load pressures, m3/s.

        Parameters
        ----------
        speeds
            Desired speeds of the actuators.
        fastest
            Speeds at full sticks.
        v
            Actual speeds by joint.
        swings
            Load pressures less their means, Pa.
        """
        terms = zip(self.actuators, self.rate_gain, self.rein, speeds, fastest, self.bleed, swings, strict=True)
        return [
            a.areas[0] * (k * (w - v[a.joint]) - r * _excess(v[a.joint], maximum(fabs(w), fabs(full)))) - g * p
            for a, k, r, w, full, g, p in terms
        ]

    def supplied(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[Scalar, Scalar, Scalar]:
        """Return the result of `supply` in one state of the system.

        Parameters
        ----------
        t
            Time, s.
        q
            Joint positions by name.
        v
            Joint velocities by name.
        x
            States by name.
        u
            Inputs by name.
        """
        return self.supply(self._demand(t, q, v, x, u)[0], x)

    def _demand(
        self, t: Scalar, q: Any, v: Any, x: Any, u: Any
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar], list[Scalar]]:
        """Return openings, load pressures less their means, desired rates and desired angles."""
        theta, theta_d = self.linkage.angles(q), [x[f"{n}_d"] for n in FUNCTIONS]
        rates = self.desired(t, theta_d, u)
        rates = [bounded_rate(a, w, *stop) for a, w, stop in zip(theta_d, rates, self.linkage.stops, strict=True)]
        loads = [_load_pressure(a, x[f"{a.joint}.p_A"], x[f"{a.joint}.p_B"]) for a in self.actuators]
        swings = [p - x[f"{n}_load"] for p, n in zip(loads, FUNCTIONS, strict=True)]
        damping_flows = self.damping(self.speeds(theta_d, rates), self.speeds(theta, FULL_STICK_RATES), v, swings)
        return self.wanted(theta_d, rates, theta, damping_flows), swings, rates, theta_d

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[list[Scalar], list[Scalar]]:
        """Return spool commands and rates of the states.

        Parameters
        ----------
        t
            Time, s.
        q
            Joint positions by name.
        v
            Joint velocities by name.
        x
            States by name.
        u
            Inputs by name.
        """
        theta = self.linkage.angles(q)
        wanted, swings, desired_rates, theta_d = self._demand(t, q, v, x, u)
        share, pressure, flow = self.supply(wanted, x)
        openings = [o * share for o in wanted]
        spools = [(a.valve.command(o), x[f"{a.joint}.spool"]) for a, o in zip(self.actuators, openings, strict=True)]
        rates = [self.leash(d, w, a) for d, w, a in zip(theta_d, desired_rates, theta, strict=True)]
        engine = self.diesel.acceleration(x["engine"], pressure, flow)
        return [s + self.hurry * (s - now) for s, now in spools], [engine, *(p / self.memory for p in swings), *rates]


def limit_together(rates: Sequence[Scalar], most: Sequence[float]) -> list[Scalar]:
    """Scale all `rates` by one factor so that none exceeds its limit in `most`."""
    excess: Scalar = 1.0
    for w, limit in zip(rates, most, strict=True):
        excess = maximum(excess, fabs(w) / limit)
    return [w / excess for w in rates]


def _excess(x: Scalar, most: Scalar) -> Scalar:
    """Return the part of x outside the interval from -most to most."""
    return x - clip(x, -most, most)


def _load_pressure(a: Hydraulic, p_A: Scalar, p_B: Scalar) -> Scalar:
    """Return the force on the piston as a pressure in chamber A."""
    a_A, a_B = a.areas
    return p_A - p_B * (a_B / a_A)
