"""Driving excavator_linkage: JOINT and RESOLVED by hand, or by itself; the result is four spool commands.

    dtheta_d = u                              JOINT: the sticks are rates of the joints
    dtheta_d = (inverse kinematics)(u)        RESOLVED: radial, arc and vertical speed of the teeth, the bucket's rate
    dtheta_d = (inverse kinematics)(path)     autopilot: the rate of a path, and back to it where the arm is not on it
    x_d, dx_d = (linkage)(theta_d, dtheta_d)                          of the cylinders
    o = (a dx_d + k a (x_d - x)) / flow                               opening of each valve: feed forward and feed back
    o <- o min(1, pump flow / sum |o| flow)                           the pump is shared, in proportion

theta_d is a state. Where a cylinder would reach its end theta_d stops (held), at the end of the arm's reach the teeth
slide along (ExcavatorArm.allowed), and the stick cannot be straight, for its cylinder ends before that: so nothing
here is ever singular. A desired motion that outruns the machine is held back within `lead` of it.

Source: D. E. Whitney. Resolved motion rate control of manipulators and human prostheses. IEEE Transactions on Man-
Machine Systems 10(2), 47-53, 1969; for excavators Wong 1991, section 5.4.3. Sharing the flow: Krus 1988, as in
actuators/proportional_valve.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from bellcrank.actuators import HydraulicCylinder, HydraulicMotor, StateVariable
from bellcrank.actuators.actuator import held
from bellcrank.control.digging_cycle import DiggingCycle
from bellcrank.control.excavator import NEAREST
from bellcrank.control.linkage import JOINTS, Linkage
from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, clip, fabs, maximum, minimum, where

FUNCTIONS = ("swing", "boom", "stick", "bucket")
RATES = (1.0, 0.35, 0.5, 0.7)  # rad/s of full sticks, JOINT: about what the pump can give
SPEEDS = (1.2, 3.0, 1.0, 0.7)  # m/s, m/s, m/s, rad/s, RESOLVED


@dataclass(frozen=True)
class LinkageControl:
    """Call it with (t, q, v, x, u): (four spool commands, rates of its states).

    Inputs first to fourth are the rates that the mode asks for (swing, boom, stick, bucket, or radius, arc, height,
    bucket), resolved and autopilot are switches that are on above a half.
    """

    actuators: Sequence[HydraulicCylinder | HydraulicMotor]  # of swing, boom, stick and bucket
    linkage: Linkage = field(default_factory=Linkage.of_zoo)
    path: Callable[[Scalar], tuple[list[Scalar], list[Scalar]]] = field(default_factory=DiggingCycle)
    gain: Sequence[Scalar] = (1.0, 2.5, 3.5, 3.5)  # 1/s; from about twice that on the oil and the arm begin to swing
    back: Scalar = 0.8  # 1/s, how fast the autopilot returns to its path
    lead: Scalar = 0.25  # rad, how far desired angles may be ahead

    inputs: ClassVar[tuple[str, ...]] = ("first", "second", "third", "fourth", "resolved", "autopilot")

    def __post_init__(self) -> None:
        found = tuple(a.joint for a in self.actuators)
        if found != JOINTS:
            raise InputError(f"LinkageControl: actuators are on {', '.join(found)}; expected {', '.join(JOINTS)}.")

    @property
    def states(self) -> tuple[StateVariable, ...]:
        return tuple(StateVariable(f"{n}_d", "rad", a) for n, a in zip(FUNCTIONS, self.linkage.start, strict=True))

    @cached_property
    def pump_flow(self) -> float:
        return float(self.linkage.given["hydraulics"]["pump_flow"])

    def resolved(self, theta_d: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Joint rates of [radial, swing, vertical, bucket] rates, within reach."""
        arm = self.linkage.arm
        return arm.joint_rates(theta_d, arm.allowed(arm.forward(theta_d), u))

    def desired(self, t: Scalar, theta_d: Sequence[Scalar], u: Any) -> list[Scalar]:
        """dtheta_d, before the stops."""
        sticks = [u[name] for name in self.inputs[:4]]
        at = self.linkage.arm.forward(theta_d)
        radial, arc, up, turn = sticks
        by_tip = self.resolved(theta_d, [radial, arc / maximum(at[0], NEAREST), up, turn])
        place, rate = self.path(t)
        wanted = [r + self.back * (p - a) for r, p, a in zip(rate, place, at, strict=True)]
        by_path = self.resolved(theta_d, [clip(w, -s, s) for w, s in zip(wanted, (1.5, 0.9, 1.5, 1.2), strict=True)])
        by_hand = [where(u["resolved"] > 0.5, a, b) for a, b in zip(by_tip, sticks, strict=True)]
        return [where(u["autopilot"] > 0.5, a, b) for a, b in zip(by_path, by_hand, strict=True)]

    def openings(self, theta_d: Sequence[Scalar], rates: Sequence[Scalar], theta: Sequence[Scalar]) -> list[Scalar]:
        """Of the valves, with the pump's flow shared out."""
        x_d, x = self.linkage.extensions(theta_d), self.linkage.extensions(theta)
        dx_d = [gear * w for gear, w in zip(self.linkage.gears(theta_d), rates[1:], strict=True)]
        errors = [theta_d[0] - theta[0], *(a - b for a, b in zip(x_d, x, strict=True))]
        speeds = [w + k * e for w, k, e in zip([rates[0], *dx_d], self.gain, errors, strict=True)]
        wanted = []
        for actuator, speed in zip(self.actuators, speeds, strict=True):
            a_A, a_B = actuator.areas
            wanted.append(clip(speed * where(speed > 0.0, a_A, a_B) / actuator.valve.flow, -1.0, 1.0))
        demand = sum((fabs(o) * a.valve.flow for o, a in zip(wanted, self.actuators, strict=True)), 0.0)
        share = minimum(1.0, self.pump_flow / maximum(demand, 0.1 * self.pump_flow))
        return [o * share for o in wanted]

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[list[Scalar], list[Scalar]]:
        theta, theta_d = self.linkage.angles(q), [x[s.name] for s in self.states]
        rates = self.desired(t, theta_d, u)
        rates = [held(a, w, *stop) for a, w, stop in zip(theta_d, rates, self.linkage.stops, strict=True)]
        rates = [held(d, w, a - self.lead, a + self.lead) for d, w, a in zip(theta_d, rates, theta, strict=True)]
        openings = self.openings(theta_d, rates, theta)
        return [a.valve.command(o) for a, o in zip(self.actuators, openings, strict=True)], rates
