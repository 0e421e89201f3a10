"""Expressions inside of things: parts of a mechanism, tuples, arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bellcrank.parameters.free import Free


def replaced(thing: Any, function: Callable[[Free], Any]) -> Any:
    """A part, a tuple, an array or a number, with every expression in it replaced; itself where there is none."""
    if isinstance(thing, Free):
        return function(thing)
    if isinstance(thing, tuple | list):
        new = [replaced(x, function) for x in thing]
        return thing if all(a is b for a, b in zip(new, thing, strict=True)) else type(thing)(new)
    if isinstance(thing, Mapping):
        return {key: replaced(x, function) for key, x in thing.items()}
    if isinstance(thing, np.ndarray) and thing.dtype == object:
        return np.array(replaced(thing.tolist(), function))
    if is_dataclass(thing) and not isinstance(thing, type):
        old = {f.name: getattr(thing, f.name) for f in fields(thing)}
        new_fields = {name: replaced(x, function) for name, x in old.items()}
        return thing if all(new_fields[k] is x for k, x in old.items()) else type(thing)(**new_fields)
    return thing


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
