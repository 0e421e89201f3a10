"""Whether everything that decides a graph is as the package's files have it.

A kernel is found on disk by what was asked for and by a digest of the package, without any tracing. That holds as long
as nothing else has a say: a method, joint type, quantity or closure of the user's own, or a function of the package
that was exchanged, can change without the package changing, and what such a function does is known only by running it.
Then the request is traced, and the code found by the text that came out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from bellcrank.dynamics import quantities
from bellcrank.dynamics.loops import rows
from bellcrank.dynamics.table import METHODS
from bellcrank.dynamics.table import SHIPPED as METHODS_SHIPPED
from bellcrank.model import joints, parts

ROOT = str(Path(__file__).resolve().parents[1]) + os.sep  # the package
NAME = __name__.partition(".")[0]
# What a traced function can reach: both towers up to here.
PARTS = ("build", "dynamics", "graph", "integrate", "model", "nodes", "parameters", "scalar", "spatial")
# The tables that people add to, and what they were when they were made.
TABLES: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = (
    (METHODS, METHODS_SHIPPED),
    (quantities.QUANTITIES, quantities.SHIPPED),
    (rows.CLOSURES, rows.SHIPPED),
    (joints.KINDS, joints.SHIPPED),
    (parts.EQUATIONS, parts.SHIPPED),
)
_fine: set[FunctionType] = set()  # that were looked at already


def untouched() -> bool:
    """Whether the tables have the rows they were made with, and the package's modules their own functions."""
    same = all(now.keys() == then.keys() and all(now[key] is then[key] for key in then) for now, then in TABLES)
    return same and all(f in _fine or _known(f) for module in _modules() for f in _functions(module))


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
