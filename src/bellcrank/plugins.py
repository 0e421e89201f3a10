"""Plug-ins: third-party packages that register joints, methods, ... by entry points, loaded on first use of bellcrank.

    [project.entry-points."bellcrank.joint"]
    geared = "my_package:Geared"

is equivalent to bc.register("joint", "geared", my_package.Geared) wherever that package is installed. Compiled kernels
are found on disk by their request as long as all extensions come from packages: their sources are part of the key.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from bellcrank.began import BEGAN
from bellcrank.errors import InputError, warn
from bellcrank.stairs import above

if TYPE_CHECKING:
    from bellcrank.content_digest.files import FileStat

GROUP = "bellcrank."
rows: dict[tuple[str, str], Any] = {}  # (kind, name) -> table entry registered by a package
packages: dict[str, list[str]] = {}  # package -> descriptions of its extensions
_points: dict[str, list[Any]] = {}  # package -> its entry points
LEFT_OUT = (
    "bellcrank",
    "numpy",
    "llvmlite",
    "pip",
    "setuptools",
)  # part of every key already, or irrelevant to generated code
_begun = _loaded = False
_loading = threading.RLock()  # re-entrant: loaded packages use bellcrank in the same thread
LONGEST_WAIT = 60.0  # s to wait for another thread to load all packages


def load() -> None:
    """Load the packages once per process; other threads wait until all of them are loaded.

    BELLCRANK_WITHOUT_PACKAGES=1 disables all of them.
    """
    global _loaded, _begun
    if _loaded:
        return
    if not _loading.acquire(timeout=LONGEST_WAIT):
        raise InputError(
            f"another thread has been loading packages that extend bellcrank for {LONGEST_WAIT:.0f} s. Import them "
            "before threads start, or disable them: BELLCRANK_WITHOUT_PACKAGES=1."
        )
    try:
        if not _begun:
            _begun = True
            _load()
            _loaded = True
    finally:
        _loading.release()


def _load() -> None:
    if os.environ.get("BELLCRANK_WITHOUT_PACKAGES"):
        return
    from importlib.metadata import entry_points

    found = entry_points()
    for group in sorted(name for name in found.groups if name.startswith(GROUP)):
        for point in sorted(found.select(group=group), key=lambda point: point.name):
            _take(group.removeprefix(GROUP), point)


def _take(kind: str, point: Any) -> None:
    """Register one entry point; if it is unusable, warn and skip it, so that a bad package does not stop everything."""
    package = point.dist.name if point.dist is not None else point.module
    try:
        thing = point.load()
        registration = above("registration")
        registration.register(kind, point.name, thing)
    except Exception as error:
        told = f'the package "{package}" offers the {kind} "{point.name}" ({point.value}), which cannot be used'
        how = f"Repair or uninstall {package}; BELLCRANK_WITHOUT_PACKAGES=1 disables all such packages."
        said = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        warn(f"{told}: {said} {how}")
        return
    rows[kind, point.name] = registration.KINDS[kind].table()[point.name]
    _points.setdefault(package, []).append(point)
    packages.setdefault(package, []).append(f"{kind} {point.name}")


def fingerprint() -> str:
    """Return a digest of all packages that extend bellcrank; "" if there are none.

    Every file of a package counts: its modules, helper packages and data, and of an editable install all files in its
    folders. Dependences count in the same way if they are installed in editable mode, otherwise by their list of
    installed files. File times are checked on each call; files are read if one was written since.
    """
    if not packages:
        return ""
    from bellcrank.content_digest.files import digest_of_files, newest

    store, stats = above("emit.cache"), _stats()

    def known(name: str) -> str | None:
        found = store.load(f"{store.key('packages', name)}.json")
        return None if found is None else str(found.decode().strip('"'))

    def keep(name: str, digest: str) -> None:
        if newest(stats) < time.time_ns() - store.SETTLED:  # otherwise another change might not show in the file times
            store.save(f"{store.key('packages', name)}.json", f'"{digest}"'.encode())

    parts = [*_versions(), digest_of_files(stats, known, keep), _in_memory()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _in_memory() -> str:
    """Return a digest of the current table entries: an attribute of a module may have been set since it was loaded.

    An entry that cannot be identified gets a digest that never repeats.
    """
    from bellcrank.content_digest import UnidentifiedError, content_digest
    from bellcrank.content_digest.libraries import TAKEN_APART

    TAKEN_APART.update(point.module.partition(".")[0] for points in _points.values() for point in points)
    try:
        return content_digest({f"{kind} {name}": rows[kind, name] for kind, name in sorted(rows)})
    except UnidentifiedError as error:
        return f"{error} {os.getpid()} {time.time_ns()}"


def steady() -> bool:
    """Return true if no file of these packages was written since this process began.

    Then the loaded modules and the data they read are those of the fingerprint.
    """
    from bellcrank.content_digest.files import newest

    return newest(_stats()) <= BEGAN


def _stats() -> list[FileStat]:
    from bellcrank.content_digest.files import stats_of

    return [stat for package in sorted(_points) for stat in stats_of(_files(package))]


def _files(package: str) -> dict[str, str]:
    """Return all files of a package and of its dependences in editable mode: path and name."""
    from bellcrank.content_digest.distributions import editable_roots, files_of

    found = _module_files(package)
    for dist in _distributions(package):
        if dist.name == package or editable_roots(dist):
            found |= files_of(dist)
    return found


def _module_files(package: str) -> dict[str, str]:
    """Return the files of the top-level modules that its entry points name, wherever they were loaded from."""
    from bellcrank.content_digest.distributions import files_below

    found: dict[str, str] = {}
    for name in {point.module.partition(".")[0] for point in _points[package]}:
        top = sys.modules[name]
        folders = list(getattr(top, "__path__", ()))
        for folder in folders:
            found |= files_below(folder)
        if not folders and getattr(top, "__file__", None):
            found[os.path.realpath(str(top.__file__))] = name
    return found


@cache
def _distributions(package: str) -> list[Any]:
    """Return the distribution of a package and those of all its dependences."""
    from bellcrank.content_digest.distributions import with_dependencies

    dists = {point.dist.name: point.dist for point in _points[package] if point.dist is not None}
    return [found for dist in dists.values() for found in with_dependencies(dist, LEFT_OUT)]


def _versions() -> list[str]:
    from bellcrank.content_digest.distributions import version_of

    return [version_of(dist) for package in sorted(_points) for dist in _distributions(package)]
