"""Tell code of Python and of installed libraries, identified by version, from code identified by its text."""

from __future__ import annotations

import importlib.metadata
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache, lru_cache

from bellcrank.content_digest.distributions import distribution_version

DECOMPOSED_PACKAGES: set[str] = set()  # packages identified by what is in memory, wherever they are installed
MAX_CACHED_FILES = 4096  # files whose library is cached
OWN_PACKAGE = __name__.partition(".")[0]
OWN_FOLDER = os.path.realpath(os.path.dirname(os.path.dirname(__file__))) + os.sep


def module_library(module_name: str) -> str | None:
    """Return the identity of the library of the loaded module `module_name`, or None if its text identifies it.

    Python is identified by its version and this package by its name, because all users of digests compare the text of
    the package, too. A library in site-packages is identified by its distribution. The location of the file decides, so
    that a module which shadows one of Python's is not mistaken for it.
    """
    module = sys.modules.get(module_name)
    top = module_name.partition(".")[0]
    if module is None or module_name == "__main__" or top in DECOMPOSED_PACKAGES:  # __main__ is the user's program
        return None
    if top == OWN_PACKAGE:
        return OWN_PACKAGE
    file = getattr(module, "__file__", None)
    if not file:
        return _python_version() if module_name in sys.builtin_module_names or _is_frozen(module) else None
    return _file_library(file, top)


@lru_cache(MAX_CACHED_FILES)
def _file_library(file: str, top: str) -> str | None:
    path = os.path.realpath(file)
    if path.startswith(_site_folders()):
        return _distribution_versions(top)
    return _python_version() if path.startswith(_python_folders()) else None


@lru_cache(MAX_CACHED_FILES)
def is_library_file(file: str) -> bool:
    """Return whether `file` belongs to Python, to an installed library or to this package.

    Code generated from text, such as the methods of dataclasses, has a name in angle brackets instead.
    """
    path = os.path.realpath(file)
    return file.startswith("<") or path.startswith((*_site_folders(), *_python_folders(), OWN_FOLDER))


def _is_frozen(module: object) -> bool:
    return getattr(getattr(module, "__spec__", None), "origin", None) == "frozen"


def _python_version() -> str:
    return f"python {sys.version_info.major}.{sys.version_info.minor}"


@cache
def _site_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


@cache
def _python_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib"))


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


@cache
def _distribution_versions(top: str) -> str | None:
    names = sorted(set(_distributions().get(top, ())))
    return "; ".join(distribution_version(importlib.metadata.distribution(name)) for name in names) or None
