"""Whether parts are physically possible. A complaint names the element, the value, what was expected and what to do.

Free parameters are judged by their nominal values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Body, Frame, Joint, Limits, Line, Matrix
from bellcrank.parameter import nominal
from bellcrank.quoting import refused

# Files are typed with a few digits: what is off by less than this is rounding, not physics.
ROUNDING = 1e-3
# Moments below this (kg m^2) are zeros with dirt on them: exporters write -2e-35.
NEGLIGIBLE = 1e-15
# How far from perpendicular to the first axis a second one may be (as a cosine) and still be meant so.
SLANTED = 1e-3
# No number of a mechanism is this large, and products of a few such still are finite.
HUGE = 1e50


def finite(where: str, what: str, values: object) -> None:
    values = nominal(values)
    array = np.asarray(values, dtype=float)
    if not np.all(np.abs(array) < HUGE):  # NaN is not below anything
        raise ModelError(f"{where}: {what} is {values}; expected finite numbers (below {HUGE:g}). Correct the source.")


def names(what: str, items: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in items:
        if not name:
            raise ModelError(f"a {what} has an empty name; every {what} needs one of its own.")
        if why := refused(name):
            raise ModelError(f"the {what} {why}.")
        if name in seen:
            raise ModelError(f'the {what} name "{name}" is used twice; names must differ. Rename one of them.')
        seen.add(name)


def numbers(b: Body) -> None:
    """What no reading of the file can excuse: NaN, and a mass below zero."""
    where = f'body "{b.name}"'
    finite(where, "mass", b.mass)
    finite(where, "centre of mass", b.com)
    finite(where, "inertia", b.inertia)
    if b.mass < 0.0:
        raise ModelError(
            f"{where}: mass is {b.mass:g} kg; expected a positive number. Correct it, or leave mass and inertia out "
            "if the body is meant to be massless."
        )


def body(b: Body, checks: str = "error") -> Iterator[Line]:
    """Errors for what cannot be (warnings with checks="warn"); yields warnings for what is odd but usable."""
    b = nominal(b)
    numbers(b)
    where = f'body "{b.name}"'
    I = np.asarray(b.inertia, dtype=float)
    moments = np.linalg.eigvalsh(I)
    scale = float(np.abs(moments).max(initial=0.0))
    gap = moments[2] - moments[0] - moments[1]
    impossible = ""
    if not np.allclose(I, I.T, rtol=0.0, atol=1e-12 * (1.0 + np.abs(I).max())):
        impossible = f"inertia is not symmetric: {I.tolist()}"
        remedy = "Give 3 moments, 6 numbers or a symmetric 3x3."
    elif moments[0] < -max(1e-9 * scale, NEGLIGIBLE):
        impossible = (
            f"inertia has the principal moments {_numbers(moments)} kg m^2; expected none below zero (the matrix must "
            "be positive definite)"
        )
        remedy = "Check signs and that it is about the centre of mass."
    elif gap > max(ROUNDING * scale, NEGLIGIBLE):
        impossible = (
            f"principal moments {_numbers(moments)} kg m^2 break the triangle inequality (no body has one moment above "
            "the sum of the other two)"
        )
        remedy = "Correct the inertia."
    if impossible and checks == "error":
        raise ModelError(f'{where}: {impossible}. {remedy} (check="warn" reads a file as it is.)')
    if impossible:
        yield Line(where, f"{impossible}: used as it is", "warning")
    elif gap > max(1e-9 * scale, NEGLIGIBLE):
        yield Line(
            where, f"principal moments {_numbers(moments)} break the triangle inequality by {gap:.1e}", "warning"
        )
    if b.mass == 0.0 and scale > 0.0:
        yield Line(where, f"has inertia {_numbers(moments)} but no mass", "warning")


def joint(j: Joint, known: Sequence[str]) -> Iterator[Line]:
    j = nominal(j)
    where = f'joint "{j.name}"'
    if j.kind not in KINDS:
        raise ModelError(f"{where}: {unknown('joint type', j.kind, KINDS)}")
    for end in (j.parent, j.child):
        if end not in known:
            raise ModelError(f"{where}: {unknown('body', end, known)}")
    if j.parent == j.child:
        raise ModelError(f'{where}: joins "{j.parent}" to itself; parent and child must differ.')
    for what in ("rotation", "point", "axis", "pitch", "armature", "damping", "friction", "stiffness", "rest"):
        finite(where, what, getattr(j, what))
    for what in ("armature", "damping", "friction"):
        if getattr(j, what) < 0.0:
            raise ModelError(
                f"{where}: {what} is {getattr(j, what):g}; expected zero or more (it would feed energy in)."
            )
    if not j.friction_speed > 0.0:
        raise ModelError(f"{where}: friction_speed is {j.friction_speed:g}; expected a small positive speed.")
    _rotation(where, j.rotation)
    for what, axis in (("axis", j.axis), ("second_axis", j.second_axis)):
        if axis is not None and j.kind not in ("fixed", "spherical", "floating"):  # these have none
            yield from direction(where, what, axis)
    if j.kind == "universal":
        yield from _second_axis(where, j)
    yield from _unused(where, j)
    lim = j.limits
    if any(map(math.isnan, (lim.lower, lim.upper, lim.velocity, lim.effort))):
        raise ModelError(f"{where}: limits hold a NaN: {lim}.")
    if lim.lower > lim.upper:
        raise ModelError(f"{where}: lower limit {lim.lower:g} is above the upper limit {lim.upper:g}; swap them.")
    if lim.lower == lim.upper and j.kind != "fixed":
        yield Line(where, f"limits allow no motion: lower = upper = {lim.lower:g}", "warning")
    if j.stiffness and KINDS[j.kind].nq != KINDS[j.kind].nv:
        yield Line(
            where,
            f"stiffness {j.stiffness:g} not used: a {j.kind} joint has no angle that a spring could measure",
            "warning",
        )
    if j.stiffness < 0.0:
        yield Line(where, f"stiffness {j.stiffness:g} is negative: the spring pushes away from rest", "warning")


def _second_axis(where: str, j: Joint) -> Iterator[Line]:
    off = 1.0 if j.second_axis is None else abs(float(np.dot(j.axis, j.second_axis)))
    if off > SLANTED:
        raise ModelError(
            f"{where}: second_axis is {j.second_axis}; universal joints need second_axis perpendicular to axis "
            f"{j.axis} (to within {SLANTED:g} rad). Give it the direction of the hinge that is fixed in the child."
        )
    if off > 1e-9:
        yield Line(where, f"second_axis is {off:.1e} rad from perpendicular to axis: made perpendicular", "note")


def _unused(where: str, j: Joint) -> Iterator[Line]:
    """What was given to a joint that has no use for it."""
    if j.pitch and j.kind != "helical":
        yield Line(where, f"pitch {j.pitch:g} not used: only helical joints have one, and this is {j.kind}", "warning")
    if j.kind == "helical" and not j.pitch:
        yield Line(where, "pitch is 0: it turns without sliding, as a revolute joint", "note")
    if j.second_axis is not None and j.kind != "universal":
        shown = _numbers(j.second_axis)
        yield Line(
            where, f"second_axis {shown} not used: only universal joints have one, and this is {j.kind}", "warning"
        )
    if j.axis != (0.0, 0.0, 1.0) and j.kind in ("fixed", "spherical", "floating"):
        yield Line(where, f"axis {_numbers(j.axis)} not used: a {j.kind} joint has none", "warning")
    if j.kind == "fixed":
        given = [what for what in ("armature", "damping", "friction", "stiffness") if getattr(j, what)]
        given += ["limits"] * (j.limits != Limits()) + ["mimic"] * (j.mimic is not None)
        if given:
            yield Line(where, f"{', '.join(given)} not used: a fixed joint does not move", "warning")


def direction(where: str, what: str, axis: Sequence[float]) -> Iterator[Line]:
    finite(where, what, axis)
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise ModelError(
            f"{where}: {what} is {tuple(axis)}; expected a unit vector, and this one has no direction. Give the "
            "direction that the joint turns about or slides along, such as (0, 0, 1)."
        )
    if abs(length - 1.0) > ROUNDING:
        unit = tuple(round(float(x) / length, 6) for x in axis)
        raise ModelError(
            f"{where}: {what} {tuple(axis)} has length {length:.6g}; expected a unit vector. Write {unit}."
        )
    if abs(length - 1.0) > 1e-9:
        yield Line(where, f"{what} has length {length:.9g}; normalised", "note")


def frame(f: Frame, known: Sequence[str]) -> None:
    f = nominal(f)
    if f.body not in known:
        raise ModelError(f'frame "{f.name}": {unknown("body", f.body, known)}')
    if f.name in known and f.name != f.body:
        raise ModelError(
            f'frame "{f.name}" on "{f.body}": a body has this name, and every body is a frame of its own name already. '
            "Rename the frame."
        )
    finite(f'frame "{f.name}"', "pose", [*f.point, *(x for row in f.rotation for x in row)])
    _rotation(f'frame "{f.name}"', f.rotation)


def _rotation(where: str, rotation: Matrix) -> None:
    R = np.asarray(rotation, dtype=float)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
        raise ModelError(
            f"{where}: rotation {rotation} is not a rotation matrix; expected orthonormal rows, right-handed."
        )


def _numbers(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in values) + ")"
