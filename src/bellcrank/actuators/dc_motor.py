"""DC motor with gear, driven by a voltage: armature current, back-EMF, limits of voltage, current and slew rate.

    L di/dt = V - R i - k n v        tau = n k i
    V = clip(command, -voltage, voltage), slowed to dV/dt = clip((command - V) / lag, -slew, slew) if there is a slew
    then within R i_max of the back-EMF k n v, if there is a current limit: this keeps |i| <= i_max

One constant k serves for torque [N m / A] and back-EMF [V s / rad]: in SI units they are the same number, and then
electrical power k n v i and mechanical power tau v are the same. The rotor's inertia n^2 J is the joint's armature.

Source: M. W. Spong, S. Hutchinson, M. Vidyasagar. Robot Modeling and Control. Wiley, 2006, chapter 6 (actuator
dynamics). The current limit is not from this source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, ForceAndRates, StateVariable, is_unlimited, limited
from bellcrank.scalar import Scalar


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
