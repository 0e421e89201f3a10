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

MOMENTS = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
OF_JOINT = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")
OF_SHAPE = ("mass", "com", "inertia", "point")  # properties that the modes of a flexible body depend on
LIMITS = ("lower", "upper", "velocity", "effort")

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module
Put: TypeAlias = Callable[[Any, Number], Any]  # (part, number) -> the part with that number


@dataclass(frozen=True)
class Place:
    """A number of a mechanism that can become a parameter."""

    name: str
    group: str  # name for several numbers together
    value: Number
    unit: str
    put: Put  # sets the number in a mechanism


def freed(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """Return `mechanism` with a parameter for each of `names`, whose nominal value is the present number."""
    where = f'mechanism "{mechanism.name}"'
    places: dict[str, Place] = {}
    for place in _places(mechanism):
        places.setdefault(place.name, place)
    asked: dict[str, Place] = {}
    for name in names:
        found = [p for p in places.values() if name in (p.name, p.group)]
        if not found:
            raise InputError(f"{where}: {unknown('number', name, places)}")
        asked |= {p.name: p for p in found}
    bent = [name for body in mechanism.flexible for name in (body.body, *(node.joint for node in body.nodes))]
    for p in asked.values():
        if any(p.name.startswith(tuple(f"{name}.{what}" for what in OF_SHAPE)) for name in bent):
            raise InputError(f'{where}: "{p.name}" cannot be free: the body is flexible, and its modes depend on it.')
        if isinstance(p.value, Free):
            raise InputError(f'{where}: "{p.name}" already depends on a parameter: {p.value:g}.')
        mechanism = p.put(mechanism, parameter(p.name, p.value, p.unit))
    _ = mechanism.parameters  # raises where a name has two meanings
    return mechanism


def _places(m: Mechanism) -> Iterator[Place]:
    yield from _three("gravity", m.gravity, "m/s^2", lambda m, xyz: replace(m, gravity=xyz))
    for i, b in enumerate(m.bodies):
        yield from _inside(_of_body(b), "bodies", i)
    for i, j in enumerate(m.joints):
        yield from _inside(_of_joint(j), "joints", i)
    for f in m.frames.values():
        for p in _three(f"{f.name}.point", f.point, "m", _field("point")):
            yield replace(p, put=_of_frame(f.name, p.put))
    for i, loop in enumerate(m.loops):
        yield from _inside(_of_loop(loop), "loops", i)
    for i, spring in enumerate(m.springs):
        yield from _inside(_of_spring(spring), "springs", i)


def _of_body(b: Body) -> Iterator[Place]:
    yield Place(f"{b.name}.mass", "", b.mass, "kg", _field("mass"))
    yield from _three(f"{b.name}.com", b.com, "m", _field("com"))
    for name, (i, k) in MOMENTS.items():
        group = f"{b.name}.inertia"
        yield Place(f"{group}.{name}", group, b.inertia[i][k], "kg m^2", _moment(i, k))


def _of_joint(j: Joint) -> Iterator[Place]:
    yield from _three(f"{j.name}.point", j.point, "m", _field("point"))
    if j.kind not in ("spherical", "floating"):
        yield from _three(f"{j.name}.axis", j.axis, "", _field("axis"))
    if j.second_axis is not None:
        yield from _three(f"{j.name}.second_axis", j.second_axis, "", _field("second_axis"))
    for what in (*OF_JOINT, *(["pitch"] if j.kind == "helical" else [])):
        yield Place(f"{j.name}.{what}", "", getattr(j, what), "", _field(what))
    for holder, fields in (("limits", LIMITS), ("mimic", ("multiplier", "offset"))):
        held = getattr(j, holder)
        for what in fields if held is not None else ():
            if abs(_now(getattr(held, what))) < np.inf:
                name = f"{j.name}.{holder}.{what}"
                yield Place(name, f"{j.name}.{holder}", getattr(held, what), "", _nested(holder, what))


def _of_loop(loop: Loop) -> Iterator[Place]:
    if loop.kind == "distance" or loop.kind in COUPLINGS:
        yield Place(f"{loop.name}.value", "", loop.value, "m" if loop.kind == "distance" else "", _field("value"))
    if loop.kind in COUPLINGS:
        yield Place(f"{loop.name}.offset", "", loop.offset, "", _field("offset"))


def _of_spring(s: Spring) -> Iterator[Place]:
    for what, unit in (("stiffness", "N/m"), ("length", "m"), ("damping", "N s/m")):
        yield Place(f"{s.name}.{what}", "", getattr(s, what), unit, _field(what))


def _three(group: str, xyz: Triple, unit: str, put: Put) -> Iterator[Place]:
    for k, c in enumerate("xyz"):
        yield Place(f"{group}.{c}", group, xyz[k], unit, _element(group.rpartition(".")[2], k, put))


def _now(x: Number) -> float:
    return x.value if isinstance(x, Free) else float(x)


# -- functions that set a number


def _field(name: str) -> Put:
    return lambda part, x: replace(part, **{name: x})


def _nested(holder: str, name: str) -> Put:
    return lambda part, x: replace(part, **{holder: replace(getattr(part, holder), **{name: x})})


def _element(name: str, k: int, put: Put) -> Put:
    return lambda part, x: put(part, tuple(x if i == k else old for i, old in enumerate(getattr(part, name))))


def _moment(i: int, k: int) -> Put:
    def put(b: Body, x: Number) -> Body:
        rows = [list(row) for row in b.inertia]
        rows[i][k] = rows[k][i] = x
        a, c, d = ((row[0], row[1], row[2]) for row in rows)
        return replace(b, inertia=(a, c, d))

    return put


def _inside(places: Iterator[Place], parts: str, i: int) -> Iterator[Place]:
    """Yield the numbers of part i as numbers of the mechanism."""

    def of_mechanism(put: Put) -> Put:
        def whole(m: Mechanism, x: Number) -> Mechanism:
            all_of_them = list(getattr(m, parts))
            all_of_them[i] = put(all_of_them[i], x)
            new: dict[str, Any] = {parts: tuple(all_of_them)}
            return replace(m, **new)

        return whole

    for p in places:
        yield replace(p, put=of_mechanism(p.put))


def _of_frame(name: str, put: Put) -> Put:
    def whole(m: Mechanism, x: Number) -> Mechanism:
        frame: Frame = put(m.frames[name], x)
        return replace(m, frames={**m.frames, name: frame})

    return whole
