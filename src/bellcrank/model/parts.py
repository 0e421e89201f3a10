"""The parts of a mechanism as the user gives them: plain immutable data, no algorithm.

Frames follow the robot-file convention: a joint's frame is at `point` with axes `rotation` in its parent body's frame,
and the child body's frame is the joint frame moved by the joint. At the zero configuration the two coincide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from bellcrank.parameters import Free, has_free
from bellcrank.quoting import single_line as one_line

Array = np.ndarray[Any, Any]
# A number of a mechanism is a float, or an expression of free parameters (bellcrank.parameters).
Number: TypeAlias = Any
Triple = tuple[Number, Number, Number]
Matrix = tuple[Triple, Triple, Triple]

IDENTITY: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ORIGIN: Triple = (0.0, 0.0, 0.0)
UNIT_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def triple(xyz: Any) -> Triple:
    """Return `xyz` as three floats or parameter expressions."""
    x, y, z = (e if isinstance(e, Free) else float(e) for e in xyz)
    return x, y, z


def matrix(rows: Any) -> Matrix:
    """Return the three `rows` as triples."""
    a, b, c = (triple(row) for row in rows)
    return a, b, c


@dataclass(frozen=True)
class Body:
    """A rigid body: mass, centre of mass in the body's frame, inertia about the centre of mass in the body's axes."""

    name: str
    mass: Number = 0.0
    com: Triple = ORIGIN
    inertia: Matrix = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    declared: bool = True  # False: the file gave no inertia at all, so the body is meant to be massless
    links: tuple[str, ...] = ()  # names of the bodies merged into this one, itself first


@dataclass(frozen=True)
class Limits:
    """Limits of a joint; infinite where none is given."""

    lower: Number = -math.inf
    upper: Number = math.inf
    velocity: Number = math.inf
    effort: Number = math.inf


@dataclass(frozen=True)
class Mimic:
    """Coupling of a mimic joint, which has no coordinate: multiplier * (coordinate of `joint`) + offset."""

    joint: str
    multiplier: Number = 1.0
    offset: Number = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint and the forces in it. All joint forces are data here, so no method has a special case for them.

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
    pitch: Number = 0.0  # helical joints: metres per radian
    armature: Number = 0.0
    damping: Number = 0.0
    friction: Number = 0.0
    friction_speed: Number = 1e-3
    stiffness: Number = 0.0
    rest: Number = 0.0
    limits: Limits = field(default_factory=Limits)
    mimic: Mimic | None = None


def with_unit_axes(j: Joint) -> Joint:
    """Return joint `j` with unit axes, a universal joint's second axis being perpendicular to the first.

    Axes with free parameters stay as they are: model/internal_frames.py normalises them for all values.
    """
    second = j.second_axis if j.kind == "universal" else None
    if has_free(j.axis, second):
        return replace(j, second_axis=second)
    if second is None and type(j.axis) is tuple and j.axis in UNIT_AXES:
        return j if j.second_axis is None else replace(j, second_axis=None)
    axis = triple(np.asarray(j.axis) / (np.linalg.norm(j.axis) or 1.0))
    if second is not None:
        x = np.asarray(second) - np.dot(second, axis) * np.asarray(axis)
        second = triple(x / np.linalg.norm(x))
    return replace(j, axis=axis, second_axis=second)


@dataclass(frozen=True)
class Frame:
    """A named place on a body."""

    name: str
    body: str
    rotation: Matrix = IDENTITY
    point: Triple = ORIGIN


MEET, ACROSS, PARALLEL, TWIST = ("x", "y", "z"), ("across x", "across y"), ("tilt about y", "tilt about x"), "twist"
TOUCH = ("touch", "slip x", "slip y")
# Names of the equations of each type of loop closure.
EQUATION_NAMES: dict[str, tuple[str, ...]] = {
    "revolute": (*MEET, *PARALLEL),
    "prismatic": (*ACROSS, *PARALLEL, TWIST),
    "cylindrical": (*ACROSS, *PARALLEL),
    "universal": (*MEET, "square"),
    "spherical": MEET,
    "planar": ("off plane", *PARALLEL),
    "fixed": (*MEET, *PARALLEL, TWIST),
    "distance": ("length",),
    "point_on_line": ACROSS,
    "ball_on_plane": TOUCH,
    "wheel_on_plane": TOUCH,
    "knife_edge": ("slip",),
    "point_on_surface": ("off surface",),
    "point_on_curve": ("off curve y", "off curve z"),
    "gear": ("ratio",),
    "rack": ("ratio",),
    "combination": ("sum",),
    "cam": ("lift",),
}
# Number of equations for each type of loop closure; the freedom left is six less this (or a relation of coordinates).
EQUATIONS = {kind: len(names) for kind, names in EQUATION_NAMES.items()}
SHIPPED = dict(EQUATIONS)  # the table without user extensions
COUPLINGS = ("gear", "rack")  # between the coordinates of two joints


@dataclass(frozen=True)
class Loop:
    """A loop closure: two frames that meet as in a joint of this kind, or coupled joint coordinates.

    z of both frames is the axis (planar: the normal), x the second axis. In a universal joint the axis is z of a, the
    second axis x of b; of a point on a line, the line is z of a, the point is b; a distance is that of the two points.
    Where the joint allows it, the frames coincide when the loop is closed. A plane to roll on is z = 0 of a, a wheel's
    axle is z of b, a blade is along x of b. Surfaces and curves are functions of the position of b in a
    (model/function_text.py).
    """

    name: str
    kind: str  # a key of EQUATIONS
    a: str = ""  # frames of the mechanism, on the two bodies that meet
    b: str = ""
    value: Number = 0.0  # distance, radius: metres; gear: ratio; rack: metres per radian
    offset: Number = 0.0  # gear, rack: q[joints[1]] = value * q[joints[0]] + offset
    joints: tuple[str, ...] = ()  # gear, rack, combination, cam
    weights: tuple[Number, ...] = ()  # combination: of the coordinates, whose sum is the offset
    law: str = ""  # cam: lift of an angle; surface: F(x, y, z) = 0


@dataclass(frozen=True)
class Spring:
    """A spring and damper between two points; it pulls along the line from one to the other.

    Tension = stiffness * (distance - length) + damping * d(distance)/dt.
    """

    name: str
    a: str  # frames of the mechanism; only their points matter
    b: str
    stiffness: Number = 0.0
    length: Number = 0.0  # at rest
    damping: Number = 0.0


@dataclass(frozen=True)
class ReportLine:
    """One line of a mechanism's report: an element of the source and its outcome."""

    element: str
    outcome: str
    level: str = "ok"  # ok, note or warning


@dataclass(frozen=True)
class Report:
    """Every element of the source and its outcome. Nothing is dropped silently."""

    source: str
    lines: tuple[ReportLine, ...] = ()

    @property
    def warnings(self) -> tuple[ReportLine, ...]:
        """The lines that are warnings."""
        return tuple(line for line in self.lines if line.level == "warning")

    def __str__(self) -> str:
        counts = {level: sum(line.level == level for line in self.lines) for level in ("ok", "note", "warning")}
        head = f"{self.source}: {counts['ok']} ok, {counts['note']} notes, {counts['warning']} warnings"
        mark = {"ok": " ", "note": "-", "warning": "!"}
        width = min(44, max((len(line.element) for line in self.lines), default=0))
        rows = [f"{mark[line.level]} {line.element.ljust(width)}  {line.outcome}" for line in self.lines]
        return "\n".join(map(one_line, (head, *rows)))
