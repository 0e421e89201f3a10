"""Packages of other people that add to the tables by entry points: found when bellcrank is first used.

    [project.entry-points."bellcrank.joint"]
    geared = "my_package:Geared"

is bc.register("joint", "geared", my_package.Geared) wherever that package is installed. Kernels are found on disk by
what was asked for, as long as all that was added comes from packages: their sources are part of the key.
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
rows: dict[tuple[str, str], Any] = {}  # (kind, name) -> what stands in a table because of a package
packages: dict[str, list[str]] = {}  # a package -> what it adds, in words
_points: dict[str, list[Any]] = {}  # a package -> its entry points
LEFT_OUT = ("bellcrank", "numpy", "llvmlite", "pip", "setuptools")  # parts of every key, or of no code
_begun = _loaded = False
_loading = threading.RLock()  # what is loaded uses bellcrank itself, in the same thread
LONGEST_WAIT = 60.0  # seconds for another thread to load all packages


def load() -> None:
    """Load packages once in a process; other threads wait until all of them are there.

    BELLCRANK_WITHOUT_PACKAGES=1 leaves all of them out.
    """
    global _loaded, _begun
    if _loaded:
        return
    if not _loading.acquire(timeout=LONGEST_WAIT):
        raise InputError(
            f"another thread has been loading packages that add to bellcrank for {LONGEST_WAIT:.0f} s. Import them "
            "before threads start, or leave them out: BELLCRANK_WITHOUT_PACKAGES=1."
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
    """What cannot be used is left out with a warning: somebody else's package must not stop everything."""
    package = point.dist.name if point.dist is not None else point.module
    try:
        thing = point.load()
        registration = above("registration")
        registration.register(kind, point.name, thing)
    except Exception as error:
        told = f'the package "{package}" offers the {kind} "{point.name}" ({point.value}), which cannot be used'
        how = f"Repair or uninstall {package}; BELLCRANK_WITHOUT_PACKAGES=1 does without all such packages."
        said = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        warn(f"{told}: {said} {how}")
        return
    rows[kind, point.name] = registration.KINDS[kind].table()[point.name]
    _points.setdefault(package, []).append(point)
    packages.setdefault(package, []).append(f"{kind} {point.name}")


def fingerprint() -> str:
    """Return a digest of everything that the packages which add something consist of; "" where none does.

    Every file of a package counts: its modules, helper packages and data, and of an editable install all that lies in
    its folders. So do the files of what it depends on where that is installed in editable mode; of others that it
    depends on, the list of what was installed. Files are looked at each time, and read when one was written since.
    """
    if not packages:
        return ""
    from bellcrank.content_digest.files import digest_of_files, newest

    store, stats = above("emit.cache"), _stats()

    def known(name: str) -> str | None:
        found = store.load(f"{store.key('packages', name)}.json")
        return None if found is None else str(found.decode().strip('"'))

    def keep(name: str, digest: str) -> None:
        if newest(stats) < time.time_ns() - store.SETTLED:  # else another change might not show in the times
            store.save(f"{store.key('packages', name)}.json", f'"{digest}"'.encode())

    parts = [*_versions(), digest_of_files(stats, known, keep), _in_memory()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _in_memory() -> str:
    """Digest of what stands in the tables as it is now: a number of its module may have been set since it was loaded.
    What cannot be identified is never found again.
    """
    from bellcrank.content_digest import UnidentifiedError, content_digest
    from bellcrank.content_digest.libraries import TAKEN_APART

    TAKEN_APART.update(point.module.partition(".")[0] for points in _points.values() for point in points)
    try:
        return content_digest({f"{kind} {name}": rows[kind, name] for kind, name in sorted(rows)})
    except UnidentifiedError as error:
        return f"{error} {os.getpid()} {time.time_ns()}"


def steady() -> bool:
    """Return whether no file of these packages was written since this process began: what was loaded of them, and what
    they read, is what the fingerprint tells.
    """
    from bellcrank.content_digest.files import newest

    return newest(_stats()) <= BEGAN


def _stats() -> list[FileStat]:
    from bellcrank.content_digest.files import stats_of

    return [stat for package in sorted(_points) for stat in stats_of(_files(package))]


def _files(package: str) -> dict[str, str]:
    """All files of a package, and of those that it depends on which are installed in editable mode: path and name."""
    from bellcrank.content_digest.distributions import editable_roots, files_of

    found = _module_files(package)
    for dist in _distributions(package):
        if dist.name == package or editable_roots(dist):
            found |= files_of(dist)
    return found


def _module_files(package: str) -> dict[str, str]:
    """Files of the top modules that its entry points name, wherever they were loaded from."""
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
    """The distribution of a package, and all that it depends on."""
    from bellcrank.content_digest.distributions import with_dependencies

    dists = {point.dist.name: point.dist for point in _points[package] if point.dist is not None}
    return [found for dist in dists.values() for found in with_dependencies(dist, LEFT_OUT)]


def _versions() -> list[str]:
    from bellcrank.content_digest.distributions import version_of

    return [version_of(dist) for package in sorted(_points) for dist in _distributions(package)]
