"""Checks that parts are physically possible; messages give the element, the value, the expected value and a remedy.

Free parameters are judged by their nominal values. Values that they are given later, also in batches, pass the same
checks (`check_values`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bellcrank.errors import InputError, ModelError, unknown
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import MODAL_PREFIX
from bellcrank.model.parts import IDENTITY, Array, Body, Frame, Joint, Limits, Matrix, ReportLine, Spring
from bellcrank.parameters import evaluate, expressions, has_free, nominal, replace_free
from bellcrank.quoting import name_problem

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module

# Numbers in files have few digits: relative errors below this are rounding.
RELATIVE_ROUNDING = 1e-3
# Moments below this (kg m^2) are taken as zero: exporters write -2e-35.
NEGLIGIBLE_MOMENT = 1e-15
# Largest cosine between the axes of a universal joint that still counts as perpendicular.
MAX_AXES_COSINE = 1e-3
# Upper bound of all numbers of a mechanism; products of a few such numbers are still finite.
MAX_NUMBER = 1e50
# Numbers of joints and springs that are zero or more.
NOT_NEGATIVE: dict[type, tuple[str, ...]] = {
    Joint: ("armature", "damping", "friction"),
    Spring: ("length", "damping"),
}


def checked_level(checks: object) -> str:
    """Return `checks`, "error" or "warn"; raise a ModelError for any other value."""
    if checks not in ("error", "warn"):
        raise ModelError(f'check is {checks!r}; expected "error" or "warn".')
    return str(checks)


def check_finite(where: str, what: str, values: object) -> None:
    """Raise a ModelError unless all numbers are finite.

    Parameters
    ----------
    where
        The element, for the message.
    what
        The property, for the message.
    values
        A number or nested sequences of numbers.
    """
    if _is_valid(values):
        return
    values = nominal(values)
    array = np.asarray(values, dtype=float)
    if not np.all(np.abs(array) < MAX_NUMBER):  # a comparison with NaN is false
        raise ModelError(
            f"{where}: {what} is {values}; expected finite numbers (below {MAX_NUMBER:g}). Correct the source."
        )


def _is_valid(values: object) -> bool:
    """Return whether values are valid; fast for a number, three numbers or a 3x3, which are most."""
    if type(values) is not tuple:
        return type(values) is float and abs(values) < MAX_NUMBER
    return all(abs(x) < MAX_NUMBER if type(x) is float else _is_valid(x) for x in values)


def check_names(what: str, items: Iterable[str]) -> None:
    """Raise a ModelError unless all names of `items` are valid and differ; `what` is their kind."""
    seen: set[str] = set()
    for name in items:
        if not name:
            raise ModelError(f"a {what} has an empty name; every {what} needs one of its own.")
        if why := name_problem(name):
            raise ModelError(f"the {what} {why}.")
        if name in seen:
            raise ModelError(f'the {what} name "{name}" is used twice; names must differ. Rename one of them.')
        seen.add(name)


def check_body_numbers(b: Body) -> None:
    """Raise a ModelError if the body `b` has numbers that are not finite, or an inertia that is not symmetric.

    These are errors even with check="warn".
    """
    where = f'body "{b.name}"'
    check_finite(where, "mass", b.mass)
    check_finite(where, "centre of mass", b.com)
    check_finite(where, "inertia", b.inertia)
    rows = nominal(b.inertia)
    if _is_valid(rows) and rows == tuple(zip(*rows, strict=True)):
        return
    I = np.asarray(rows, dtype=float)
    if not np.allclose(I, I.T, rtol=0.0, atol=1e-12 * (1.0 + np.abs(I).max())):
        raise ModelError(
            f"{where}: inertia is not symmetric: {I.tolist()}. Give 3 moments, 6 numbers or a symmetric 3x3."
        )


def check_mass(b: Body) -> None:
    """Raise a ModelError if the mass of the moving body `b`, with all bodies welded to it, is negative."""
    kilograms = nominal(b.mass)
    if kilograms < 0.0:
        raise ModelError(
            f'body "{b.name}": mass is {kilograms:g} kg; expected a positive number. Correct it, or leave mass and '
            "inertia out if the body is meant to be massless."
        )


@dataclass(frozen=True)
class InertiaDefect:
    """An inertia that is physically impossible."""

    name: str
    description: str
    remedy: str
    relative_size: float  # error relative to the moments

    @property
    def is_error(self) -> bool:
        """The error is larger than the rounding of numbers in files."""
        return self.relative_size > RELATIVE_ROUNDING


def find_inertia_defect(b: Body, planar: bool = False) -> InertiaDefect | None:
    """Return the defect of mass and inertia of a body, or None.

    Parameters
    ----------
    b
        The body.
    planar
        The body moves in a plane, where only one moment has an effect.
    """
    b = nominal(b)
    if b.mass < 0.0:
        remedy = "Correct it, or leave mass and inertia out if the body is meant to be massless."
        return InertiaDefect(b.name, f"mass is {b.mass:g} kg; expected a positive number", remedy, math.inf)
    moments = np.linalg.eigvalsh(np.asarray(b.inertia, dtype=float))
    scale = float(np.abs(moments).max(initial=0.0))
    gap = moments[2] - moments[0] - moments[1]
    if moments[0] < -max(1e-9 * scale, NEGLIGIBLE_MOMENT):
        what = (
            f"inertia has the principal moments {_format_numbers(moments)} kg m^2; expected none below zero (the "
            "matrix must be positive definite)"
        )
        return InertiaDefect(
            b.name, what, "Check signs and that it is about the centre of mass.", 1.0 - moments[0] / scale
        )
    if gap > max(1e-9 * scale, NEGLIGIBLE_MOMENT) and not planar:
        what = (
            f"principal moments {_format_numbers(moments)} kg m^2 break the triangle inequality by {gap:.1e} (no body "
            "has one moment above the sum of the other two)"
        )
        return InertiaDefect(b.name, what, "Correct the inertia.", gap / scale)
    if b.mass == 0.0 and scale > 0.0:
        return InertiaDefect(
            b.name, f"has the principal moments {_format_numbers(moments)} kg m^2 but no mass", "", 0.0
        )
    return None


def has_one_moment(b: Body) -> bool:
    """Return whether body `b` has a single principal moment, as bodies of planar mechanisms are often written.

    Planarity itself is only known with the joints.
    """
    moments = np.abs(np.linalg.eigvalsh(np.asarray(nominal(b.inertia), dtype=float)))
    return bool(np.count_nonzero(moments > 1e-9 * moments.max()) == 1)


def raise_inertia_defect(defect: InertiaDefect | None) -> None:
    """Raise a ModelError for the defect `defect` unless it is None or rounding."""
    if defect is not None and defect.is_error:
        raise ModelError(
            f'body "{defect.name}": {defect.description}. {defect.remedy} (check="warn" takes it as it is.)'
        )


def defect_lines(defects: Sequence[InertiaDefect]) -> list[ReportLine]:
    """Return the report lines of the defects `defects`: one warning, with notes for each where there are several."""
    ranked = sorted(defects, key=lambda d: -d.relative_size)
    lines = [ReportLine(f'body "{d.name}"', f"{d.description}", "warning") for d in ranked]
    return summarize_lines(lines, "have a physically impossible inertia, used as it is. The worst")


def summarize_lines(lines: Sequence[ReportLine], what: str, noun: str = "bodies") -> list[ReportLine]:
    """Return one warning in place of many, which become notes.

    Parameters
    ----------
    lines
        The lines.
    what
        What they have in common.
    noun
        Plural noun of the elements.
    """
    if len(lines) < 2:
        return list(lines)
    head = ReportLine(f"{len(lines)} {noun}", f"{what}: {lines[0].element}, {lines[0].outcome}", "warning")
    return [head, *(replace(line, level="note") for line in lines)]


def check_joint(j: Joint, known: Collection[str]) -> Iterator[ReportLine]:
    """Raise a ModelError if a joint is invalid; yield notes and warnings.

    Parameters
    ----------
    j
        The joint.
    known
        Names of the ground and of all bodies.
    """
    j = nominal(j)
    where = f'joint "{j.name}"'
    if j.kind not in KINDS and not j.kind.startswith(MODAL_PREFIX):
        raise ModelError(f"{where}: {unknown('joint type', j.kind, KINDS)}")
    for end in (j.parent, j.child):
        if end not in known:
            raise ModelError(f"{where}: {unknown('body', end, known)}")
    if j.parent == j.child:
        raise ModelError(f'{where}: joins "{j.parent}" to itself; parent and child must differ.')
    for what in ("rotation", "point", "axis", "pitch", "armature", "damping", "friction", "stiffness", "rest"):
        check_finite(where, what, getattr(j, what))
    check_not_negative(where, j, " (it would add energy to the system)")
    if not j.friction_speed > 0.0:
        raise ModelError(f"{where}: friction_speed is {j.friction_speed:g}; expected a small positive speed.")
    _check_rotation(where, j.rotation)
    for what, axis in (("axis", j.axis), ("second_axis", j.second_axis)):
        if axis is not None and j.kind not in ("fixed", "spherical", "floating"):  # these have none
            yield from check_direction(where, what, axis)
    if j.kind == "universal":
        yield from _check_second_axis(where, j)
    yield from _unused_properties(where, j)
    yield from _check_limits(where, j)
    if j.stiffness and KINDS[j.kind].nq != KINDS[j.kind].nv:
        reason = f"a {j.kind} joint has no angle that a spring could measure"
        yield ReportLine(where, f"stiffness {j.stiffness:g} not used: {reason}", "warning")
    if j.stiffness < 0.0:
        yield ReportLine(where, f"stiffness {j.stiffness:g} is negative: the spring pushes away from rest", "warning")


def check_not_negative(where: str, part: Joint | Spring, why: str = "") -> None:
    """Raise a ModelError if a number of NOT_NEGATIVE is negative.

    Parameters
    ----------
    where
        The element, for the message.
    part
        The part, without free parameters.
    why
        Reason, for the message.
    """
    for what in NOT_NEGATIVE[type(part)]:
        if getattr(part, what) < 0.0:
            raise ModelError(f"{where}: {what} is {getattr(part, what):g}; expected zero or more{why}.")


def _check_limits(where: str, j: Joint) -> Iterator[ReportLine]:
    lim = j.limits
    if any(map(math.isnan, (lim.lower, lim.upper, lim.velocity, lim.effort))):
        raise ModelError(f"{where}: limits hold a NaN: {lim}.")
    if lim.lower > lim.upper:
        raise ModelError(f"{where}: lower limit {lim.lower:g} is above the upper limit {lim.upper:g}; swap them.")
    if lim.lower == lim.upper and j.kind != "fixed":
        yield ReportLine(where, f"limits allow no motion: lower = upper = {lim.lower:g}", "warning")


def _check_second_axis(where: str, j: Joint) -> Iterator[ReportLine]:
    off = 1.0 if j.second_axis is None else abs(cosine(j.axis, j.second_axis))
    if off > MAX_AXES_COSINE:
        raise ModelError(
            f"{where}: second_axis is {j.second_axis}; universal joints need second_axis perpendicular to axis "
            f"{j.axis} (to within {MAX_AXES_COSINE:g} rad). Give it the direction of the hinge that is fixed "
            "in the child."
        )
    if off > 1e-9:
        yield ReportLine(where, f"second_axis is {off:.1e} rad from perpendicular to axis: made perpendicular", "note")


def _unused_properties(where: str, j: Joint) -> Iterator[ReportLine]:
    """Yield warnings about properties that the joint's type does not use."""
    for what, value, kind in (("pitch", j.pitch, "helical"), ("second_axis", j.second_axis, "universal")):
        if value and j.kind != kind:
            shown = _format_numbers(value) if isinstance(value, tuple) else f"{value:g}"
            reason = f"only {kind} joints have one, and this is {j.kind}"
            yield ReportLine(where, f"{what} {shown} not used: {reason}", "warning")
    if j.kind == "helical" and not j.pitch:
        yield ReportLine(where, "pitch is 0: it turns without sliding, as a revolute joint", "note")
    if j.axis != (0.0, 0.0, 1.0) and j.kind in ("fixed", "spherical", "floating"):
        yield ReportLine(where, f"axis {_format_numbers(j.axis)} not used: a {j.kind} joint has none", "warning")
    if j.kind == "fixed":
        given = [what for what in ("armature", "damping", "friction", "stiffness") if getattr(j, what)]
        given += ["limits"] * (j.limits != Limits()) + ["mimic"] * (j.mimic is not None)
        if given:
            yield ReportLine(where, f"{', '.join(given)} not used: a fixed joint does not move", "warning")


def check_direction(where: str, what: str, axis: Sequence[float]) -> Iterator[ReportLine]:
    """Raise a ModelError if an axis has no direction; yield a note where it is normalised.

    Parameters
    ----------
    where
        The element, for the message.
    what
        The property, for the message.
    axis
        Three numbers.
    """
    check_finite(where, what, axis)
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise ModelError(
            f"{where}: {what} is {tuple(axis)}; expected a unit vector, and this one has no direction. Give the "
            "direction that the joint turns about or slides along, such as (0, 0, 1)."
        )
    if abs(length - 1.0) > 1e-9:
        yield ReportLine(where, f"{what} has length {length:.9g}; normalised", "note")


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of the angle between vectors `a` and `b`."""
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def check_frame(f: Frame, known: Collection[str]) -> None:
    """Raise a ModelError if frame `f` is invalid; `known` are the names of the ground and of all bodies."""
    f = nominal(f)
    if f.body not in known:
        raise ModelError(f'frame "{f.name}": {unknown("body", f.body, known)}')
    if f.name in known and f.name != f.body:
        raise ModelError(
            f'frame "{f.name}" on "{f.body}": a body has this name, and every body is already a frame of its own '
            "name. Rename the frame."
        )
    check_finite(f'frame "{f.name}"', "pose", [*f.point, *(x for row in f.rotation for x in row)])
    _check_rotation(f'frame "{f.name}"', f.rotation)


def _check_rotation(where: str, rotation: Matrix) -> None:
    if rotation is IDENTITY:
        return
    R = np.asarray(rotation, dtype=float)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
        raise ModelError(
            f"{where}: rotation {rotation} is not a rotation matrix; expected orthonormal rows, right-handed."
        )


def _format_numbers(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in values) + ")"


# -- values of free parameters, for whole batches


class ValueCheck(NamedTuple):
    """A property of a part with its values and whether they are valid."""

    description: str  # the property, in words
    value: Array  # for each element of the batch, or one for all
    is_valid: Array
    expected: str = "zero or more"


def check_values(m: Mechanism, names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError where parameter values give a part impossible numbers.

    Parameters
    ----------
    m
        The mechanism.
    names
        Names of the parameters.
    p
        Their values, (..., len(names)).
    where
        The element, for the message.
    """
    values, evaluated_expressions = p.reshape(-1, len(names)), dict[Any, Any]()

    def with_values(part: Any) -> Any:
        return replace_free(
            part, lambda x: evaluate(x, lambda leaf: values[:, names.index(leaf.args[0])], evaluated_expressions)
        )

    for kind, parts in (("body", m.bodies), ("joint", m.joints), ("spring", m.springs)):
        for part in filter(has_free, parts):
            with np.errstate(all="ignore"):
                checks = list(_value_checks(with_values(part), nominal(part)))
            for doubt in checks:
                bad = np.flatnonzero(~np.broadcast_to(doubt.is_valid, len(values)))
                if len(bad):
                    run = int(bad[0])
                    part_parameters = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                    parameter_text = ", ".join(
                        f"{name} = {values[run, names.index(name)]:g}" for name in part_parameters
                    )
                    among = f" (run {run} of {len(values)})" if len(values) > 1 else ""
                    value = np.broadcast_to(doubt.value, len(values))[run]
                    raise InputError(
                        f'{where}: the parameters {parameter_text}{among} give {kind} "{part.name}" '
                        f"{doubt.description} {value:.4g}; expected {doubt.expected}."
                    )


def _value_checks(part: Body | Joint | Spring, plain: Any) -> Iterator[ValueCheck]:
    """Yield the checks of a part with arrays of values; `plain` has the nominal ones."""
    for what in ("mass",) if isinstance(part, Body) else NOT_NEGATIVE[type(part)]:
        value = np.asarray(getattr(part, what))
        yield ValueCheck(f"the {what}", value, value >= 0.0)
    if isinstance(part, Body):
        yield from _inertia_checks(part, plain)
    if isinstance(part, Joint):
        speed = np.asarray(part.friction_speed)
        yield ValueCheck("the friction_speed", speed, speed > 0.0, "more than zero")


def _inertia_checks(b: Body, plain: Body) -> Iterator[ValueCheck]:
    for x in b.com:
        yield ValueCheck("in its centre of mass", np.asarray(x), np.isfinite(x), "finite numbers")
    moments, nominal_moments = _principal_moments(b), _principal_moments(plain)
    scale = np.abs(moments).max(axis=-1)
    least = moments[..., 0]
    yield ValueCheck("the principal moment of inertia", least, least >= -np.maximum(1e-9 * scale, NEGLIGIBLE_MOMENT))
    rounding = max(RELATIVE_ROUNDING * np.abs(nominal_moments).max(), NEGLIGIBLE_MOMENT)
    if _triangle_excess(nominal_moments) <= rounding:  # otherwise it was read so, with a warning
        what = "a principal moment of inertia greater than the sum of the other two, by"
        excess = _triangle_excess(moments)
        is_valid = excess <= np.maximum(RELATIVE_ROUNDING * scale, NEGLIGIBLE_MOMENT)
        yield ValueCheck(what, excess, is_valid, "a physically possible inertia")


def _principal_moments(b: Body) -> Array:
    """Return the sorted principal moments; non-finite elements are replaced so that the inertia is invalid."""
    each = np.broadcast_arrays(*(np.asarray(x, float) for row in b.inertia for x in row))
    I = np.stack(each, axis=-1).reshape(*each[0].shape, 3, 3)
    return np.linalg.eigvalsh(np.where(np.isfinite(I), I, -1.0))


def _triangle_excess(moments: Array) -> Array:
    return np.asarray(moments[..., 2] - moments[..., 0] - moments[..., 1])
