"""Whether parts are physically possible. A complaint names the element, the value, what was expected and what to do.

Free parameters are judged by their nominal values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import PREFIX
from bellcrank.model.parts import IDENTITY, Body, Frame, Joint, Limits, Line, Matrix
from bellcrank.parameters import nominal
from bellcrank.quoting import refused

# Files are typed with a few digits: what is off by less than this is rounding, not physics.
ROUNDING = 1e-3
# Moments below this (kg m^2) are zeros with dirt on them: exporters write -2e-35.
NEGLIGIBLE = 1e-15
# How far from perpendicular to the first axis a second one may be (as a cosine) and still be meant so.
SLANTED = 1e-3
# No number of a mechanism is this large, and products of a few such still are finite.
HUGE = 1e50


def level(checks: object) -> str:
    """How much is an error."""
    if checks not in ("error", "warn"):
        raise ModelError(f'check is {checks!r}; expected "error" or "warn".')
    return str(checks)


def finite(where: str, what: str, values: object) -> None:
    if _fine(values):
        return
    values = nominal(values)
    array = np.asarray(values, dtype=float)
    if not np.all(np.abs(array) < HUGE):  # NaN is not below anything
        raise ModelError(f"{where}: {what} is {values}; expected finite numbers (below {HUGE:g}). Correct the source.")


def _fine(values: object) -> bool:
    """A number, three, or three times three, as most are: looked at without making an array of them."""
    if type(values) is not tuple:
        return type(values) is float and abs(values) < HUGE
    return all(abs(x) < HUGE if type(x) is float else _fine(x) for x in values)


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
    """What no reading of the file can excuse: NaN, and an inertia that is no matrix of inertia."""
    where = f'body "{b.name}"'
    finite(where, "mass", b.mass)
    finite(where, "centre of mass", b.com)
    finite(where, "inertia", b.inertia)
    rows = nominal(b.inertia)
    if _fine(rows) and rows == tuple(zip(*rows, strict=True)):
        return
    I = np.asarray(rows, dtype=float)
    if not np.allclose(I, I.T, rtol=0.0, atol=1e-12 * (1.0 + np.abs(I).max())):
        raise ModelError(
            f"{where}: inertia is not symmetric: {I.tolist()}. Give 3 moments, 6 numbers or a symmetric 3x3."
        )


def mass(b: Body) -> None:
    """Of a body that moves, with all that is welded to it."""
    kilograms = nominal(b.mass)
    if kilograms < 0.0:
        raise ModelError(
            f'body "{b.name}": mass is {kilograms:g} kg; expected a positive number. Correct it, or leave mass and '
            "inertia out if the body is meant to be massless."
        )


@dataclass(frozen=True)
class Doubt:
    """An inertia that no body has."""

    name: str
    what: str
    remedy: str
    size: float  # of the moments, how much is wrong

    @property
    def refused(self) -> bool:
        """Whether it is more than numbers in files are rounded by."""
        return self.size > ROUNDING


def doubt(b: Body, planar: bool = False) -> Doubt | None:
    """What is wrong with the body's mass and inertia. planar: one moment is all that it can feel."""
    b = nominal(b)
    if b.mass < 0.0:
        remedy = "Correct it, or leave mass and inertia out if the body is meant to be massless."
        return Doubt(b.name, f"mass is {b.mass:g} kg; expected a positive number", remedy, math.inf)
    moments = np.linalg.eigvalsh(np.asarray(b.inertia, dtype=float))
    scale = float(np.abs(moments).max(initial=0.0))
    gap = moments[2] - moments[0] - moments[1]
    if moments[0] < -max(1e-9 * scale, NEGLIGIBLE):
        what = (
            f"inertia has the principal moments {_numbers(moments)} kg m^2; expected none below zero (the matrix must "
            "be positive definite)"
        )
        return Doubt(b.name, what, "Check signs and that it is about the centre of mass.", 1.0 - moments[0] / scale)
    if gap > max(1e-9 * scale, NEGLIGIBLE) and not planar:
        what = (
            f"principal moments {_numbers(moments)} kg m^2 break the triangle inequality by {gap:.1e} (no body has one "
            "moment above the sum of the other two)"
        )
        return Doubt(b.name, what, "Correct the inertia.", gap / scale)
    if b.mass == 0.0 and scale > 0.0:
        return Doubt(b.name, f"has the principal moments {_numbers(moments)} kg m^2 but no mass", "", 0.0)
    return None


def one_moment(b: Body) -> bool:
    """As people write a body of a planar mechanism; whether it is one is known when its joints are."""
    moments = np.abs(np.linalg.eigvalsh(np.asarray(nominal(b.inertia), dtype=float)))
    return bool(np.count_nonzero(moments > 1e-9 * moments.max()) == 1)


def refuse(found: Doubt | None) -> None:
    if found is not None and found.refused:
        raise ModelError(f'body "{found.name}": {found.what}. {found.remedy} (check="warn" takes it as it is.)')


def doubts(found: Sequence[Doubt]) -> list[Line]:
    """Lines of a report: one warning, and notes for each where there are several."""
    ranked = sorted(found, key=lambda d: -d.size)
    lines = [Line(f'body "{d.name}"', f"{d.what}", "warning") for d in ranked]
    return gathered(lines, "have an inertia that no body has, used as it is. The worst")


def gathered(lines: Sequence[Line], what: str, of: str = "bodies") -> list[Line]:
    """One warning for many alike; each stays as a note."""
    if len(lines) < 2:
        return list(lines)
    head = Line(f"{len(lines)} {of}", f"{what}: {lines[0].element}, {lines[0].outcome}", "warning")
    return [head, *(replace(line, level="note") for line in lines)]


def joint(j: Joint, known: Collection[str]) -> Iterator[Line]:
    j = nominal(j)
    where = f'joint "{j.name}"'
    if j.kind not in KINDS and not j.kind.startswith(PREFIX):
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
    yield from _limits(where, j)
    if j.stiffness and KINDS[j.kind].nq != KINDS[j.kind].nv:
        yield Line(
            where,
            f"stiffness {j.stiffness:g} not used: a {j.kind} joint has no angle that a spring could measure",
            "warning",
        )
    if j.stiffness < 0.0:
        yield Line(where, f"stiffness {j.stiffness:g} is negative: the spring pushes away from rest", "warning")


def _limits(where: str, j: Joint) -> Iterator[Line]:
    lim = j.limits
    if any(map(math.isnan, (lim.lower, lim.upper, lim.velocity, lim.effort))):
        raise ModelError(f"{where}: limits hold a NaN: {lim}.")
    if lim.lower > lim.upper:
        raise ModelError(f"{where}: lower limit {lim.lower:g} is above the upper limit {lim.upper:g}; swap them.")
    if lim.lower == lim.upper and j.kind != "fixed":
        yield Line(where, f"limits allow no motion: lower = upper = {lim.lower:g}", "warning")


def _second_axis(where: str, j: Joint) -> Iterator[Line]:
    off = 1.0 if j.second_axis is None else abs(cosine(j.axis, j.second_axis))
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
    if abs(length - 1.0) > 1e-9:
        yield Line(where, f"{what} has length {length:.9g}; normalised", "note")


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def frame(f: Frame, known: Collection[str]) -> None:
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
    if rotation is IDENTITY:
        return
    R = np.asarray(rotation, dtype=float)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
        raise ModelError(
            f"{where}: rotation {rotation} is not a rotation matrix; expected orthonormal rows, right-handed."
        )


def _numbers(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in values) + ")"
