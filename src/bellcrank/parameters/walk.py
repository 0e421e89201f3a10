"""Expressions inside of things: parts of a mechanism, tuples, arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from bellcrank.parameters.free import FREE, Free

# Most of what is met by far: asked for first, for every part of every mechanism is walked through more than once.
LEAVES = frozenset({float, int, bool, str, bytes, type(None), np.float64})


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


@cache
def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What reads all fields of a dataclass at once."""
    names = _names(kind) or ()
    return operator.attrgetter(*names) if len(names) > 1 else lambda thing: tuple(getattr(thing, x) for x in names)


def replaced(thing: Any, function: Callable[[Free], Any]) -> Any:
    """A part, a tuple, an array or a number, with every expression in it replaced; itself where there is none."""
    kind: Any = type(thing)
    if not FREE.alive and kind is not np.ndarray and not isinstance(thing, Mapping):
        return thing  # of a hundred thousand parts none is walked through where nothing is free
    if kind in LEAVES or (kind is tuple and LEAVES.issuperset(map(type, thing))):
        return thing
    if isinstance(thing, Free):
        return function(thing)
    if isinstance(thing, tuple | list):
        new = [x if type(x) in LEAVES else replaced(x, function) for x in thing]
        return thing if all(map(operator.is_, new, thing)) else type(thing)(new)
    if isinstance(thing, np.ndarray):
        return np.array(replaced(thing.tolist(), function)) if thing.dtype == object else thing
    names = _names(kind)
    if names is not None:
        return _with_fields(thing, kind, names, function)
    if isinstance(thing, Mapping):
        return {key: replaced(x, function) for key, x in thing.items()}
    return thing


def _with_fields(thing: Any, kind: Any, names: Sequence[str], function: Callable[[Free], Any]) -> Any:
    """The same for a dataclass, field by field."""
    old = _values(kind)(thing)
    if LEAVES.issuperset(map(type, old)):
        return thing
    new = [x if type(x) in LEAVES else replaced(x, function) for x in old]
    return thing if all(map(operator.is_, new, old)) else kind(**dict(zip(names, new, strict=True)))


def nominal(thing: Any) -> Any:
    """The same with nominal values. For checks, sizes and choices that are right whatever the parameters are."""
    return replaced(thing, lambda x: x.value)


def expressions(*things: Any) -> Iterator[Free]:
    """All that are in parts, tuples and arrays."""
    found: list[Free] = []

    def note(x: Free) -> Free:
        found.append(x)
        return x

    for thing in things:
        replaced(thing, note)
    yield from found


def depends(*things: Any) -> bool:
    """Whether anything there depends on a parameter."""
    return next(expressions(*things), None) is not None
