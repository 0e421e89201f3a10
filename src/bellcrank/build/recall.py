"""What is found again on disk by what was asked for, without any tracing; and whether that may be.

It holds as long as everything that decides a graph is as the package's files have it, whose digest is part of the key.
A method, joint type, quantity or closure of the user's own, or a function of the package that was exchanged, can change
without the package changing, and what such a function does is known only by running it. Then the request is traced, and
the code found by the text that came out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from bellcrank import plugins
from bellcrank.build.graphs import Request, check, chosen, considered, fits, rolls
from bellcrank.dynamics import METHODS, Method, immobility, quantities, quantity
from bellcrank.dynamics.loops import rows
from bellcrank.dynamics.table import SHIPPED as METHODS_SHIPPED
from bellcrank.emit import cache as store
from bellcrank.emit.cpu.host import host
from bellcrank.model import Mechanism, joints, parts

ROOT = str(Path(__file__).resolve().parents[1]) + os.sep  # the package
NAME = __name__.partition(".")[0]
# What a traced function can reach: both towers up to here.
PARTS = ("build", "dynamics", "graph", "integrate", "jets", "model", "nodes", "parameters", "scalar", "spatial")
# The tables that people add to, and what they were when they were made.
TABLES: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    ("method", METHODS, METHODS_SHIPPED),
    ("quantity", quantities.QUANTITIES, quantities.SHIPPED),
    ("closure", rows.CLOSURES, rows.SHIPPED),
    ("joint", joints.KINDS, joints.SHIPPED),
)
_fine: set[FunctionType] = set()  # that were looked at already
_looked: dict[str, list[tuple[Any, list[Any], list[int]]]] = {}  # by module: itself, its classes, and what they had


def untouched() -> bool:
    """Whether the tables have the rows they were made with, and those of installed packages (whose sources are part of
    the key), and the package's modules their own functions.
    """
    counts = {name: len(row[0]) for (kind, name), row in plugins.rows.items() if kind == "closure"}
    same = all(_as_made(*table) for table in TABLES) and {**parts.SHIPPED, **counts} == parts.EQUATIONS
    return same and all(_unchanged(module) or _fine_now(module) for module in _modules())


def _unchanged(module: ModuleType) -> bool:
    """Whether it has the very objects that it had when it was looked at: a tenth of the time that a look takes."""
    before = _looked.get(module.__name__, [])
    return bool(before) and all(list(map(id, vars(x).values())) == ids for x, _, ids in before)


def _fine_now(module: ModuleType) -> bool:
    if not all(f in _fine or _known(f) for f in _functions(module)):
        return False
    parts = [module, *(x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__)]
    held = [(x, list(vars(x).values())) for x in parts]  # held, so that nothing else gets their places in memory
    _looked[module.__name__] = [(x, values, list(map(id, values))) for x, values in held]
    return True


def _as_made(kind: str, now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    expected = {**then, **{name: row for (of, name), row in plugins.rows.items() if of == kind}}
    return now.keys() == expected.keys() and all(now[key] is expected[key] for key in expected)


def key() -> tuple[str, ...]:
    """What of a request's key is not the request: the sources of installed packages that add to the tables."""
    return (plugins.fingerprint(),) if plugins.packages else ()


def _known(f: FunctionType) -> bool:
    """Python's, numpy's, or of our files; dataclasses write some of ours at run time. A wrapper takes over the name of
    the module, but not the file.
    """
    top, file = str(f.__module__).partition(".")[0], f.__code__.co_filename
    if top == NAME:
        known = file.startswith(ROOT) or file == "<string>"
    else:
        known = top == "numpy" or top in sys.stdlib_module_names
    if known:
        _fine.add(f)
    return known


def _modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        package, _, rest = name.partition(".")
        if package == NAME and rest.partition(".")[0] in PARTS and module is not None:
            yield module


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Those of a module, and those of the classes it defines."""
    for value in list(vars(module).values()):
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for name, inner in list(vars(value).items()):
                if isinstance(inner, FunctionType) and name != "__repr__":
                    yield inner


_methods: dict[str, str] = {}  # methods by their keys, so that a second look is not at the disk


def method_for(mechanism: Mechanism, request: Request) -> Method:
    """The method that graphs.chosen takes on this computer."""
    check(mechanism, request)
    if quantity(request.quantity).inverts:
        immobility.check(mechanism)
    able = considered(mechanism, request)
    if len(able) == 1 and rolls(mechanism, request, able[0]):
        return able[0]
    if len(able) == 1:
        fits(mechanism, request.quantity, able[0])
        return able[0]
    if not untouched():
        return chosen(mechanism, request)[0]
    h, asked = host(), json.dumps(asdict(request))
    here = (h.cpu, h.features, h.llvm, store.package_fingerprint(), *key())
    name = store.key("method", mechanism.fingerprint, asked, *here)
    if name not in _methods:
        if (found := store.load(f"{name}.json")) is not None:
            _methods[name] = str(json.loads(found))
        else:
            _methods[name] = chosen(mechanism, request)[0].name
            store.save(f"{name}.json", json.dumps(_methods[name]).encode())
    return METHODS[_methods[name]]
