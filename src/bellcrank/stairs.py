"""The stairs up: what can be drawn or compiled says so in a method, and only a call loads anything up there.

The one import that points upwards, and the reason why a graph need not know how it looks, nor a mechanism how it is
compiled: its quantities are machine code, made when first asked for, and plain attributes from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

Function = TypeVar("Function", bound=Callable[..., Any])
_made: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # mechanisms, and what they have of it
_noting = Lock()  # held while _made changes, or is gone through
_times = [0]  # that what was compiled was forgotten


def above(name: str) -> Any:
    """A file or a room of the package."""
    return import_module(f"bellcrank.{name}")


def view(name: str) -> Any:
    """A file of view/."""
    return above(f"view.{name}")


class Compiled:
    """Of a mechanism the kernel's own entry (build/kernels.py); of the class the function that documents it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, mechanism: Any, owner: type | None = None) -> Callable[..., Any]:
        if mechanism is None:
            return self.function
        name = self.function.__name__
        found: Callable[..., Any] = above("build.kernels").bound(mechanism, name)
        mechanism.__dict__[name] = found  # the next access is a plain dictionary look-up
        with _noting:
            _made.setdefault(mechanism, set()).add(name)
        return found


def compiled(function: Function) -> Function:
    """Lets a method be compiled; for a type checker it stays what is written."""
    return cast(Function, Compiled(function))


def forget() -> None:
    """All mechanisms compile anew what they are asked for: what decides it has changed."""
    with _noting:
        for mechanism, names in list(_made.items()):
            for name in names:
                mechanism.__dict__.pop(name, None)
        _made.clear()
        _times[0] += 1


def forgotten() -> int:
    """Return how often `forget` was called: what was made before another count is out of date."""
    return _times[0]
