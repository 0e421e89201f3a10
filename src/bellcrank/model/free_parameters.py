"""Free parameters of a finished mechanism by dotted names, as for one read from a file or from the zoo.

    BODY.mass, BODY.com.x, BODY.inertia.xy       JOINT.point.x, JOINT.axis.x, JOINT.damping, JOINT.mimic.offset, ...
    FRAME.point.x                                gravity.z
    LOOP.value, LOOP.offset                      SPRING.stiffness, SPRING.length, SPRING.damping

BODY.com stands for all three, BODY.inertia for all six. Values of a body include all parts welded to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.parts import COUPLINGS, Body, Frame, Joint, Loop, Number, Spring, Triple
from bellcrank.parameters import Free, parameter

MOMENT_INDICES = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
JOINT_FIELDS = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")
MODE_FIELDS = ("mass", "com", "inertia", "point")  # properties that the modes of a flexible body depend on
LIMIT_FIELDS = ("lower", "upper", "velocity", "effort")

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module
Setter: TypeAlias = Callable[[Any, Number], Any]  # (part, number) -> the part with that number


@dataclass(frozen=True)
class ModelNumber:
    """A number of a mechanism that can become a parameter."""

    name: str
    group: str  # name for several numbers together
    value: Number
    unit: str
    setter: Setter  # sets the number in a mechanism


def free_numbers(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """Return `mechanism` with a parameter for each of `names`, whose nominal value is the present number."""
    where = f'mechanism "{mechanism.name}"'
    places: dict[str, ModelNumber] = {}
    for place in _model_numbers(mechanism):
        places.setdefault(place.name, place)
    requested: dict[str, ModelNumber] = {}
    for name in names:
        matches = [p for p in places.values() if name in (p.name, p.group)]
        if not matches:
            raise InputError(f"{where}: {unknown('number', name, places)}")
        requested |= {p.name: p for p in matches}
    flexible_names = [name for body in mechanism.flexible for name in (body.body, *(node.joint for node in body.nodes))]
    for p in requested.values():
        if any(p.name.startswith(tuple(f"{name}.{what}" for what in MODE_FIELDS)) for name in flexible_names):
            raise InputError(f'{where}: "{p.name}" cannot be free: the body is flexible, and its modes depend on it.')
        if isinstance(p.value, Free):
            raise InputError(f'{where}: "{p.name}" already depends on a parameter: {p.value:g}.')
        mechanism = p.setter(mechanism, parameter(p.name, p.value, p.unit))
    _ = mechanism.parameters  # raises where a name has two meanings
    return mechanism


def _model_numbers(m: Mechanism) -> Iterator[ModelNumber]:
    yield from _vector_numbers("gravity", m.gravity, "m/s^2", lambda m, xyz: replace(m, gravity=xyz))
    for i, b in enumerate(m.bodies):
        yield from _in_mechanism(_body_numbers(b), "bodies", i)
    for i, j in enumerate(m.joints):
        yield from _in_mechanism(_joint_numbers(j), "joints", i)
    for f in m.frames.values():
        for p in _vector_numbers(f"{f.name}.point", f.point, "m", _set_field("point")):
            yield replace(p, setter=_set_frame(f.name, p.setter))
    for i, loop in enumerate(m.loops):
        yield from _in_mechanism(_loop_numbers(loop), "loops", i)
    for i, spring in enumerate(m.springs):
        yield from _in_mechanism(_spring_numbers(spring), "springs", i)


def _body_numbers(b: Body) -> Iterator[ModelNumber]:
    yield ModelNumber(f"{b.name}.mass", "", b.mass, "kg", _set_field("mass"))
    yield from _vector_numbers(f"{b.name}.com", b.com, "m", _set_field("com"))
    for name, (i, k) in MOMENT_INDICES.items():
        group = f"{b.name}.inertia"
        yield ModelNumber(f"{group}.{name}", group, b.inertia[i][k], "kg m^2", _set_moment(i, k))


def _joint_numbers(j: Joint) -> Iterator[ModelNumber]:
    yield from _vector_numbers(f"{j.name}.point", j.point, "m", _set_field("point"))
    if j.kind not in ("spherical", "floating"):
        yield from _vector_numbers(f"{j.name}.axis", j.axis, "", _set_field("axis"))
    if j.second_axis is not None:
        yield from _vector_numbers(f"{j.name}.second_axis", j.second_axis, "", _set_field("second_axis"))
    for what in (*JOINT_FIELDS, *(["pitch"] if j.kind == "helical" else [])):
        yield ModelNumber(f"{j.name}.{what}", "", getattr(j, what), "", _set_field(what))
    for holder, fields in (("limits", LIMIT_FIELDS), ("mimic", ("multiplier", "offset"))):
        held = getattr(j, holder)
        for what in fields if held is not None else ():
            if abs(_present_value(getattr(held, what))) < np.inf:
                name = f"{j.name}.{holder}.{what}"
                yield ModelNumber(name, f"{j.name}.{holder}", getattr(held, what), "", _set_nested_field(holder, what))


def _loop_numbers(loop: Loop) -> Iterator[ModelNumber]:
    if loop.kind == "distance" or loop.kind in COUPLINGS:
        yield ModelNumber(
            f"{loop.name}.value", "", loop.value, "m" if loop.kind == "distance" else "", _set_field("value")
        )
    if loop.kind in COUPLINGS:
        yield ModelNumber(f"{loop.name}.offset", "", loop.offset, "", _set_field("offset"))


def _spring_numbers(s: Spring) -> Iterator[ModelNumber]:
    for what, unit in (("stiffness", "N/m"), ("length", "m"), ("damping", "N s/m")):
        yield ModelNumber(f"{s.name}.{what}", "", getattr(s, what), unit, _set_field(what))


def _vector_numbers(group: str, xyz: Triple, unit: str, put: Setter) -> Iterator[ModelNumber]:
    for k, c in enumerate("xyz"):
        yield ModelNumber(f"{group}.{c}", group, xyz[k], unit, _set_element(group.rpartition(".")[2], k, put))


def _present_value(x: Number) -> float:
    return x.value if isinstance(x, Free) else float(x)


# -- functions that set a number


def _set_field(name: str) -> Setter:
    return lambda part, x: replace(part, **{name: x})


def _set_nested_field(holder: str, name: str) -> Setter:
    return lambda part, x: replace(part, **{holder: replace(getattr(part, holder), **{name: x})})


def _set_element(name: str, k: int, put: Setter) -> Setter:
    return lambda part, x: put(part, tuple(x if i == k else old for i, old in enumerate(getattr(part, name))))


def _set_moment(i: int, k: int) -> Setter:
    def put(b: Body, x: Number) -> Body:
        rows = [list(row) for row in b.inertia]
        rows[i][k] = rows[k][i] = x
        a, c, d = ((row[0], row[1], row[2]) for row in rows)
        return replace(b, inertia=(a, c, d))

    return put


def _in_mechanism(places: Iterator[ModelNumber], parts: str, i: int) -> Iterator[ModelNumber]:
    """Yield the numbers of part i as numbers of the mechanism."""

    def of_mechanism(put: Setter) -> Setter:
        def whole(m: Mechanism, x: Number) -> Mechanism:
            all_of_them = list(getattr(m, parts))
            all_of_them[i] = put(all_of_them[i], x)
            new: dict[str, Any] = {parts: tuple(all_of_them)}
            return replace(m, **new)

        return whole

    for p in places:
        yield replace(p, setter=of_mechanism(p.setter))


def _set_frame(name: str, put: Setter) -> Setter:
    def whole(m: Mechanism, x: Number) -> Mechanism:
        frame: Frame = put(m.frames[name], x)
        return replace(m, frames={**m.frames, name: frame})

    return whole
