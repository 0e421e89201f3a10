"""The parts of a mechanism as the user gives them: plain immutable data, no algorithm.

Frames follow the robot-file convention: a joint's frame sits at `point` with axes `rotation` in its parent body's
frame, and the child body's frame is the joint frame moved by the joint. At the zero configuration the two coincide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Triple = tuple[float, float, float]
Matrix = tuple[Triple, Triple, Triple]

IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ORIGIN: Triple = (0.0, 0.0, 0.0)


def triple(xyz: Any) -> Triple:
    x, y, z = (float(e) for e in xyz)
    return x, y, z


def matrix(rows: Any) -> Matrix:
    a, b, c = (triple(row) for row in rows)
    return a, b, c


@dataclass(frozen=True)
class Body:
    """A rigid body: mass, centre of mass in the body's frame, inertia about the centre of mass in the body's axes."""

    name: str
    mass: float = 0.0
    com: Triple = ORIGIN
    inertia: Matrix = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    declared: bool = True  # False: the file gave no inertia at all, and massless is what it means
    links: tuple[str, ...] = ()  # the names that were lumped into this body, itself first


@dataclass(frozen=True)
class Limits:
    """What a joint is allowed to do; infinite where nothing was said."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """The joint has no coordinate of its own: it moves by multiplier * (coordinate of `joint`) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint and what acts in it. All joint forces are data here, so no method has a case for them.

    armature: rotor inertia seen at the joint. damping: viscous, per unit of v. friction: Coulomb, reached at the speed
    `friction_speed` (a ramp through zero, so that the equations stay smooth enough to integrate). stiffness and rest: a
    spring. Each acts on every coordinate of the joint; limits are kept for simulation and control.
    """

    name: str
    kind: str
    parent: str
    child: str
    rotation: Matrix = IDENTITY
    point: Triple = ORIGIN
    axis: Triple = (0.0, 0.0, 1.0)
    second_axis: Triple | None = None  # universal joints: fixed in the child, perpendicular to the axis
    pitch: float = 0.0  # helical joints: metres per radian
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    friction_speed: float = 1e-3
    stiffness: float = 0.0
    rest: float = 0.0
    limits: Limits = field(default_factory=Limits)
    mimic: Mimic | None = None


@dataclass(frozen=True)
class Frame:
    """A named place on a body."""

    name: str
    body: str
    rotation: Matrix = IDENTITY
    point: Triple = ORIGIN


@dataclass(frozen=True)
class Line:
    """One line of a mechanism's report: what was found where, and what became of it."""

    element: str
    outcome: str
    level: str = "ok"  # ok, note or warning


@dataclass(frozen=True)
class Report:
    """Every element of the source and what became of it. Nothing is dropped silently."""

    source: str
    lines: tuple[Line, ...] = ()

    @property
    def warnings(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.level == "warning")

    def __str__(self) -> str:
        counts = {level: sum(line.level == level for line in self.lines) for level in ("ok", "note", "warning")}
        head = f"{self.source}: {counts['ok']} ok, {counts['note']} notes, {counts['warning']} warnings"
        mark = {"ok": " ", "note": "-", "warning": "!"}
        width = min(44, max((len(line.element) for line in self.lines), default=0))
        rows = [f"{mark[line.level]} {line.element.ljust(width)}  {line.outcome}" for line in self.lines]
        return "\n".join([head, *rows])
