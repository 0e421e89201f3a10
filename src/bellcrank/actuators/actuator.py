"""Base class of actuators: a force on one joint coordinate, with states of its own and an optional command.

An actuator is a function of scalars without data-dependent branches, so the same code runs on floats, on batches and on
graph nodes. Its numbers may be any scalar too: a float, or a parameter that stays free until the run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, clip, fabs, is_real, maximum, minimum, where

ForceAndRates = tuple[Scalar, list[Scalar]]  # force on a coordinate, and the rates of the states


@dataclass(frozen=True)
class StateVariable:
    """State variable of an actuator, element or controller: a current, a pressure, an integral, a desired angle.

    Parameters
    ----------
    name : str
        Name within its owner.
    unit : str, default ""
        Unit of the value.
    initial : float, default 0.0
        Value at the start of a run.
    nominal : Scalar, default 0.0
        Typical magnitude, used as a scale for errors (sim/system/observed_columns.py); 0 if unknown.
    """

    name: str
    unit: str = ""
    initial: float = 0.0
    nominal: Scalar = 0.0


@dataclass(frozen=True)
class Actuator(ABC):
    """Base class of actuators: a force on one joint coordinate. Subclasses implement the equations.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    """

    joint: str  # name of a joint coordinate: an entry of mechanism.columns[1]

    commanded: ClassVar[bool] = True  # True: takes one command from the controller; False: passive
    command_unit: ClassVar[str] = ""  # for a revolute joint; for a prismatic one read m for rad and N for N m

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """State variables of the actuator, in the order of `x` and of the state rates."""
        return ()

    @abstractmethod
    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates.

        Parameters
        ----------
        t : Scalar
            Time, s.
        q : Scalar
            Joint coordinate, rad or m.
        v : Scalar
            Joint velocity, rad/s or m/s.
        x : sequence of Scalar
            State variables of the actuator.
        command : Scalar
            Command, in units of `command_unit`.

        Returns
        -------
        tuple[Scalar, list[Scalar]]
            Force on the coordinate (N m or N) and d(states)/dt.
        """

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the slope with which the force opposes the velocity.

        Dry friction gives the slope of the chord, (force at 0 - force at v)/v, at least -d(force)/dv. Fixed steps
        are implicit in this part of the force (sim/program/implicit_forces.py).

        Parameters
        ----------
        t, q, v, x, command
            As in `__call__`.

        Returns
        -------
        Scalar
            Slope, N m s/rad or N s/m, at least 0; 0.0 if the force does not depend on v.
        """
        return 0.0

    def limits(self) -> tuple[tuple[Scalar, Scalar] | None, ...]:
        """Return the bounds to which an integrator may reset each state after a step.

        Returns
        -------
        tuple[tuple[Scalar, Scalar] | None, ...]
            (lowest, highest) of each state, or None.
        """
        return (None,) * len(self.states)

    def numbers(self) -> dict[str, Scalar]:
        """Return the actuator's numbers by name.

        Returns
        -------
        dict[str, Scalar]
            All fields except `joint`.
        """
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "joint"}

    def __str__(self) -> str:
        shown = ", ".join(f"{k} {float(x):g}" if is_known(x) else f"{k} {x}" for k, x in self.numbers().items())
        states = f"; states {', '.join(f'{s.name} [{s.unit}]' for s in self.states)}" if self.states else ""
        command = f"command [{self.command_unit}]" if self.commanded else "passive"
        return f"{type(self).__name__:<17} {self.joint:<8} {command:<13} {shown}{states}"

    def _check(self, *names: str, above_zero: bool = False) -> None:
        """Raise unless each of these numbers is at least zero (above zero), as far as its value is known now."""
        check_range(self, f'{type(self).__name__} on "{self.joint}"', names, above_zero)


def is_known(x: Scalar) -> bool:
    """Return whether `x` is a number now, rather than a free parameter."""
    return is_real(x)


def is_unlimited(limit: Scalar) -> bool:
    """Return whether `limit` is infinite in every run: a property of the model, so that code may branch on it."""
    return is_known(limit) and limit == math.inf


def limited(x: Scalar, limit: Scalar) -> Scalar:
    """Return `x` clipped to -`limit` and `limit`; no operation for an infinite limit."""
    return x if is_unlimited(limit) else clip(x, -limit, limit)


def limited_damping(force: Scalar, limit: Scalar, damping: Scalar) -> Scalar:
    """Return the damping of a servo with a force limit, as the slope of the chord beyond the limit.

    Parameters
    ----------
    force
        Force without the limit.
    limit
        Largest magnitude of the force.
    damping
        Damping within the limit.
    """
    if is_unlimited(limit) or (is_known(limit) and limit == 0.0):
        return damping if is_unlimited(limit) else 0.0
    return damping * (limit / maximum(fabs(force), limit))


def bounded_rate(x: Scalar, rate: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Return the rate of a bounded state: at a bound it does not move outwards.

    Parameters
    ----------
    x
        State.
    rate
        Rate without bounds.
    low, high
        Bounds.
    """
    return where(x <= low, maximum(rate, 0.0), where(x >= high, minimum(rate, 0.0), rate))


def end_stop_force(q: Scalar, v: Scalar, low: Scalar, high: Scalar, stiffness: Scalar, damping: Scalar) -> Scalar:
    """Return the force of Hunt-Crossley stops at both limits: max(k z (1 + d dz/dt), 0) at a depth z beyond one.

    Parameters
    ----------
    q, v
        Coordinate and velocity.
    low, high
        Limits.
    stiffness
        Stiffness k.
    damping
        Damping d.
    """
    depth_below, depth_above = maximum(low - q, 0.0), maximum(q - high, 0.0)
    return stiffness * (depth_below * maximum(1.0 - damping * v, 0.0) - depth_above * maximum(1.0 + damping * v, 0.0))
