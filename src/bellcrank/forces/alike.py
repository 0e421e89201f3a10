"""Grouping of identical force elements into classes that share one loop of code.

Two elements belong to one class if they have the same type, the same functions, and 0, 1 and -1 at the same places,
because the tracer folds these constants. They may differ in every number that a part allows to be a free parameter
(docs/parameters.md): fields annotated as Scalar, including those of shapes. An element of a user-defined class is a
class of its own, because its code may depend on its name or on data that are not fields.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

from bellcrank.actuators.actuator import known
from bellcrank.forces.element import Element
from bellcrank.parameters import Free
from bellcrank.scalar import Scalar

PLACES = ("name", "a", "b", "joints")  # element fields that define where it acts, not its law
OPEN = ("Scalar", "Six")  # annotations of numbers that may be free parameters
OTHER = ("Callable", "Mapping", "|")


def kind(e: Element) -> Hashable:
    """Return the class key of element `e`: equal keys mark elements that may share code."""
    if not _shipped(e):
        return "only", id(e)
    return _shape(e), tuple(_folded(x) for x in numbers(e))


def numbers(part: Any) -> list[Scalar]:
    """Return the numbers of `part` that may differ within its class, always in the same order."""
    return list(_numbers(part))


def with_numbers(part: Any, values: Iterator[Scalar]) -> Any:
    """Return a copy of `part` whose numbers are taken in order from `values`."""
    changed: dict[str, Any] = {}
    for f in _fields(part):
        value = getattr(part, f.name)
        if _open(f):
            changed[f.name] = _filled(value, values)
        elif _shipped(value):
            changed[f.name] = with_numbers(value, values)
    return replace(part, **changed) if changed else part


def hides(part: Any) -> bool:
    """Return whether `part` may contain free numbers that `numbers` does not list, for example inside a function."""
    if not _shipped(part):
        return callable(part) or is_dataclass(part) or isinstance(part, Free)
    return any(hides(getattr(part, f.name)) for f in _fields(part) if not _open(f))


def _numbers(part: Any) -> Iterator[Scalar]:
    for f in _fields(part):
        value = getattr(part, f.name)
        if _open(f):
            yield from _leaves(value)
        elif _shipped(value):
            yield from _numbers(value)


def _shape(part: Any) -> Hashable:
    """Return a key for everything in a part of this package except its numbers and the place where it acts."""
    found: list[Any] = [type(part)]
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(part, Element) and f.name in PLACES:
            found.append(len(value) if f.name == "joints" else None)
        elif _open(f):
            found.append(len(list(_leaves(value))))
        else:
            found.append(_shape(value) if _shipped(value) else _same(value))
    return tuple(found)


def _fields(part: Any) -> list[Field[Any]]:
    """Return the fields that are searched for numbers."""
    if not _shipped(part):
        return []
    return [f for f in fields(part) if not (isinstance(part, Element) and f.name in PLACES)]


def _shipped(part: Any) -> bool:
    plain = is_dataclass(part) and not isinstance(part, type)
    return plain and type(part).__module__.startswith("bellcrank.forces.")


def _open(f: Field[Any]) -> bool:
    said = str(f.type)
    return any(word in said for word in OPEN) and not any(word in said for word in OTHER)


def _same(value: Any) -> Hashable:
    """Return a key that is equal for equal values; a value that cannot be hashed equals only itself."""
    if isinstance(value, Mapping):
        return tuple((key, _same(x)) for key, x in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_same, value))
    try:
        hash(value)
    except TypeError:
        return "only", id(value)
    return type(value), value


def _folded(x: Scalar) -> Scalar:
    """Return the value that the tracer may fold or branch on, otherwise a fixed placeholder."""
    return x if known(x) and (x in (0.0, 1.0, -1.0) or not math.isfinite(x)) else 9.0


def _leaves(value: Any) -> Iterator[Scalar]:
    if isinstance(value, Sequence):
        for x in value:
            yield from _leaves(x)
    else:
        yield value


def _filled(value: Any, values: Iterator[Scalar]) -> Any:
    if isinstance(value, Sequence):
        return tuple(_filled(x, values) for x in value)
    return next(values)
