"""What an actuator is: a force on one joint coordinate, with states of its own and perhaps a command.

An actuator is a function of scalars that are never looked at, so the same text runs on floats, on batches and on graph
nodes. Its numbers may be any scalar too: a float, or a parameter that is left open until the run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from bellcrank.parameters.part_numbers import check_range
from bellcrank.scalar import Scalar, clip, fabs, is_real, maximum, minimum, where


@dataclass(frozen=True)
class StateVariable:
    """One element of the state that is not a joint's: a current, a pressure, an integral, a desired angle.

    nominal: how large it usually is, for those who measure errors by it (sim/nominals.py); 0 where nobody knows.
    """

    name: str
    unit: str = ""
    initial: float = 0.0
    nominal: Scalar = 0.0


@dataclass(frozen=True)
class Actuator(ABC):
    """A force on one joint coordinate, with states of its own and perhaps a command. Subclasses say the equations."""

    joint: str  # name of a joint coordinate: an entry of mechanism.columns[1]

    commanded: ClassVar[bool] = True  # takes one command from the control; False: passive
    command_unit: ClassVar[str] = ""  # of a turning joint; on a slide read m for rad and N for N m

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Its own state variables, in the order of `x` and of the rates."""
        return ()

    @abstractmethod
    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        """(force on the coordinate, d(states)/dt), from the coordinate's q and v and the actuator's own states x."""

    def resistance(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> Scalar:
        """Return the slope with which the force opposes v, N m s/rad and not negative; 0.0 where v does not matter.

        Of dry friction the slope of the chord, (force at 0 - force at v)/v, which is no less than -d(force)/dv. Fixed
        steps are implicit in this part of the force (sim/implicit_forces.py).
        """
        return 0.0

    def limits(self) -> tuple[tuple[Scalar, Scalar] | None, ...]:
        """(lowest, highest) of each state, or None: where an integrator may put a state back after a step."""
        return (None,) * len(self.states)

    def numbers(self) -> dict[str, Scalar]:
        """Its numbers by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "joint"}

    def __str__(self) -> str:
        shown = ", ".join(f"{k} {float(x):g}" if known(x) else f"{k} {x}" for k, x in self.numbers().items())
        states = f"; states {', '.join(f'{s.name} [{s.unit}]' for s in self.states)}" if self.states else ""
        command = f"command [{self.command_unit}]" if self.commanded else "passive"
        return f"{type(self).__name__:<17} {self.joint:<8} {command:<13} {shown}{states}"

    def _check(self, *names: str, above_zero: bool = False) -> None:
        """Each of these numbers is at least zero (above it), as far as it is known now."""
        check_range(self, f'{type(self).__name__} on "{self.joint}"', names, above_zero)


def known(x: Scalar) -> bool:
    """Whether x is a number now, and not a parameter that is left open."""
    return is_real(x)


def endless(limit: Scalar) -> bool:
    """Whether there is no limit, in every run: a property of the model, so that code may branch on it."""
    return known(limit) and limit == math.inf


def limited(x: Scalar, limit: Scalar) -> Scalar:
    """x within -limit and limit; no operation where there is no limit."""
    return x if endless(limit) else clip(x, -limit, limit)


def damping_below(force: Scalar, limit: Scalar, damping: Scalar) -> Scalar:
    """Return the damping of a servo; beyond its limit that of the chord: the part of the force that is left."""
    if endless(limit) or (known(limit) and limit == 0.0):
        return damping if endless(limit) else 0.0
    return damping * (limit / maximum(fabs(force), limit))


def held(x: Scalar, rate: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """The rate of a state that stays within its bounds: at a bound it does not move outwards."""
    return where(x <= low, maximum(rate, 0.0), where(x >= high, minimum(rate, 0.0), rate))


def end_stops(q: Scalar, v: Scalar, low: Scalar, high: Scalar, stiffness: Scalar, damping: Scalar) -> Scalar:
    """The force of the stops at both ends: k z (1 + d dz/dt), and never less than 0, where it is z beyond one."""
    below, above = maximum(low - q, 0.0), maximum(q - high, 0.0)
    return stiffness * (below * maximum(1.0 - damping * v, 0.0) - above * maximum(1.0 + damping * v, 0.0))
