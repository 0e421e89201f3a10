"""Tell code of Python and of installed libraries, identified by version, from code identified by its text.

The versions of this package and of the libraries below it are those that affect computed numbers.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import site
import sys
import sysconfig
import time
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from bellcrank import plugins
from bellcrank.content_digest.distributions import distribution_version, folder_files
from bellcrank.errors import InputError
from bellcrank.process_state import IMPORT_TIME_NS
from bellcrank.version import __version__

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


# -- versions of this package and of the libraries below it


def code_versions() -> dict[str, str]:
    """Return the versions of all code that computes, by name; equal on two computers if they compute the same."""
    plugins.load()
    return {
        "bellcrank": f"{__version__} {package_digest()[:32]}",
        "plug-ins": plugins.fingerprint()[:32],
        "numpy": importlib.metadata.version("numpy"),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
    }


@cache
def package_digest() -> str:
    """Return a hash of all Python files of this package.

    Raises
    ------
    InputError
        If one of them was written after this process began, since the loaded text is then unknown.
    """
    digest, now = hashlib.sha256(), time.time_ns()
    for path, name in sorted(folder_files(OWN_FOLDER).items()):
        if not name.endswith(".py"):
            continue
        if IMPORT_TIME_NS < os.stat(path).st_mtime_ns <= now:  # a time in the future comes from another clock
            raise InputError(
                f"{path} was changed after this process began, so that the process may run other code than the files "
                "contain. Restart Python."
            )
        digest.update(name.encode() + b"\0" + Path(path).read_bytes())
    return digest.hexdigest()
