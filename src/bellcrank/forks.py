"""A fork while other threads compile: the child has their locks, and nobody who would ever open them.

Before a fork we wait until nobody is inside LLVM and nobody imports what a kernel may need, so that the child finds
both whole; afterwards both sides go on. A fork may so have to wait for a compilation of another thread. What only a
child needs anew (pools, crews, locks of its own objects) is registered where it is.
"""

from __future__ import annotations

import _imp
import concurrent.futures.thread  # noqa: F401  # it and logging register locks for forks: not while one waits
import importlib._bootstrap as _bootstrap
import os
import sys
import threading
import time
from functools import cached_property
from typing import Any

from bellcrank.once import LOCK

NEEDED = {"bellcrank", "llvmlite", "numpy", *sys.stdlib_module_names}  # and nobody's own module, which may never end
_held: list[Any] = []  # touched only by who holds what is in it


def _importing() -> bool:
    """Whether another thread is in an import that a child might need."""
    me = threading.get_ident()
    for name, reference in list(getattr(_bootstrap, "_module_locks", {}).items()):
        lock = reference()
        if lock is not None and name.partition(".")[0] in NEEDED and lock.owner not in (None, me):
            return True
    return False


def _before() -> None:
    while True:
        LOCK.acquire()  # before the others, as in functions that are called once: they use LLVM and import
        ffi = sys.modules.get("llvmlite.binding.ffi")
        lock = getattr(getattr(ffi, "lib", None), "_lock", None)  # can be entered twice: this thread may be inside
        if lock is not None:
            lock.__enter__()
        _imp.acquire_lock()  # nobody begins an import
        if not _importing():
            _held.append(lock)
            return
        _imp.release_lock()
        if lock is not None:  # who imports may need it
            lock.__exit__(None, None, None)
        LOCK.release()
        time.sleep(1e-3)


def _after() -> None:
    if not _held:  # an interrupt came before
        return
    lock = _held.pop()
    _imp.release_lock()
    if lock is not None:
        lock.__exit__(None, None, None)
    LOCK.release()


def _in_child() -> None:
    _after()
    if sys.version_info < (3, 12):  # there, a cached_property has a lock, one for all objects of its class
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "bellcrank":
                _renew(module)


def _renew(module: Any) -> None:
    for thing in list(vars(module).values()):
        if isinstance(thing, type):
            for attribute in vars(thing).values():
                if isinstance(attribute, cached_property):
                    attribute.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
