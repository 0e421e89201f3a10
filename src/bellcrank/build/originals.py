"""Whether everything that decides a graph is as the package's files have it: tables, functions and classes.

Only then is a kernel found by what was asked for (kernels.py). Whatever else can be called in their place (a partial,
an instance, a mock) is noticed as well as a function, for nobody knows what it does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from bellcrank import plugins
from bellcrank.model import parts

ROOT = str(Path(__file__).resolve().parents[1]) + os.sep  # the package
NAME = __name__.partition(".")[0]
# What a traced function can reach: both towers up to here.
PARTS = ("build", "dynamics", "graph", "integrate", "jets", "model", "nodes", "parameters", "scalar", "spatial")
# The tables that people add to, and where they are, beside what they were when they were made.
TABLES = {
    "method": ("dynamics.table", "METHODS"),
    "quantity": ("dynamics.quantities", "QUANTITIES"),
    "closure": ("dynamics.loops.rows", "CLOSURES"),
    "joint": ("model.joints", "KINDS"),
}
ALIASES = ("collections.abc", "types", "typing")  # of types, which can be called, too
CACHED = type(cache(len))
_fine: set[Any] = set()  # that were looked at already
_looked: dict[str, list[tuple[Any, list[Any], list[int]]]] = {}  # by module: itself, its classes, and what they had


def untouched() -> bool:
    """Whether the tables have the rows they were made with, and those of installed packages (whose sources are part of
    the key), and the package's modules their own functions.
    """
    counts = {name: len(row[0]) for (kind, name), row in plugins.rows.items() if kind == "closure"}
    tables = all(_as_made(kind, *place) for kind, place in TABLES.items())
    same = tables and {**parts.SHIPPED, **counts} == parts.EQUATIONS
    return same and all(_unchanged(module) or _fine_now(module) for module in _modules())


def _unchanged(module: ModuleType) -> bool:
    """Whether it has the very objects that it had when it was looked at: a tenth of the time that a look takes."""
    before = _looked.get(module.__name__, [])
    return bool(before) and all(list(map(id, vars(x).values())) == ids for x, _, ids in before)


def _fine_now(module: ModuleType) -> bool:
    if not all(map(_known, _functions(module))):
        return False
    parts = [module, *(x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__)]
    held = [(x, list(vars(x).values())) for x in parts]  # held, so that nothing else gets their places in memory
    _looked[module.__name__] = [(x, values, list(map(id, values))) for x, values in held]
    return True


def _as_made(kind: str, module: str, attribute: str) -> bool:
    """A table that nobody has loaded yet is."""
    if f"{NAME}.{module}" not in sys.modules:
        return True
    found = import_module(f"{NAME}.{module}")  # which waits where another thread is loading it
    now, then = getattr(found, attribute), found.SHIPPED
    expected = {**then, **{name: row for (of, name), row in plugins.rows.items() if of == kind}}
    return now.keys() == expected.keys() and all(now[key] is expected[key] for key in expected)


def sources() -> tuple[str, ...]:
    """What of a request's key is not the request: the sources of installed packages that add to the tables."""
    return (plugins.fingerprint(),) if plugins.packages else ()


def _known(f: Any) -> bool:
    """Python's, numpy's, or of our files; dataclasses write some of ours at run time. A wrapper takes over the name of
    the module, but not the file.
    """
    if isinstance(f, CACHED):
        return _known(f.__wrapped__)
    if not isinstance(f, FunctionType | type):
        return isinstance(f, BuiltinFunctionType | np.ufunc) or type(f).__module__ in ALIASES
    if f in _fine:
        return True
    top = str(f.__module__).partition(".")[0]
    if top != NAME:
        known = top == "numpy" or top in sys.stdlib_module_names
    else:
        known = isinstance(f, type) or f.__code__.co_filename.startswith(ROOT) or f.__code__.co_filename == "<string>"
    if known:
        _fine.add(f)
    return known


def _modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        package, _, rest = name.partition(".")
        if package == NAME and rest.partition(".")[0] in PARTS and module is not None:
            yield module


def _functions(module: ModuleType) -> Iterator[Any]:
    """What can be called of a module, and the functions of the classes it defines."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name, inner in list(vars(value).items()):
                if name not in ("__repr__", "__new__"):  # the latter of tuples, by Python
                    yield from _within(inner)
        elif callable(value):
            yield value


def _within(inner: Any) -> Iterator[Any]:
    """What of a class computes."""
    if isinstance(inner, property):
        inner = inner.fget
    elif isinstance(inner, staticmethod | classmethod):
        inner = inner.__func__
    elif isinstance(inner, cached_property):
        inner = inner.func
    if callable(inner) and not isinstance(inner, type):
        yield inner
