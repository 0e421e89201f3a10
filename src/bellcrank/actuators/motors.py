"""Motors: ideal torque source, PD and PID servos with a torque limit, and DC motor with gear and driver.

IdealTorque    tau = clip(command, -limit, limit): the commanded torque acts at once, as textbooks assume
PD             tau = clip(kp (q_d - q) - kd v, -limit, limit)
PID            e = q_d - q      w = kp e + ki I - kd v      tau = clip(w, -limit, limit)
               dI/dt = e, but only min(e, 0) while w > limit and max(e, 0) while w < -limit
DCMotor        armature current, back-EMF, limits of voltage, current and slew rate; the command is a voltage

    L di/dt = V - R i - k n v        tau = n k i
    V = clip(command, -voltage, voltage), slowed to dV/dt = clip((command - V) / lag, -slew, slew) if there is a slew
    then within R i_max of the back-EMF k n v, if there is a current limit: this keeps |i| <= i_max

One constant k serves for torque [N m / A] and back-EMF [V s / rad]: in SI units they are the same number, and then
electrical power k n v i and mechanical power tau v are the same. The rotor's inertia n^2 J is the joint's armature.

Sources: M. Takegaki, S. Arimoto. A new feedback method for dynamic control of manipulators. ASME Journal of Dynamic
Systems, Measurement, and Control 103(2), 119-125, 1981: the PD servo is stable on any arm, because it only adds a
spring and a damper. Its steady error under a load is load / kp. K. J. Astrom, L. Rundqwist. Integrator windup and how
to avoid it. American Control Conference, 1693-1698, 1989: conditional integration. While the torque is at its limit,
the integral may only move away from the limit. M. W. Spong, S. Hutchinson, M. Vidyasagar. Robot Modeling and Control.
Wiley, 2006, chapter 6 (actuator dynamics); the current limit is not from this source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, ForceAndRates, StateVariable, is_unlimited, limited, limited_damping
from bellcrank.scalar import Scalar, maximum, minimum, where


@dataclass(frozen=True)
class IdealTorque(Actuator):
    """Torque source without dynamics: the command acts at once, within ±limit.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    limit : Scalar, default inf
        Torque limit, N m.
    """

    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "N m"

    def __post_init__(self) -> None:
        self._check("limit")

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return limited(command, self.limit), []


@dataclass(frozen=True)
class PD(Actuator):
    """PD servo to the commanded position, with a torque limit.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    kp : Scalar
        Position gain, N m/rad.
    kd : Scalar, default 0.0
        Velocity gain, N m s/rad.
    limit : Scalar, default inf
        Torque limit, N m.
    """

    kp: Scalar  # N m / rad
    kd: Scalar = 0.0  # N m s / rad
    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "rad"

    def __post_init__(self) -> None:
        self._check("kp", "kd", "limit")

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        return limited(self.kp * (command - q) - self.kd * v, self.limit), []

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        return limited_damping(self.kp * (command - q) - self.kd * v, self.limit, self.kd)


@dataclass(frozen=True)
class PID(Actuator):
    """PID servo to the commanded position, with a torque limit and anti-windup.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    kp : Scalar
        Position gain, N m/rad.
    ki : Scalar, default 0.0
        Integral gain, N m/(rad s).
    kd : Scalar, default 0.0
        Velocity gain, N m s/rad.
    limit : Scalar, default inf
        Torque limit, N m.
    """

    kp: Scalar  # N m / rad
    ki: Scalar = 0.0  # N m / (rad s)
    kd: Scalar = 0.0  # N m s / rad
    limit: Scalar = math.inf  # N m

    command_unit: ClassVar[str] = "rad"

    def __post_init__(self) -> None:
        self._check("kp", "ki", "kd", "limit")

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Integral of the position error."""
        return (StateVariable("integral", "rad s"),)

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        (I,) = x
        e = command - q
        w = self.kp * e + self.ki * I - self.kd * v
        if is_unlimited(self.limit):
            return w, [e]
        back = where(w > self.limit, minimum(e, 0.0), where(w < -self.limit, maximum(e, 0.0), e))
        return limited(w, self.limit), [back]

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the damping slope in N m s/rad; `t`, `q`, `v`, `x` and `command` as in `Actuator.resistance`."""
        (I,) = x
        return limited_damping(self.kp * (command - q) + self.ki * I - self.kd * v, self.limit, self.kd)


@dataclass(frozen=True)
class DCMotor(Actuator):
    """Brushed DC motor behind a gear, driven by a voltage.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    k : Scalar
        Torque constant, N m/A, equal to the back-EMF constant, V s/rad.
    R : Scalar
        Armature resistance, ohm.
    L : Scalar
        Armature inductance, H.
    n : Scalar, default 1.0
        Gear ratio: rotations of the motor for one of the joint.
    voltage : Scalar, default inf
        Voltage limit, V.
    current : Scalar, default inf
        Current limit, A.
    slew : Scalar, default inf
        Limit of the voltage rate, V/s.
    lag : Scalar, default 1e-3
        Time constant of a driver with a slew limit, s.
    """

    k: Scalar  # N m / A, V s / rad
    R: Scalar  # ohm
    L: Scalar  # H
    n: Scalar = 1.0  # rotations of the motor for one of the joint
    voltage: Scalar = math.inf  # V
    current: Scalar = math.inf  # A
    slew: Scalar = math.inf  # V/s
    lag: Scalar = 1e-3  # s, time constant of a driver with a slew limit

    command_unit: ClassVar[str] = "V"

    def __post_init__(self) -> None:
        self._check("voltage", "current")
        self._check("R", "L", "slew", "lag", above_zero=True)

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Armature current; with a slew limit also the voltage."""
        nominal_voltage = 0.0 if is_unlimited(self.voltage) else self.voltage
        nominal_current = nominal_voltage / self.R if is_unlimited(self.current) else self.current
        current = StateVariable("current", "A", 0.0, nominal_current)
        return (current,) if is_unlimited(self.slew) else (current, StateVariable("voltage", "V", 0.0, nominal_voltage))

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        target_voltage, i, has_slew_limit = limited(command, self.voltage), x[0], not is_unlimited(self.slew)
        V = x[1] if has_slew_limit else target_voltage
        emf = self.k * self.n * v
        drop = limited(V - emf, self.R * self.current) if not is_unlimited(self.current) else V - emf
        di = (drop - self.R * i) / self.L
        torque = self.n * self.k * i
        return torque, [di, limited((target_voltage - V) / self.lag, self.slew)] if has_slew_limit else [di]
