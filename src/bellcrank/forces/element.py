"""What a force element is: how two frames, or some joints, are to each other comes in, and what acts between them comes
out.

An element is a function of scalars that are never looked at, as an actuator is: it runs on floats, on batches and on
graph nodes, so it is at once compiled, differentiated, exported and put on a GPU. Its numbers may be parameters that
are left open. Every element says what it stores (`energy`) and what it turns into heat (`loss`), so that its power can
be judged:

    power on the bodies = -d(energy)/dt - loss

Between(a, b)     pose and velocity of frame b as seen from frame a; force and moment on b, in the axes of a
Coupling(joints)  coordinates of joints and their velocities; a force on each of them
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from bellcrank.actuators.actuator import StateVariable, known
from bellcrank.errors import InputError, brief
from bellcrank.parameters.part_numbers import check_range
from bellcrank.quoting import shown
from bellcrank.scalar import Scalar, total

Triple = list[Scalar]
NONE: Triple = [0.0, 0.0, 0.0]


@dataclass(frozen=True)
class Element(ABC):
    """A force between two frames or on joints, with a name: what bc.system takes as elements=."""

    name: str

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Its own state variables, in the order of `x` and of the rates."""
        return ()

    def __str__(self) -> str:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        shown = ", ".join(f"{key} {float(x):g}" if known(x) else f"{key} {x}" for key, x in numbers.items())
        return f"{type(self).__name__} {self.name}: {shown}"

    def _check(self, *names: str, above_zero: bool = False) -> None:
        """Each of these numbers is at least zero (above it), as far as it is known now."""
        check_range(self, self._called, names, above_zero)

    def _check_not_zero(self, *names: str) -> None:
        """None of these numbers, which may have a sign, is zero, as far as it is known now."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, Real) and not value:
                raise InputError(f"{self._called}: {name} is {brief(value)}; expected a number that is not zero.")

    def _check_laws(self, *names: str) -> None:
        """Each of these is a function, or left out."""
        for name in names:
            law = getattr(self, name)
            if law is not None and not callable(law):
                raise InputError(f"{self._called}: {name} is {law!r}; expected a function, or curve([(x, y), ...]).")

    @property
    def _called(self) -> str:
        return f"{type(self).__name__} {shown(str(self.name), 60)}"


@dataclass(frozen=True)
class Resistance:
    """How a force at one place opposes a relative velocity u there: force = -(along n n^T + across (1 - n n^T)) u."""

    place: Triple  # in a
    normal: Triple  # n, in a
    along: Scalar  # N s/m
    across: Scalar  # N s/m


@dataclass(frozen=True)
class Between(Element):
    """Acts between frame a and frame b of a mechanism; "ground" is one, and so is every body."""

    a: str
    b: str

    @abstractmethod
    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        """(force, moment, d(states)/dt): what acts on b at its origin; a has the opposite. pose is 4x4, of b in a;
        velocity [linear, angular], of b as somebody sees it who moves with a. All in the axes of a.
        """

    def resistance(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar], h: Scalar
    ) -> list[Resistance]:
        """Return where and how strongly the force opposes velocities, for steps of h to be implicit in it.

        None by default: the force is then explicit. See sim/implicit_forces.py.
        """
        return []

    def stepped(self, h: Scalar) -> Between:
        """Return the law as fixed steps of h take it: implicit in states that forget themselves within a step."""
        return self

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """What it has stored, J."""
        return 0.0

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """What it turns into heat, W. Where nothing is stored that is all that it takes."""
        force, moment, _ = self(t, pose, velocity, x)
        return -power([*force, *moment], velocity)


@dataclass(frozen=True)
class Coupling(Element):
    """Acts between joints of a mechanism, by the names of their coordinates."""

    joints: tuple[str, ...]

    @abstractmethod
    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(a force on each of the joints, d(states)/dt)."""

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """What it has stored, J."""
        return 0.0

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """What it turns into heat, W. Where nothing is stored that is all that it takes."""
        return -power(self(t, q, v, x)[0], v)

    def _pair(self, count: int = 2) -> None:
        """Exactly so many joints, all different."""
        names = self.joints
        fit = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
        if not fit or len(names) != count or len(set(names)) != count:
            expected = f"the names of {count} joints that differ" if count > 1 else "the name of one joint, (name,)"
            raise InputError(f"{self._called}: joints is {brief(names)}; expected {expected}.")


@dataclass(frozen=True)
class Law(Between):
    """Any law of your own: function(t, pose, velocity) gives (force, moment) on b."""

    function: Callable[..., Any]
    stored: Callable[..., Scalar] | None = None  # of (t, pose), J

    def __post_init__(self) -> None:
        for what, law in (("function", self.function), ("stored", self.stored)):
            if not callable(law) and not (law is None and what == "stored"):
                raise InputError(f"{self._called}: {what} is {brief(law)}; expected a function.")

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        force, moment = self.function(t, pose, velocity)
        return list(force), list(moment), []

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        return 0.0 if self.stored is None else self.stored(t, pose)


@dataclass(frozen=True)
class JointLaw(Coupling):
    """Any law of your own between joints: function(t, q, v) gives a force on each of them."""

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not isinstance(self.joints, tuple | list) or not callable(self.function):
            raise InputError(
                f"{self._called}: joints is {brief(self.joints)} and function {brief(self.function)}; expected the "
                "names of joints, (name, ...), and a function of (t, q, v)."
            )

    def __call__(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        return list(self.function(t, q, v)), []


def power(force: Sequence[Scalar], velocity: Sequence[Scalar]) -> Scalar:
    return total(f * v for f, v in zip(force, velocity, strict=True))


def cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Triple:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
