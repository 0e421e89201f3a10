"""Inertial and passive numbers, in which inverse dynamics is linear: names, values, and mechanisms with other values.

BODY.mass                      m, kg
BODY.mx my mz                  first moments m c, kg m, in the body's frame
BODY.ixx iyy izz ixy ixz iyz   inertia matrix about the origin of the body's frame, kg m^2
JOINT.armature damping friction stiffness       as the joint has them
JOINT.offset                   constant force: -stiffness * rest, or a sensor's offset
SPRING.stiffness, .preload (stiffness * length), .damping
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, brief, check_known, unknown
from bellcrank.model import Mechanism
from bellcrank.model.parts import Body, Joint, Spring, matrix, triple
from bellcrank.parameters import has_free

Array = np.ndarray[Any, Any]
BODY_NUMBERS = ("mass", "mx", "my", "mz", "ixx", "iyy", "izz", "ixy", "ixz", "iyz")
JOINT_NUMBERS = ("armature", "damping", "friction", "stiffness", "offset")
SPRING_NUMBERS = ("spring stiffness", "spring preload", "spring damping")
PART_TYPES: dict[str, type] = {
    **dict.fromkeys(BODY_NUMBERS, Body), **dict.fromkeys(JOINT_NUMBERS, Joint), **dict.fromkeys(SPRING_NUMBERS, Spring)
}  # fmt: skip
UNITS = {
    "mass": "kg", **dict.fromkeys(BODY_NUMBERS[1:4], "kg m"), **dict.fromkeys(BODY_NUMBERS[4:], "kg m^2"),
    "spring stiffness": "N/m", "spring preload": "N", "spring damping": "N s/m",
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """Number of a body, a joint or a spring, in which inverse dynamics is linear.

    Parameters
    ----------
    part : str
        Name of the body, joint or spring.
    kind : str
        Kind of number, such as "mass", "damping" or "spring stiffness".
    """

    part: str
    kind: str

    @property
    def name(self) -> str:
        """Name, such as "link2.mass"."""
        return f"{self.part}.{self.kind.removeprefix('spring ')}"

    @property
    def unit(self) -> str:
        """Unit; "" for numbers of joints, whose unit depends on the joint."""
        return UNITS.get(self.kind, "")


@explain_argument_errors
def numbers_of(m: Mechanism, joints: Sequence[str] | None = None) -> tuple[Number, ...]:
    """Return all numbers of a mechanism: bodies from the root, then joints, then springs.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    joints : sequence of str, optional
        Numbers that every joint has (armature, damping, friction, stiffness, offset); by default those that the
        mechanism's joints have.

    Returns
    -------
    tuple[Number, ...]
        Numbers.

    Raises
    ------
    InputError
        If a number of `joints` is unknown, or the mechanism has flexible bodies or free parameters.
    """
    _check_supported(m)
    for kind in () if joints is None else joints:
        check_known("number of a joint", kind, JOINT_NUMBERS, "joints")
    numbers = [Number(b.name, kind) for b in m.bodies for kind in BODY_NUMBERS]
    for j in m.joints:
        kinds = [kind for kind, x in _part_values(j).items() if x]
        numbers += [Number(j.name, kind) for kind in (kinds if joints is None else joints)]
    for s in m.springs:
        numbers += [Number(s.name, kind) for kind, x in (_part_values(s) | {"spring preload": s.length}).items() if x]
    return tuple(numbers)


def _part_values(part: Body | Joint | Spring) -> dict[str, float]:
    """Return the values of all numbers of a part, by kind."""
    if isinstance(part, Body):
        return dict(zip(BODY_NUMBERS, inertial_numbers(part), strict=True))
    if isinstance(part, Spring):
        return dict(zip(SPRING_NUMBERS, (part.stiffness, part.stiffness * part.length, part.damping), strict=True))
    return {kind: getattr(part, kind) for kind in JOINT_NUMBERS[:4]} | {"offset": -part.stiffness * part.rest}


def check_numbers(m: Mechanism, numbers: Sequence[Number]) -> tuple[Number, ...]:
    """Return `numbers`, or raise an InputError if mechanism `m` does not have one of them."""
    names = {Body: {b.name for b in m.bodies}, Joint: {j.name for j in m.joints}, Spring: {s.name for s in m.springs}}
    for n in numbers:
        if not isinstance(n, Number) or n.kind not in PART_TYPES:
            raise InputError(f"numbers has {brief(n)}; expected those of identify.numbers_of(m).")
        known = names[PART_TYPES[n.kind]]
        if n.part not in known:
            raise InputError(f'"{n.name}" is not a number of "{m.name}": {unknown("part", n.part, sorted(known))}')
    return tuple(numbers)


@explain_argument_errors
def values_of(m: Mechanism, numbers: Sequence[Number]) -> Array:
    """Return the values of numbers in a mechanism.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    numbers : sequence of Number
        Numbers of the mechanism.

    Returns
    -------
    ndarray, shape (len(numbers),)
        Values in SI units.

    Raises
    ------
    InputError
        If the mechanism does not have one of them.
    """
    check_numbers(m, numbers)
    parts: tuple[Body | Joint | Spring, ...] = (*m.bodies, *m.joints, *m.springs)
    values = {(part.name, type(part)): _part_values(part) for part in parts}
    return np.array([values[n.part, PART_TYPES[n.kind]][n.kind] for n in numbers], float)


def inertial_numbers(b: Body) -> Array:
    """Return m, m c, and the inertia about the origin of the frame of body `b`."""
    c = np.asarray(b.com, float)
    I = np.asarray(b.inertia, float) + b.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([b.mass, *(b.mass * c), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def replace_inertia(b: Body, x: Array) -> Body:
    """Return body `b` with the ten numbers `x`."""
    m = float(x[0])
    if not m > 0:
        raise InputError(f'body "{b.name}" would have the mass {m:.4g}; expected a mass above zero.')
    c = x[1:4] / m
    xx, yy, zz, xy, xz, yz = x[4:]
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    return replace(b, mass=m, com=triple(c), inertia=matrix(I))


@explain_argument_errors
def mechanism_with(m: Mechanism, numbers: Sequence[Number], values: Array) -> Mechanism:
    """Return a copy of a mechanism with other values of numbers.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    numbers : sequence of Number
        Numbers of the mechanism.
    values : array_like, shape (len(numbers),)
        New values.

    Returns
    -------
    Mechanism
        The copy.

    Raises
    ------
    InputError
        If the arguments do not fit, or a mass is not above zero.
    """
    if np.shape(values) != (len(numbers),):
        raise InputError(f"values have the shape {np.shape(values)}; expected one for each of {len(numbers)} numbers.")
    check_numbers(m, numbers)
    new_values: Mapping[tuple[str, str], float] = {
        (n.part, n.kind): float(x) for n, x in zip(numbers, values, strict=True)
    }
    bodies = []
    for b in m.bodies:
        x = inertial_numbers(b)
        x = np.array([new_values.get((b.name, kind), old) for kind, old in zip(BODY_NUMBERS, x, strict=True)])
        bodies.append(b if np.array_equal(x, inertial_numbers(b)) else replace_inertia(b, x))
    joints = []
    for j in m.joints:
        new: dict[str, Any] = {k: new_values[j.name, k] for k in JOINT_NUMBERS[:4] if (j.name, k) in new_values}
        j = replace(j, **new)
        if (j.name, "offset") in new_values and j.stiffness:
            j = replace(j, rest=-new_values[j.name, "offset"] / j.stiffness)
        joints.append(j)
    return replace(
        m, bodies=tuple(bodies), joints=tuple(joints), springs=tuple(_spring(s, new_values) for s in m.springs)
    )


def _spring(s: Spring, new_values: Mapping[tuple[str, str], float]) -> Spring:
    k = new_values.get((s.name, "spring stiffness"), s.stiffness)
    load = new_values.get((s.name, "spring preload"), s.stiffness * s.length)
    length = load / k if k else s.length
    return replace(s, stiffness=k, length=length, damping=new_values.get((s.name, "spring damping"), s.damping))


def _check_supported(m: Mechanism) -> None:
    if m.flexible:
        raise InputError(f'"{m.name}" has flexible bodies; expected rigid ones: modes have no ten inertial numbers.')
    if has_free(m.bodies, m.joints, m.springs, m.gravity):
        raise InputError(f'"{m.name}" has free parameters; pass it with fixed ones: mechanism.at().')
