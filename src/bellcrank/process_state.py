"""State of the process: time of the import, evaluation once per process, and what a fork must leave in order.

A child process must not inherit locks that other threads hold. Before a fork we wait until no thread is inside LLVM or
imports a module that a kernel may need, so that the child finds both in a consistent state; afterwards both sides
continue. A fork may therefore wait for a compilation in another thread. State that a child must create again (pools,
thread teams, locks of objects) is registered where it is defined.
"""

from __future__ import annotations

import _imp
import concurrent.futures.thread  # noqa: F401  # it and logging register fork handlers on import, which must not happen during a fork
import importlib._bootstrap as _bootstrap
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar

IMPORT_TIME_NS = time.time_ns()  # source files written later may differ from the code in memory
Function = TypeVar("Function", bound=Callable[..., Any])
# One lock for all functions, so that the fork handlers can wait for it; re-entrant.
EVALUATION_LOCK = threading.RLock()


def evaluated_once(function: Function) -> Function:
    """Decorate a `function` to run once for the same positional arguments; other threads wait for its value.

    functools.cache calls its function in every thread that arrives before the first value is stored. All but the last
    value are then dropped, which is harmless for numbers and texts, but fatal if other code already holds the address
    of memory that the dropped value owned. If the function raises, the next call tries again. Its value must not be
    None.
    """
    values: dict[tuple[Any, ...], Any] = {}

    @wraps(function)
    def evaluate(*args: Any) -> Any:
        if (value := values.get(args)) is None:
            with EVALUATION_LOCK:
                if (value := values.get(args)) is None:
                    value = values[args] = function(*args)
        return value

    return evaluate  # type: ignore[return-value]


def syntax_tree(text: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a `text`, as ast.parse does; `mode` "eval" is for one expression.

    CPython 3.11 and 3.12 count the depth of trees for all threads of an interpreter together. Two threads that parse at
    the same time may therefore raise a SystemError, "AST constructor recursion depth mismatch".
    """
    import ast  # imported here because `import bellcrank` needs no parser

    with EVALUATION_LOCK:
        return ast.parse(text, mode=mode)


# Modules that a child may need; user modules are excluded: their import may never end.
GUARDED_MODULES = {"bellcrank", "llvmlite", "numpy", *sys.stdlib_module_names}
_held_locks: list[Any] = []  # accessed only by the thread that holds these locks


def _importing() -> bool:
    """Return true if another thread is importing a module that a child might need."""
    me = threading.get_ident()
    for name, reference in list(getattr(_bootstrap, "_module_locks", {}).items()):
        lock = reference()
        if lock is not None and name.partition(".")[0] in GUARDED_MODULES and lock.owner not in (None, me):
            return True
    return False


def _before() -> None:
    while True:
        EVALUATION_LOCK.acquire()  # first, as in functions that are evaluated once, which use LLVM and import modules
        ffi = sys.modules.get("llvmlite.binding.ffi")
        lock = getattr(getattr(ffi, "lib", None), "_lock", None)  # re-entrant: this thread may hold it already
        if lock is not None:
            lock.__enter__()
        _imp.acquire_lock()  # no import can begin
        if not _importing():
            _held_locks.append(lock)
            return
        _release(lock)  # the importing thread may need it
        time.sleep(1e-3)


def _after() -> None:
    if _held_locks:  # unless an interrupt came first
        _release(_held_locks.pop())


def _release(lock: Any) -> None:
    _imp.release_lock()
    if lock is not None:
        lock.__exit__(None, None, None)
    EVALUATION_LOCK.release()


def _in_child() -> None:
    _after()
    if sys.version_info < (3, 12):  # before 3.12 a cached_property has one lock for all objects of its class
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "bellcrank":
                _renew_locks(module)


def _renew_locks(module: Any) -> None:
    for thing in list(vars(module).values()):
        if isinstance(thing, type):
            for attribute in vars(thing).values():
                if isinstance(attribute, cached_property):
                    attribute.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
