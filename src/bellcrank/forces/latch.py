"""Joints that close and open during a run: a gripper takes a part, a coupling engages, a leg stands on the ground.

A latch is a joint between two frames with a state `active`. Where it is 0 the joint does not exist. An event closes it
(`attach`) or opens it (`release`), or a command does so at the start of a step. Closing keeps the pose that the frames
have at that moment; the velocities change as by an impulse of the joint (sim/system/latch_equations.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.actuators.actuator import StateVariable
from bellcrank.errors import InputError, brief, unknown
from bellcrank.forces.element import Element
from bellcrank.scalar import Scalar

# Joints whose frames may coincide when they are closed, so that they can be made at any place.
LATCH_KINDS = ("fixed", "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar")
AXES = ("x", "y", "z")
ACTIVE = "active"


@dataclass(frozen=True)
class Latch(Element):
    """Joint between two frames that events close and open during a run; for `elements=` of `bc.system`.

    Parameters
    ----------
    name : str
        Name of the latch, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame. The joint is made at its place and in its axes: z is the axis, x the second axis.
    kind : str, default "fixed"
        Type of the joint: fixed, revolute, prismatic, cylindrical, universal, spherical or planar.
    closed : bool, default False
        Closed at the start, where the two frames must then meet as in this joint.
    command : callable, optional
        Function of (t, q, v, x, u) that returns a number: the latch closes where it is positive, and opens where it is
        not. It is read at the start of each step. Without it, only events close and open the latch.
    """

    a: str
    b: str
    kind: str = "fixed"
    closed: bool = False
    command: Callable[..., Scalar] | None = None

    def __post_init__(self) -> None:
        if self.kind not in LATCH_KINDS:
            raise InputError(f"{self._label}: {unknown('kind of joint', self.kind, LATCH_KINDS)}")
        if not isinstance(self.closed, bool):
            raise InputError(f"{self._label}: closed is {self.closed!r}; expected True or False.")
        self._check_laws("command")

    def __str__(self) -> str:
        return f"Latch {self.name}: {self.kind} joint from {self.a} to {self.b}, {'closed' if self.closed else 'open'}"

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """State variables: 1 if the joint is closed, and the place where, in frame a: its origin, x and y axes."""
        place = [StateVariable(axis, "m", 0.0, 1.0) for axis in AXES]
        turn = [StateVariable(f"{of}{axis}", "", float(of == axis), 1.0) for of in "xy" for axis in AXES]
        return (StateVariable(ACTIVE, "", float(self.closed), 1.0), *place, *turn)


@dataclass(frozen=True)
class LatchAction:
    """Closing or opening of latches, for `then=` of an event with the action "switch"; made by attach and release."""

    names: tuple[str, ...]
    closes: bool


def attach(names: str | Sequence[str] = ()) -> LatchAction:
    """Return the action of an event that closes latches.

    Parameters
    ----------
    names : str or sequence of str, optional
        Names of the latches; without names: all latches of the system.

    Returns
    -------
    LatchAction
        For `then=` of a `bc.Event` with the action "switch".

    Examples
    --------
    ::

        bc.Event("touch", lambda t, q, v, x, u: q["hand"] - 0.5, "switch", 1, bc.attach("grip"))
    """
    return LatchAction(_checked_names(names), True)


def release(names: str | Sequence[str] = ()) -> LatchAction:
    """Return the action of an event that opens latches.

    Parameters
    ----------
    names : str or sequence of str, optional
        Names of the latches; without names: all latches of the system.

    Returns
    -------
    LatchAction
        For `then=` of a `bc.Event` with the action "switch".
    """
    return LatchAction(_checked_names(names), False)


def _checked_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of latches as a tuple."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"attach and release: names is {brief(names)}; expected the name of a latch, or several.")
    return tuple(names)
