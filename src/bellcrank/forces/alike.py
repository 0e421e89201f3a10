"""Force elements that are alike: of one class, with the same functions, and 0, 1 and -1 at the same places.

What may differ is what a part leaves open to be free (docs/parameters.md): fields whose annotations say Scalar, also
those of shapes. Elements of other people's classes may read their names, or what is no field: each is its own kind.
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

PLACES = ("name", "a", "b", "joints")  # of an element: they say where it acts, not how
OPEN = ("Scalar", "Six")  # words of annotations that mean numbers which may be free
OTHER = ("Callable", "Mapping", "|")


def kind(e: Element) -> Hashable:
    """Equal for those that are alike."""
    if not _shipped(e):
        return "only", id(e)
    return _shape(e), tuple(_folded(x) for x in numbers(e))


def numbers(part: Any) -> list[Scalar]:
    """What may differ between those of a kind, always in the same order."""
    return list(_numbers(part))


def with_numbers(part: Any, values: Iterator[Scalar]) -> Any:
    """The same with other numbers."""
    changed: dict[str, Any] = {}
    for f in _fields(part):
        value = getattr(part, f.name)
        if _open(f):
            changed[f.name] = _filled(value, values)
        elif _shipped(value):
            changed[f.name] = with_numbers(value, values)
    return replace(part, **changed) if changed else part


def hides(part: Any) -> bool:
    """Whether free numbers may be in it that are none of `numbers`: in a function, say."""
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
    """All of a part of ours but its numbers and its place."""
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
    """Those that are looked into."""
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
    """Equal for what is equal; what cannot say whether it is, is only like itself."""
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
    """What code may branch on, or folds away."""
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
