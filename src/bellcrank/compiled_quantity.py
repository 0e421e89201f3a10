"""Compiled quantities: attributes of a mechanism, compiled on first access and plain functions from then on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from bellcrank.lazy_import import lazy_import

Function = TypeVar("Function", bound=Callable[..., Any])
# Mechanisms, and the names of their compiled quantities.
_compiled_names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_compiled_names_lock = Lock()  # held while _compiled_names is changed or traversed
_discard_count = [0]  # number of times that compiled quantities were discarded


class CompiledQuantity:
    """Descriptor of a quantity: the compiled kernel on a mechanism, the documented function on the class.

    The kernel is created by build/kernels.py.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, mechanism: Any, owner: type | None = None) -> Callable[..., Any]:
        if mechanism is None:
            return self.function
        name = self.function.__name__
        kernel_function: Callable[..., Any] = lazy_import("build.kernels:bound")(mechanism, name)
        mechanism.__dict__[name] = kernel_function  # the next access is a plain dictionary look-up
        with _compiled_names_lock:
            _compiled_names.setdefault(mechanism, set()).add(name)
        return kernel_function


def compiled_quantity(function: Function) -> Function:
    """Mark the method `function` as a compiled quantity; type checkers see its declared signature."""
    return cast(Function, CompiledQuantity(function))


def discard_compiled() -> None:
    """Discard the compiled quantities of all mechanisms, because something that determines their code has changed."""
    with _compiled_names_lock:
        for mechanism, names in list(_compiled_names.items()):
            for name in names:
                mechanism.__dict__.pop(name, None)
        _compiled_names.clear()
        _discard_count[0] += 1


def discard_count() -> int:
    """Return the number of calls of `discard_compiled`: anything compiled at another count is out of date."""
    return _discard_count[0]
