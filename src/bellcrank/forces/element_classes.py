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

from bellcrank.actuators.actuator import is_known
from bellcrank.forces.element import Element
from bellcrank.parameters import Free
from bellcrank.scalar import Scalar

PLACEMENT_FIELDS = ("name", "a", "b", "joints")  # element fields that define where it acts, not its law
NUMBER_ANNOTATIONS = ("Scalar", "Six")  # annotations of numbers that may be free parameters
EXCLUDED_ANNOTATIONS = ("Callable", "Mapping", "|")


def class_key(e: Element) -> Hashable:
    """Return the class key of element `e`: equal keys mark elements that may share code."""
    if not _is_package_part(e):
        return "only", id(e)
    return _structure_key(e), tuple(_foldable_value(x) for x in varying_numbers(e))


def varying_numbers(part: Any) -> list[Scalar]:
    """Return the numbers of `part` that may differ within its class, always in the same order."""
    numbers: list[Scalar] = []
    for f in _searched_fields(part):
        value = getattr(part, f.name)
        numbers += _flatten(value) if _holds_numbers(f) else varying_numbers(value)
    return numbers


def replace_numbers(part: Any, values: Iterator[Scalar]) -> Any:
    """Return a copy of `part` whose numbers are taken in order from `values`."""
    changed: dict[str, Any] = {}
    for f in _searched_fields(part):
        value = getattr(part, f.name)
        if _holds_numbers(f):
            changed[f.name] = _refill(value, values)
        elif _is_package_part(value):
            changed[f.name] = replace_numbers(value, values)
    return replace(part, **changed) if changed else part


def may_hide_parameters(part: Any) -> bool:
    """Return whether `part` may contain free numbers that `varying_numbers` does not list, as inside a function."""
    if not _is_package_part(part):
        return callable(part) or is_dataclass(part) or isinstance(part, Free)
    return any(may_hide_parameters(getattr(part, f.name)) for f in _searched_fields(part) if not _holds_numbers(f))


def _structure_key(part: Any) -> Hashable:
    """Return a key for everything in a part of this package except its numbers and the place where it acts."""
    key_parts: list[Any] = [type(part)]
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(part, Element) and f.name in PLACEMENT_FIELDS:
            key_parts.append(len(value) if f.name == "joints" else None)
        elif _holds_numbers(f):
            key_parts.append(len(list(_flatten(value))))
        else:
            key_parts.append(_structure_key(value) if _is_package_part(value) else _equality_key(value))
    return tuple(key_parts)


def _searched_fields(part: Any) -> list[Field[Any]]:
    """Return the fields that are searched for numbers."""
    if not _is_package_part(part):
        return []
    return [f for f in fields(part) if not (isinstance(part, Element) and f.name in PLACEMENT_FIELDS)]


def _is_package_part(part: Any) -> bool:
    plain = is_dataclass(part) and not isinstance(part, type)
    return plain and type(part).__module__.startswith("bellcrank.forces.")


def _holds_numbers(f: Field[Any]) -> bool:
    annotation = str(f.type)
    is_excluded = any(word in annotation for word in EXCLUDED_ANNOTATIONS)
    return any(word in annotation for word in NUMBER_ANNOTATIONS) and not is_excluded


def _equality_key(value: Any) -> Hashable:
    """Return a key that is equal for equal values; a value that cannot be hashed equals only itself."""
    if isinstance(value, Mapping):
        return tuple((key, _equality_key(x)) for key, x in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_equality_key, value))
    try:
        hash(value)
    except TypeError:
        return "only", id(value)
    return type(value), value


def _foldable_value(x: Scalar) -> Scalar:
    """Return the value that the tracer may fold or branch on, otherwise a fixed placeholder."""
    return x if is_known(x) and (x in (0.0, 1.0, -1.0) or not math.isfinite(x)) else 9.0


def _flatten(value: Any) -> Iterator[Scalar]:
    if isinstance(value, Sequence):
        for x in value:
            yield from _flatten(x)
    else:
        yield value


def _refill(value: Any, values: Iterator[Scalar]) -> Any:
    if isinstance(value, Sequence):
        return tuple(_refill(x, values) for x in value)
    return next(values)
