"""Lazy imports: methods that draw or compile load their modules on first use.

These are the only imports from lower to higher layers. A graph thus needs no import of its drawing code, nor a
mechanism of the compiler: the quantities of a mechanism are compiled on first access and are plain attributes from then
on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

Function = TypeVar("Function", bound=Callable[..., Any])
_made: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # mechanisms, and the names of their compiled quantities
_noting = Lock()  # held while _made is changed or traversed
_times = [0]  # number of times that compiled quantities were discarded


def above(name: str) -> Any:
    """Import the module or subpackage `name` of bellcrank and return it."""
    return import_module(f"bellcrank.{name}")


def view(name: str) -> Any:
    """Import the module `name` of bellcrank.view and return it."""
    return above(f"view.{name}")


class Compiled:
    """Descriptor of a quantity: the compiled kernel on a mechanism, the documented function on the class.

    The kernel is created by build/kernels.py.
    """

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
    """Mark the method `function` as a compiled quantity; type checkers see its declared signature."""
    return cast(Function, Compiled(function))


def forget() -> None:
    """Discard the compiled quantities of all mechanisms, because something that determines their code has changed."""
    with _noting:
        for mechanism, names in list(_made.items()):
            for name in names:
                mechanism.__dict__.pop(name, None)
        _made.clear()
        _times[0] += 1


def forgotten() -> int:
    """Return the number of calls of `forget`: anything compiled at another count is out of date."""
    return _times[0]
