"""Expressions inside of things: parts of a mechanism, tuples, arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from bellcrank.parameters.free import Free

PLAIN = {float, int, str, bool, type(None), np.float64}  # what most things are made of: nothing to look into


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Of a dataclass; of anything else none."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def replaced(thing: Any, function: Callable[[Free], Any]) -> Any:
    """A part, a tuple, an array or a number, with every expression in it replaced; itself where there is none."""
    if type(thing) in PLAIN:
        return thing
    if isinstance(thing, Free):
        return function(thing)
    if isinstance(thing, tuple | list):
        new = [replaced(x, function) for x in thing]
        return thing if all(a is b for a, b in zip(new, thing, strict=True)) else type(thing)(new)
    if isinstance(thing, Mapping):
        return {key: replaced(x, function) for key, x in thing.items()}
    if isinstance(thing, np.ndarray) and thing.dtype == object:
        return np.array(replaced(thing.tolist(), function))
    if names := _fields(thing.__class__):
        old = {name: getattr(thing, name) for name in names}
        new_fields = {name: replaced(x, function) for name, x in old.items()}
        return thing if all(new_fields[k] is x for k, x in old.items()) else type(thing)(**new_fields)
    return thing


def nominal(thing: Any) -> Any:
    """The same with nominal values. For checks, sizes and choices that are right whatever the parameters are."""
    return replaced(thing, lambda x: x.value)


def expressions(*things: Any) -> Iterator[Free]:
    """All that are in parts, tuples and arrays."""
    stack = list(reversed(things))
    while stack:
        thing = stack.pop()
        if type(thing) in PLAIN:
            continue
        if isinstance(thing, Free):
            yield thing
        elif isinstance(thing, tuple | list):
            stack += reversed(thing)
        elif isinstance(thing, Mapping):
            stack += reversed(list(thing.values()))
        elif isinstance(thing, np.ndarray):
            stack += reversed(thing.tolist()) if thing.dtype == object and thing.ndim else ()
        else:
            stack += [getattr(thing, name) for name in reversed(_fields(thing.__class__))]


def depends(*things: Any) -> bool:
    """Whether anything there depends on a parameter."""
    return next(expressions(*things), None) is not None
