"""Imports on demand: calls from lower to higher layers, compiled quantities, and optional dependencies.

Methods that draw or compile load their modules on first use. A graph thus needs no import of its drawing code, nor a
mechanism of the compiler. `UPWARD_CALLS` lists all of these calls; tests/tools/test_layers.py compares it with the
sources.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from bellcrank.errors import InputError

# The called function, or module, and the modules that call it.
UPWARD_CALLS: dict[str, tuple[str, ...]] = {
    # the mechanism: its loops, and its compiled quantities
    "dynamics.loops:assemble": ("model.mechanism",),
    "dynamics.loops:analysis": ("model.mechanism",),
    "build.kernels:bound": ("lazy_import",),
    "dynamics.quantities:class_function": ("lazy_import",),
    # derivatives of a kernel are kernels
    "build.function_compilation:compile_alike": ("emit.cpu.kernel",),
    # a schedule that is run by threads
    "build.scheduled_kernels:schedule_kernel": ("scheduling.timetable",),
    # packages that extend bellcrank, and the digest of their files
    "registration:register_entry": ("plugins",),
    "emit.cache": ("plugins",),
    # pictures and pages
    "view.graph_picture:svg": ("graph.graph",),
    "view.mechanism_picture:animated_svg": ("record.record",),
    "view.notebook:count": ("graph.graph",),
    "view.notebook:graph": ("graph.graph",),
    "view.notebook:mechanism": ("model.mechanism",),
    "view.notebook:poles": ("sim.linear.linearisation",),
    "view.notebook:record": ("record.record",),
    "view.notebook:schedule": ("scheduling.timetable",),
    "view.record_page:html": ("record.record",),
    "view.record_page:plot": ("record.record",),
    "view.schedule_picture:html": ("scheduling.timetable",),
    "view.schedule_picture:svg": ("scheduling.timetable",),
}


def lazy_import(target: str) -> Any:
    """Import `target`, "module:function" of UPWARD_CALLS, and return the function; without a function, the module."""
    module, _, function = target.partition(":")
    loaded = importlib.import_module(f"bellcrank.{module}")
    return getattr(loaded, function) if function else loaded


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


PACKAGE_OF_MODULE = {"skfem": "scikit-fem"}  # module names that differ from the package name


def optional_import(module: str, group: str, purpose: str) -> Any:
    """Import an optional module, or raise InputError with the command that installs it.

    Parameters
    ----------
    module
        Dotted name of the module.
    group
        Extra of the bellcrank package that installs it.
    purpose
        The feature that needs it, for the message.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        package = PACKAGE_OF_MODULE.get(package, package)
        raise InputError(
            f"{purpose} needs {package}, which cannot be imported ({error}). "
            f'Install it: pip install "bellcrank[{group}]" (or pip install {package}).'
        ) from None
