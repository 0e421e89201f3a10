"""Tell code of Python and of installed libraries, identified by version, from code identified by its text.

The version of a distribution includes a hash of its sources. Its files are those of its RECORD, and the project folders
of an editable install; one digest of many files is computed again only when one of them has changed. The versions of
this package and of the libraries below it are those that affect computed numbers.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import site
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

from bellcrank import plugins
from bellcrank.errors import InputError
from bellcrank.process_state import IMPORT_TIME_NS
from bellcrank.version import __version__

DECOMPOSED_PACKAGES: set[str] = set()  # packages identified by what is in memory, wherever they are installed
MAX_CACHED_FILES = 4096  # files whose library is cached
OWN_PACKAGE = __name__.partition(".")[0]
OWN_FOLDER = os.path.realpath(os.path.dirname(os.path.dirname(__file__))) + os.sep
FileStat: TypeAlias = tuple[str, str, int, int, int, int]  # path, name, size, written and changed in ns, inode
LARGE_FILE = 1 << 26  # bytes; larger files are identified by their size and times alone
SKIPPED_FOLDERS = {"__pycache__", "node_modules"}  # folders that contain nothing that code reads
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
COMPILED_SUFFIXES = (".so", ".pyd", ".dylib", ".dll")


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


# -- installed distributions and their files


def distribution_version(dist: Any) -> str:
    """Return name and version of `dist` and, if it has no compiled parts, a hash of its sources as installed.

    Compiled libraries differ between computers in files that do not affect results; for those the version suffices.
    """
    files = dist.files or []
    sources = sorted(f"{f} {f.hash.value if f.hash else ''}" for f in files if f.suffix == ".py")
    if any(f.suffix in COMPILED_SUFFIXES for f in files):
        sources = []
    return f"{dist.name} {dist.version} {hashlib.sha256(chr(10).join(sources).encode()).hexdigest()}"


def distribution_files(dist: Any) -> dict[str, str]:
    """Return the files of `dist`: {absolute path: path relative to the installation}.

    Metadata that installers write is left out, except the entry points, and so is compiled Python.
    """
    paths = {}
    for file in dist.files or ():
        is_metadata = file.parts[0].endswith((".dist-info", ".egg-info")) and file.name != "entry_points.txt"
        path = os.path.realpath(str(dist.locate_file(file)))
        if not is_metadata and file.suffix != ".pyc" and os.path.isfile(path):
            paths[path] = str(file)
    for root in editable_roots(dist):
        paths |= folder_files(root)
    return paths


def package_files(package: str, points: Iterable[Any], dists: Iterable[Any]) -> dict[str, str]:
    """Return all files of a `package` with entry points, and of its dependences in editable mode: path and name.

    Its files are also those of the top-level modules that the entry points name, wherever they were loaded from.

    Parameters
    ----------
    package
        Name of the distribution.
    points
        Its entry points.
    dists
        Its distribution and those of its dependences.
    """
    files: dict[str, str] = {}
    for name in {point.module.partition(".")[0] for point in points}:
        top = sys.modules[name]
        folders = list(getattr(top, "__path__", ()))
        for folder in folders:
            files |= folder_files(folder)
        if not folders and getattr(top, "__file__", None):
            files[os.path.realpath(str(top.__file__))] = name
    for dist in dists:
        if dist.name == package or editable_roots(dist):
            files |= distribution_files(dist)
    return files


def editable_roots(dist: Any) -> set[str]:
    """Return the folders of an editable install `dist`: its project, and those that its .pth files add to the path."""
    roots = set()
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        url = urlparse(origin.get("url", ""))
        if origin.get("dir_info", {}).get("editable") and url.scheme == "file":
            path = unquote(url.path)
            roots.add(path.lstrip("/") if os.name == "nt" else path)
    except (ValueError, AttributeError):
        pass
    for file in dist.files or ():
        if file.suffix == ".pth":
            roots.update(line.strip() for line in _lines(str(dist.locate_file(file))))
    return {os.path.realpath(root) for root in roots if root and os.path.isabs(root) and os.path.isdir(root)}


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def folder_files(root: str) -> dict[str, str]:
    """Return all files below the folder `root`: {absolute path: path within the folder}.

    Hidden files, caches and virtual environments are left out.
    """
    return {os.path.realpath(path): os.path.relpath(path, root) for path in _walk(root)}


def _walk(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in listed):
        return
    for entry in listed:
        if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS or entry.name.endswith(".pyc"):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.is_file():
            yield entry.path


def dependency_closure(dist: Any, without: Iterable[str]) -> list[Any]:
    """Return `dist` and all installed distributions that it needs, transitively, sorted by name.

    Extras are ignored, and so are the names in `without`.
    """
    collected: dict[str, Any] = {}
    pending, excluded = [dist], {normalised(name) for name in without}
    while pending:
        current = pending.pop()
        name = normalised(current.name)
        if name in collected or name in excluded:
            continue
        collected[name] = current
        for requirement in current.requires or ():
            name_match = REQUIREMENT_NAME.match(requirement)
            if name_match is None or "extra ==" in requirement:
                continue
            try:
                pending.append(importlib.metadata.distribution(name_match[0]))
            except importlib.metadata.PackageNotFoundError:
                continue
    return [collected[name] for name in sorted(collected)]


def normalised(name: str) -> str:
    """Return the distribution `name` in its normalised form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


# -- digests of files


def file_stats(files: Mapping[str, str]) -> list[FileStat]:
    """Return size, times and inode of `files`, {path: name}; missing files are left out."""
    stats = []
    for path in sorted(files):
        try:
            s = os.stat(path)
        except OSError:
            continue
        stats.append((path, files[path], s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return stats


def latest_change(stats: Iterable[FileStat]) -> int:
    """Return the time of the last write or change among `stats`, in ns since 1970; 0 for no files."""
    return max((max(written, changed) for _, _, _, written, changed, _ in stats), default=0)


def files_digest(
    stats: list[FileStat],
    known: Callable[[str], str | None],
    keep: Callable[[str, str], None],
) -> str:
    """Return a digest of the names and contents of files.

    Parameters
    ----------
    stats
        Result of `file_stats`.
    known
        Look up a digest by a key that stands for all of `stats`.
    keep
        Store a digest under that key.
    """
    name = hashlib.sha256(repr(stats).encode("utf-8", "surrogatepass")).hexdigest()
    if (stored := known(name)) is not None:
        return stored
    digest = hashlib.sha256()
    for stat in sorted(stats, key=lambda stat: stat[1]):
        digest.update(stat[1].encode("utf-8", "surrogatepass") + b"\0" + _content(stat))
    keep(name, digest.hexdigest())
    return digest.hexdigest()


def _content(stat: FileStat) -> bytes:
    path, _, size, *_ = stat
    if size > LARGE_FILE:
        return repr(stat).encode("utf-8", "surrogatepass")
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b"unreadable"
