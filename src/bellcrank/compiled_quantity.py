"""Compiled quantities: attributes of a mechanism, compiled on first access and plain functions from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from bellcrank.lazy_import import lazy_import

# Mechanisms, and the names of their compiled quantities.
_compiled_names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_compiled_names_lock = Lock()  # held while _compiled_names is changed or traversed
_discard_count = [0]  # number of times that compiled quantities were discarded


class CompiledQuantity:
    """Descriptor of a quantity: the compiled kernel on a mechanism, a documented function on the class.

    The kernel is created by build/kernels.py.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, mechanism: Any, owner: type | None = None) -> Callable[..., Any]:
        if mechanism is None:
            return self.class_function
        kernel_function: Callable[..., Any] = lazy_import("build.kernels:bound")(mechanism, self.name)
        mechanism.__dict__[self.name] = kernel_function  # the next access is a plain dictionary look-up
        with _compiled_names_lock:
            _compiled_names.setdefault(mechanism, set()).add(self.name)
        return kernel_function

    @cached_property
    def class_function(self) -> Callable[..., Any]:
        """Function with the signature and the text of the quantity, for help() and calls on the class."""
        function: Callable[..., Any] = lazy_import("dynamics.quantities:class_function")(self.name)
        return function


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
