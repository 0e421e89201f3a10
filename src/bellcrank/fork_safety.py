"""Fork safety: a child process must not inherit locks that other threads hold.

Before a fork we wait until no thread is inside LLVM or imports a module that a kernel may need, so that the child finds
both in a consistent state; afterwards both sides continue. A fork may therefore wait for a compilation in another
thread. State that a child must create again (pools, thread teams, locks of objects) is registered where it is defined.
"""

from __future__ import annotations

import _imp
import concurrent.futures.thread  # noqa: F401  # it and logging register fork handlers on import, which must not happen during a fork
import importlib._bootstrap as _bootstrap
import os
import sys
import threading
import time
from functools import cached_property
from typing import Any

from bellcrank.single_evaluation import EVALUATION_LOCK

GUARDED_MODULES = {
    "bellcrank",
    "llvmlite",
    "numpy",
    *sys.stdlib_module_names,
}  # user modules are excluded: their import may never end
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
        _imp.release_lock()
        if lock is not None:  # the importing thread may need it
            lock.__exit__(None, None, None)
        EVALUATION_LOCK.release()
        time.sleep(1e-3)


def _after() -> None:
    if not _held_locks:  # an interrupt came first
        return
    lock = _held_locks.pop()
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
