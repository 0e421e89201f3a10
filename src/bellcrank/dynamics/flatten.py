"""Flattening of nested structures (vectors, matrices, dataclasses) into numbers, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def flatten(thing: Any) -> Iterator[Any]:
    """Yield the numbers in the structure `thing`, always in the same order; strings and None are skipped."""
    if is_dataclass(thing):
        for f in fields(thing):
            yield from flatten(getattr(thing, f.name))
    elif isinstance(thing, tuple | list):
        for x in thing:
            yield from flatten(x)
    elif not (thing is None or isinstance(thing, str)):
        yield thing


def unflatten(thing: Any, numbers: Iterator[Any]) -> Any:
    """Return a structure like `thing` with other `numbers`."""
    if is_dataclass(thing):
        return type(thing)(*(unflatten(getattr(thing, f.name), numbers) for f in fields(thing)))  # type: ignore[misc]
    if isinstance(thing, tuple | list):
        return type(thing)(unflatten(x, numbers) for x in thing)
    return thing if thing is None or isinstance(thing, str) else next(numbers)
