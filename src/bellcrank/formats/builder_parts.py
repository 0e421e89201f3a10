"""Parts that a Builder has collected: checks of the names of new ones, and its loops and springs.

Loops and springs are given in world axes at the zero configuration. The joints that form closed loops themselves are
cut (the rule is in model/spanning_tree.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import ModelError, check_known
from bellcrank.formats.number_checks import number, vector
from bellcrank.model import Body, Frame, Joint, Loop, ReportLine, Spring, part_checks
from bellcrank.model.outline import Outline
from bellcrank.model.parts import COUPLINGS, EQUATIONS, IDENTITY, Matrix, Number, Triple, matrix, triple, with_unit_axes
from bellcrank.model.pose import axes_along
from bellcrank.model.spanning_tree import best_cut
from bellcrank.parameters import has_free, nominal

if TYPE_CHECKING:
    from bellcrank.formats.beam_bodies import PlacedModal

GROUND = "ground"
AXIAL_KINDS = ("revolute", "prismatic", "cylindrical", "universal", "planar", "point_on_line")


class BuilderParts:
    """Parts by name, in the order of their addition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._frames: dict[str, Frame] = {}
        self._loops: dict[str, Loop] = {}
        self._springs: dict[str, Spring] = {}
        self._end_frames: dict[str, Frame] = {}  # frames of loops and springs
        self._modal_bodies: dict[str, PlacedModal] = {}
        self._outlines: dict[str, Outline] = {}

    def _check_new(self, what: str, name: str, *bodies: Any) -> str:
        """Check the name of a new part of the type `what`, and that its `bodies` exist; return its title for errors."""
        if not isinstance(name, str) or not name:
            raise ModelError(f'a {what} of mechanism "{self.name}" has the name {name!r}; expected a text.')
        motions = [*self._joints, *self._loops]
        taken: dict[str, list[str]] = {
            "body": [GROUND, *self._bodies],
            "joint": motions,
            "loop": motions,
            "frame": [*self._frames, *self._end_frames],
            "spring": [*self._springs],
        }
        if name in taken.get(what, ()):
            shared = ", those of joints and loops, too" if what in ("joint", "loop") else ""
            raise ModelError(
                f'{what} "{name}" exists already in mechanism "{self.name}"; names must differ{shared}. '
                "Rename one of them."
            )
        where = f'{what} "{name}"'
        for body in bodies:
            check_known("body", body, [GROUND, *self._bodies], where, ModelError, " Add it with body() first.")
        return where

    def _add_loop(self, where: str, loop: Loop, *ends: Frame) -> None:
        """Add a loop and the frames of its two ends."""
        self._add_end_frames(where, *ends)
        self._loops[loop.name] = loop

    def _add_end_frames(self, where: str, *ends: Frame) -> None:
        for f in ends:
            if f.name in self._frames or f.name in self._end_frames:
                raise ModelError(f'{where}: its end would be called "{f.name}", a frame that exists. Rename one.')
        self._end_frames |= {f.name: f for f in ends}


@dataclass(frozen=True)
class LoopEnd:
    """One end of a loop as the user gave it."""

    body: str
    point: Any
    axis: Any
    second_axis: Any


def body_loop(
    where: str, name: str, kind: str, a: LoopEnd, b: LoopEnd, numbers: Mapping[str, Any], joints: Sequence[str]
) -> tuple[Loop, Frame, Frame]:
    """Return a loop between two bodies, and the frames of its ends.

    Parameters
    ----------
    where
        Subject of error messages.
    name, kind
        Name and type of the loop.
    a, b
        Its two ends.
    numbers
        The arguments distance, ratio and offset.
    joints
        The argument joints, which must be empty.
    """
    if a.body == b.body:
        raise ModelError(f'{where}: joins "{a.body}" to itself; its two ends must be on different bodies.')
    if list(joints):
        raise ModelError(f"{where}: joints are for {' and '.join(COUPLINGS)}; this one is {kind}.")
    for what, value in numbers.items():
        if value is not None and not (kind == what == "distance"):
            raise ModelError(f"{where}: {what} is {value!r}, but a {kind} loop has none.")
    ends = []
    for end, letter in ((a, "a"), (b, "b")):
        if end.point is None:
            has_two_points = kind in ("distance", "point_on_line")
            raise ModelError(
                f"{where}: has no {f'point_{letter}' if has_two_points else 'point'}; give it in world axes."
            )
        ends.append(Frame(f"{name}.{letter}", end.body, _end_axes(where, kind, end), vector(end.point, where, "point")))
    value = numbers["distance"]
    if kind == "distance":
        value = _distance(ends[0].point, ends[1].point) if value is None else number(value, where, "distance")
    return Loop(name, kind, ends[0].name, ends[1].name, 0.0 if value is None else value), ends[0], ends[1]


def joint_coupling(
    where: str, name: str, kind: str, joints: Sequence[str], numbers: Mapping[str, Any], places: Iterable[Any]
) -> Loop:
    """Return a loop between two joints, a gear or a rack.

    Parameters
    ----------
    where
        Subject of error messages.
    name, kind
        Name and type of the loop.
    joints
        Names of the two joints.
    numbers
        The arguments distance, ratio and offset.
    places
        The arguments that only loops between bodies have; they must be empty.
    """
    pair = sequence_elements(joints)
    if pair is None or len(pair) != 2 or not all(isinstance(j, str) for j in pair):
        raise ModelError(f'{where}: joints is {joints!r}; expected the names of two, as in joints=("first", "second").')
    if any(place is not None and (not isinstance(place, str) or place) for place in places):
        raise ModelError(f"{where}: a {kind} is between joints; leave out bodies, points and axes.")
    if numbers["distance"] is not None:
        raise ModelError(f"{where}: distance is {numbers['distance']!r}, but a {kind} loop has none.")
    if numbers["ratio"] is None:
        unit = "metres per radian" if kind == "rack" else "turns of the second for one of the first"
        raise ModelError(f"{where}: has no ratio; give the {unit}.")
    offset = 0.0 if numbers["offset"] is None else number(numbers["offset"], where, "offset")
    return Loop(name, kind, "", "", number(numbers["ratio"], where, "ratio"), offset, (pair[0], pair[1]))


def spring_with_frames(
    where: str, name: str, bodies: tuple[str, str], points: tuple[Any, Any], numbers: Mapping[str, Any]
) -> tuple[Spring, Frame, Frame]:
    """Return a spring, and the frames of its ends.

    Parameters
    ----------
    where
        Subject of error messages.
    name
        Name of the spring.
    bodies, points
        The two bodies, and the points on them in the world at the zero configuration, m.
    numbers
        The arguments stiffness, length and damping.
    """
    if bodies[0] == bodies[1]:
        raise ModelError(f'{where}: ties "{bodies[0]}" to itself; its two ends must be on different bodies.')
    a, b = (
        Frame(f"{name}.{letter}", body, IDENTITY, vector(point, where, f"point_{letter}"))
        for letter, body, point in zip("ab", bodies, points, strict=True)
    )
    given = {what: number(x, where, what) for what, x in numbers.items() if x is not None}
    return Spring(name, a.name, b.name, **({"length": _distance(a.point, b.point)} | given)), a, b


def cut_loops(
    joints: Mapping[str, Joint], loops: Mapping[str, Loop], ground: str, bodies: Sequence[str]
) -> tuple[list[Joint], list[Loop], list[Frame], list[ReportLine]]:
    """Cut the joints that close loops.

    Parameters
    ----------
    joints, loops
        All joints and loops, by name.
    ground
        Name of the ground.
    bodies
        Names of all bodies.

    Returns
    -------
    tuple
        The joints that carry bodies, all loops, the frames that the cut joints need, and lines for the report.
    """
    required_joints = {j.mimic.joint: f'moves "{j.name}"' for j in joints.values() if j.mimic is not None}
    required_joints |= {name: f'belongs to "{loop.name}"' for loop in loops.values() for name in loop.joints}
    cut = best_cut(list(joints.values()), ground, bodies, required_joints)
    carrying, closed, frames, lines = [], [], [], []
    for j in joints.values():
        where = f'joint "{j.name}"'
        if j.name not in cut.loops:
            is_reversed = j.name in cut.reversed
            carrying.append(_reversed_joint(j) if is_reversed else j)
            if is_reversed:
                text = f'carries "{j.parent}" on "{j.child}": turned round, its coordinate as before'
                lines.append(ReportLine(where, text))
        elif j.kind == "floating":
            lines.append(ReportLine(where, "closes a loop, but holds nothing: left out", "note"))
        else:
            axis = with_unit_axes(j).axis if j.kind in AXIAL_KINDS else None
            end = LoopEnd("", j.point, axis, with_unit_axes(j).second_axis)
            R = _end_axes(where, j.kind, end)
            frames += [Frame(f"{j.name}.a", j.parent, R, j.point), Frame(f"{j.name}.b", j.child, R, j.point)]
            closed.append(Loop(j.name, j.kind, f"{j.name}.a", f"{j.name}.b"))
            limits_note = "; its limits are not watched" if j.limits != Joint("", "", "", "").limits else ""
            equations = f"{EQUATIONS[j.kind]} equations instead of a coordinate"
            lines.append(ReportLine(where, f"closes a loop and is cut: {equations}{limits_note}", "note"))
    return carrying, [*closed, *loops.values()], frames, lines


def _reversed_joint(j: Joint) -> Joint:
    """Return the same joint, carrying its parent: about the opposite axis its coordinate keeps sign and value."""
    return replace(j, parent=j.child, child=j.parent, axis=triple(-x for x in j.axis))


def _end_axes(where: str, kind: str, end: LoopEnd) -> Matrix:
    """Return axes with z along the axis and x along the second axis, or in any direction if there is none."""
    axis = None if end.axis is None else vector(end.axis, where, "axis")
    second = None if end.second_axis is None else vector(end.second_axis, where, "second_axis")
    for what, given in (("axis", axis), ("second_axis", second)):
        if given is not None and kind not in (*AXIAL_KINDS, "fixed"):
            raise ModelError(f"{where}: {what} is {given}, but a {kind} loop has none.")
        if given is not None:
            for _ in part_checks.check_direction(where, what, nominal(given)):
                pass
    if kind == "universal" and second is None:
        raise ModelError(
            f"{where}: universal loops need second_axis, perpendicular to axis: the hinge fixed in body_b."
        )
    cosine = part_checks.cosine(nominal(axis or (0.0, 0.0, 1.0)), nominal(second)) if kind == "universal" else 0.0
    if abs(cosine) > part_checks.MAX_AXES_COSINE:
        raise ModelError(f"{where}: second_axis {second} is not perpendicular to axis {axis}; expected a right angle.")
    if axis is None and second is None:
        return IDENTITY
    return matrix(axes_along(axis or (0.0, 0.0, 1.0), second or (1.0, 0.0, 0.0)))


def _distance(a: Triple, b: Triple) -> Number:
    length: Number = np.linalg.norm(np.subtract(b, a))
    return length if has_free(a, b) else float(length)
