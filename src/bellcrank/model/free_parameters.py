"""Free parameters of a finished mechanism by dotted names, as for one read from a file or from the zoo.

    BODY.mass, BODY.com.x, BODY.inertia.xy       JOINT.point.x, JOINT.axis.x, JOINT.damping, JOINT.mimic.offset, ...
    FRAME.point.x                                gravity.z
    LOOP.value, LOOP.offset                      SPRING.stiffness, SPRING.length, SPRING.damping

BODY.com stands for all three, BODY.inertia for all six. Values of a body include all parts welded to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.parts import COUPLINGS, Joint, Loop, Number
from bellcrank.parameters import Free, nominal, parameter

MOMENT_INDICES = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
BODY_FIELDS = {"mass": "kg", "com": "m"}  # fields that can be free, with their units
JOINT_FIELDS = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")
SPRING_FIELDS = {"stiffness": "N/m", "length": "m", "damping": "N s/m"}
JOINT_TABLES = {"limits": ("lower", "upper", "velocity", "effort"), "mimic": ("multiplier", "offset")}
MODE_FIELDS = ("mass", "com", "inertia", "point")  # properties that the modes of a flexible body depend on

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module
Path: TypeAlias = tuple[str | int, ...]  # names of fields, indices and keys that lead to a number


@dataclass(frozen=True)
class ModelNumber:
    """A number of a mechanism that can become a parameter."""

    name: str
    group: str  # name for several numbers together
    value: Number
    unit: str
    paths: tuple[Path, ...]  # places of the number in the mechanism: two for a product of inertia


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
        for path in p.paths:
            mechanism = _with_number(mechanism, path, parameter(p.name, p.value, p.unit))
    _ = mechanism.parameters  # raises where a name has two meanings
    return mechanism


def _model_numbers(m: Mechanism) -> Iterator[ModelNumber]:
    yield from _field_numbers(m, "", (), {"gravity": "m/s^2"})
    for i, b in enumerate(m.bodies):
        yield from _field_numbers(b, b.name, ("bodies", i), BODY_FIELDS)
        for name, (k, l) in MOMENT_INDICES.items():
            group, paths = f"{b.name}.inertia", {("bodies", i, "inertia", *place) for place in ((k, l), (l, k))}
            yield ModelNumber(f"{group}.{name}", group, b.inertia[k][l], "kg m^2", tuple(paths))
    for i, j in enumerate(m.joints):
        yield from _field_numbers(j, j.name, ("joints", i), _joint_fields(j))
        for table, fields in JOINT_TABLES.items():
            held, group = getattr(j, table), f"{j.name}.{table}"
            finite = [what for what in fields if held is not None and abs(nominal(getattr(held, what))) < np.inf]
            for p in _field_numbers(held, group, ("joints", i, table), dict.fromkeys(finite, "")):
                yield replace(p, group=group)
    for f in m.frames.values():
        yield from _field_numbers(f, f.name, ("frames", f.name), {"point": "m"})
    for i, loop in enumerate(m.loops):
        yield from _field_numbers(loop, loop.name, ("loops", i), _loop_fields(loop))
    for i, spring in enumerate(m.springs):
        yield from _field_numbers(spring, spring.name, ("springs", i), SPRING_FIELDS)


def _joint_fields(j: Joint) -> dict[str, str]:
    """Return the fields of a joint that can be free, with their units."""
    directions = {"axis": j.kind not in ("spherical", "floating"), "second_axis": j.second_axis is not None}
    names = [name for name, exists in directions.items() if exists]
    return {"point": "m", **dict.fromkeys([*names, *JOINT_FIELDS, *(["pitch"] if j.kind == "helical" else [])], "")}


def _loop_fields(loop: Loop) -> dict[str, str]:
    return {"value": "", "offset": ""} if loop.kind in COUPLINGS else {"value": "m"} if loop.kind == "distance" else {}


def _field_numbers(part: Any, owner: str, path: Path, fields: Mapping[str, str]) -> Iterator[ModelNumber]:
    """Yield the numbers in some fields of a part; `fields` has their units."""
    for field, unit in fields.items():
        value, name = getattr(part, field), f"{owner}.{field}".removeprefix(".")
        if not isinstance(value, tuple):
            yield ModelNumber(name, "", value, unit, ((*path, field),))
            continue
        for k, c in enumerate("xyz"):
            yield ModelNumber(f"{name}.{c}", name, value[k], unit, ((*path, field, k),))


def _with_number(thing: Any, path: Path, x: Number) -> Any:
    """Return a copy of `thing` with the number `x` at the end of the path."""
    if not path:
        return x
    key: Any = path[0]
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{key: _with_number(getattr(thing, key), path[1:], x)})
    new = dict(thing) if isinstance(thing, Mapping) else list(thing)
    new[key] = _with_number(new[key], path[1:], x)
    return new if isinstance(new, dict) else tuple(new)
