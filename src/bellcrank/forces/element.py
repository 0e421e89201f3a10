"""Base classes for force elements between two frames or between joint coordinates.

A force element is a function of scalars without data-dependent branches, as an actuator is. The same code therefore
runs on floats, on batches and on graph nodes, and can be compiled, differentiated, exported and run on a GPU. Its
numbers may be free parameters. Every element reports its stored energy (`energy`) and its dissipated power (`loss`),
so that its power balance can be checked:

    power on the bodies = -d(energy)/dt - loss

Between(a, b)     maps the pose and velocity of frame b relative to frame a to a force and moment on b, in the axes of a
Coupling(joints)  maps joint coordinates and velocities to a force on each of these joints
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from bellcrank.actuators.actuator import StateVariable, is_known
from bellcrank.errors import InputError, brief
from bellcrank.parameters.validation import check_range
from bellcrank.quoting import quoted_name
from bellcrank.scalar import Scalar, ordered_sum

Triple = list[Scalar]
WrenchAndRates = tuple[Triple, Triple, list[Scalar]]  # force, moment, and the rates of the states
ForcesAndRates = tuple[list[Scalar], list[Scalar]]  # forces on joints, and the rates of the states
ZERO_VECTOR: Triple = [0.0, 0.0, 0.0]


@dataclass(frozen=True)
class Element(ABC):
    """Force element between two frames or between joints, for `elements=` of `bc.system`.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    """

    name: str

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """State variables of the element, in the order of `x` and of the state rates."""
        return ()

    def __str__(self) -> str:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        shown = ", ".join(f"{key} {float(x):g}" if is_known(x) else f"{key} {x}" for key, x in numbers.items())
        return f"{type(self).__name__} {self.name}: {shown}"

    def _check(self, *names: str, above_zero: bool = False) -> None:
        """Raise unless each of these numbers is at least zero (above zero), as far as its value is known now."""
        check_range(self, self._label, names, above_zero)

    def _check_not_zero(self, *names: str) -> None:
        """Raise if one of these signed numbers is zero, as far as its value is known now."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, Real) and not value:
                raise InputError(f"{self._label}: {name} is {brief(value)}; expected a number that is not zero.")

    def _check_laws(self, *names: str) -> None:
        """Raise unless each of these attributes is a function or None."""
        for name in names:
            law = getattr(self, name)
            if law is not None and not callable(law):
                raise InputError(f"{self._label}: {name} is {law!r}; expected a function, or curve([(x, y), ...]).")

    @property
    def _label(self) -> str:
        return f"{type(self).__name__} {quoted_name(str(self.name), 60)}"


@dataclass(frozen=True)
class Resistance:
    """Resistance of a force to the relative velocity u at a point: force = -(along n n^T + across (1 - n n^T)) u."""

    place: Triple  # point in frame a, m
    normal: Triple  # n, in the axes of a
    along: Scalar  # N s/m
    across: Scalar  # N s/m


@dataclass(frozen=True)
class Between(Element):
    """Force element between frame a and frame b; every body and "ground" is a frame, too.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    """

    a: str
    b: str

    @abstractmethod
    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return the force and moment on frame b and the state rates.

        Parameters
        ----------
        t : Scalar
            Time, s.
        pose : array_like, shape (4, 4)
            Pose of frame b in frame a, position in m.
        velocity : sequence of Scalar, length 6
            Linear and angular velocity of frame b for an observer that moves with frame a, in the axes of a.
        x : sequence of Scalar
            State variables of the element.

        Returns
        -------
        tuple[list[Scalar], list[Scalar], list[Scalar]]
            Force (N) and moment (N m) on b at its origin, in the axes of a, and d(states)/dt. The opposite acts on a.
        """

    def resistance(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar], h: Scalar
    ) -> list[Resistance]:
        """Return points where the force opposes velocities, and how strongly, for implicit integration over a step.

        The default is an empty list: the force is then integrated explicitly. See sim/program/implicit_forces.py.

        Parameters
        ----------
        t, pose, velocity, x
            As in `__call__`.
        h : Scalar
            Step size, s.

        Returns
        -------
        list[Resistance]
            One linear resistance for each point, in the axes of a.
        """
        return []

    def stepped(self, h: Scalar) -> Between:
        """Return the law for fixed steps of size `h` (s).

        A law with states that decay within a step returns a copy that integrates these states implicitly.
        """
        return self

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy.

        Parameters
        ----------
        t : Scalar
            Time, s.
        pose : array_like, shape (4, 4)
            Pose of frame b in frame a.
        x : sequence of Scalar
            State variables of the element.

        Returns
        -------
        Scalar
            Stored energy, J.
        """
        return 0.0

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power.

        The default is all power that the element takes from the bodies: right for an element that stores no energy.

        Parameters
        ----------
        t, pose, velocity, x
            As in `__call__`.

        Returns
        -------
        Scalar
            Dissipated power, W.
        """
        force, moment, _ = self(t, pose, velocity, x)
        return -power([*force, *moment], velocity)


@dataclass(frozen=True)
class Coupling(Element):
    """Force element between joint coordinates.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the joint coordinates on which the element acts.
    """

    joints: tuple[str, ...]

    @abstractmethod
    def __call__(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> ForcesAndRates:
        """Return the force on each of the joints and the state rates.

        Parameters
        ----------
        t : Scalar
            Time, s.
        q : sequence of Scalar
            Coordinates of the element's joints, rad or m.
        v : sequence of Scalar
            Velocities of these joints, rad/s or m/s.
        x : sequence of Scalar
            State variables of the element.

        Returns
        -------
        tuple[list[Scalar], list[Scalar]]
            Force on each joint (N m or N) and d(states)/dt.
        """

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy.

        Parameters
        ----------
        t : Scalar
            Time, s.
        q : sequence of Scalar
            Coordinates of the element's joints, rad or m.
        x : sequence of Scalar
            State variables of the element.

        Returns
        -------
        Scalar
            Stored energy, J.
        """
        return 0.0

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power.

        The default is all power that the element takes from the joints: right for an element that stores no energy.

        Parameters
        ----------
        t, q, v, x
            As in `__call__`.

        Returns
        -------
        Scalar
            Dissipated power, W.
        """
        return -power(self(t, q, v, x)[0], v)

    def _check_joint_count(self, count: int = 2) -> None:
        """Raise unless there are exactly `count` joints, all different."""
        names = self.joints
        fit = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
        if not fit or len(names) != count or len(set(names)) != count:
            expected = f"the names of {count} joints that differ" if count > 1 else "the name of one joint, (name,)"
            raise InputError(f"{self._label}: joints is {brief(names)}; expected {expected}.")


@dataclass(frozen=True)
class Law(Between):
    """Force law between two frames, given as a function.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    function : callable
        function(t, pose, velocity) returns the force and the moment on b, with the arguments of `Between.__call__`.
    stored : callable, optional
        stored(t, pose) returns the stored energy in J. Without it the element stores nothing.
    """

    function: Callable[..., Any]
    stored: Callable[..., Scalar] | None = None  # function of (t, pose), J

    def __post_init__(self) -> None:
        for field_name, law in (("function", self.function), ("stored", self.stored)):
            if not callable(law) and not (law is None and field_name == "stored"):
                raise InputError(f"{self._label}: {field_name} is {brief(law)}; expected a function.")

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return the force and moment on frame b and the state rates; see `Between.__call__`."""
        force, moment = self.function(t, pose, velocity)
        return list(force), list(moment), []

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `pose` and `x` as in `Between.energy`."""
        return 0.0 if self.stored is None else self.stored(t, pose)


@dataclass(frozen=True)
class JointLaw(Coupling):
    """Force law between joints, given as a function.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the joint coordinates on which the element acts.
    function : callable
        function(t, q, v) returns a force for each of the joints, N m or N.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not isinstance(self.joints, tuple | list) or not callable(self.function):
            raise InputError(
                f"{self._label}: joints is {brief(self.joints)} and function {brief(self.function)}; expected the "
                "names of joints, (name, ...), and a function of (t, q, v)."
            )

    def __call__(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> ForcesAndRates:
        """Return the forces on the joints and the state rates; see `Coupling.__call__`."""
        return list(self.function(t, q, v)), []


def power(force: Sequence[Scalar], velocity: Sequence[Scalar]) -> Scalar:
    """Return the power of a generalised `force` at a generalised `velocity`, W."""
    return ordered_sum(f * v for f, v in zip(force, velocity, strict=True))


def cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Triple:
    """Return the cross product of the vectors `a` and `b`."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return the dot product of the vectors `a` and `b`."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
