"""Tell code of Python and of installed libraries, identified by version, from code identified by its text."""

from __future__ import annotations

import importlib.metadata
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache, lru_cache

from bellcrank.content_digest.distributions import version_of

TAKEN_APART: set[str] = set()  # packages identified by what is in memory, wherever they are installed
MANY_FILES = 4096  # files whose library is cached
OWN = __name__.partition(".")[0]
PACKAGE = os.path.realpath(os.path.dirname(os.path.dirname(__file__))) + os.sep


def library_of(module_name: str) -> str | None:
    """Return the identity of the library of the loaded module `module_name`, or None if its text identifies it.

    Python is identified by its version and this package by its name, because all users of digests compare the text of
    the package, too. A library in site-packages is identified by its distribution. The location of the file decides, so
    that a module which shadows one of Python's is not mistaken for it.
    """
    module = sys.modules.get(module_name)
    top = module_name.partition(".")[0]
    if module is None or module_name == "__main__" or top in TAKEN_APART:  # __main__ is the user's program
        return None
    if top == OWN:
        return OWN
    file = getattr(module, "__file__", None)
    if not file:
        return _python() if module_name in sys.builtin_module_names or _frozen(module) else None
    return _library_of_file(file, top)


@lru_cache(MANY_FILES)
def _library_of_file(file: str, top: str) -> str | None:
    path = os.path.realpath(file)
    if path.startswith(_site_folders()):
        return _distribution(top)
    return _python() if path.startswith(_python_folders()) else None


@lru_cache(MANY_FILES)
def in_library(file: str) -> bool:
    """Return whether `file` belongs to Python, to an installed library or to this package.

    Code generated from text, such as the methods of dataclasses, has a name in angle brackets instead.
    """
    path = os.path.realpath(file)
    return file.startswith("<") or path.startswith((*_site_folders(), *_python_folders(), PACKAGE))


def _frozen(module: object) -> bool:
    return getattr(getattr(module, "__spec__", None), "origin", None) == "frozen"


def _python() -> str:
    return f"python {sys.version_info.major}.{sys.version_info.minor}"


@cache
def _site_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.realpath(folder) + os.sep for folder in found)


@cache
def _python_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib"))


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


@cache
def _distribution(top: str) -> str | None:
    names = sorted(set(_distributions().get(top, ())))
    return "; ".join(version_of(importlib.metadata.distribution(name)) for name in names) or None
