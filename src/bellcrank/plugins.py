"""Plug-ins: third-party packages that register joints, methods, ... by entry points, loaded on first use of bellcrank.

    [project.entry-points."bellcrank.joint"]
    geared = "my_package:Geared"

is equivalent to bc.register("joint", "geared", my_package.Geared) wherever that package is installed. Compiled kernels
are found on disk by their request as long as all extensions come from packages: their sources are part of the key.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from bellcrank.errors import InputError, warn
from bellcrank.lazy_import import lazy_import
from bellcrank.process_state import IMPORT_TIME_NS

if TYPE_CHECKING:
    from bellcrank.content_digest.libraries import FileStat

ENTRY_POINT_PREFIX = "bellcrank."
entries: dict[tuple[str, str], Any] = {}  # (kind, name) -> table entry registered by a package
packages: dict[str, list[str]] = {}  # package -> descriptions of its extensions
_points: dict[str, list[Any]] = {}  # package -> its entry points
# Part of every key already, or irrelevant to generated code.
EXCLUDED_PACKAGES = ("bellcrank", "numpy", "llvmlite", "pip", "setuptools")
_started = _loaded = False
_loading = threading.RLock()  # re-entrant: loaded packages use bellcrank in the same thread
MAX_LOAD_WAIT_SECONDS = 60.0  # s to wait for another thread to load all packages


def load() -> None:
    """Load the packages once per process; other threads wait until all of them are loaded.

    BELLCRANK_WITHOUT_PACKAGES=1 disables all of them.
    """
    global _loaded, _started
    if _loaded:
        return
    if not _loading.acquire(timeout=MAX_LOAD_WAIT_SECONDS):
        raise InputError(
            f"another thread has been loading packages that extend bellcrank for {MAX_LOAD_WAIT_SECONDS:.0f} s. Import "
            "them before threads start, or disable them: BELLCRANK_WITHOUT_PACKAGES=1."
        )
    try:
        if not _started:
            _started = True
            _load()
            _loaded = True
    finally:
        _loading.release()


def _load() -> None:
    if os.environ.get("BELLCRANK_WITHOUT_PACKAGES"):
        return
    from importlib.metadata import entry_points

    points = entry_points()
    for group in sorted(name for name in points.groups if name.startswith(ENTRY_POINT_PREFIX)):
        for point in sorted(points.select(group=group), key=lambda point: point.name):
            _register_entry_point(group.removeprefix(ENTRY_POINT_PREFIX), point)


def _register_entry_point(kind: str, point: Any) -> None:
    """Register one entry point; if it is unusable, warn and skip it, so that a bad package does not stop everything."""
    package = point.dist.name if point.dist is not None else point.module
    try:
        thing = point.load()
        entry = lazy_import("registration:register_entry")(kind, point.name, thing)
    except Exception as error:
        problem = f'the package "{package}" offers the {kind} "{point.name}" ({point.value}), which cannot be used'
        advice = f"Repair or uninstall {package}; BELLCRANK_WITHOUT_PACKAGES=1 disables all such packages."
        error_text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        warn(f"{problem}: {error_text} {advice}")
        return
    entries[kind, point.name] = entry
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
    from bellcrank.content_digest.libraries import distribution_version, files_digest, latest_change

    store, stats = lazy_import("emit.cache"), _stats()

    def stored_digest(name: str) -> str | None:
        digest = store.load(f"{store.key('packages', name)}.json")
        return None if digest is None else str(digest.decode().strip('"'))

    def store_digest(name: str, digest: str) -> None:
        # Otherwise another change might not show in the file times.
        if latest_change(stats) < time.time_ns() - store.SETTLING_TIME_NS:
            store.save(f"{store.key('packages', name)}.json", f'"{digest}"'.encode())

    versions = [distribution_version(dist) for package in sorted(_points) for dist in _distributions(package)]
    parts = [*versions, files_digest(stats, stored_digest, store_digest), _digest_in_memory()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _digest_in_memory() -> str:
    """Return a digest of the current table entries: an attribute of a module may have been set since it was loaded.

    An entry that cannot be identified gets a digest that never repeats.
    """
    from bellcrank.content_digest import UnidentifiedError, content_digest
    from bellcrank.content_digest.libraries import DECOMPOSED_PACKAGES

    DECOMPOSED_PACKAGES.update(point.module.partition(".")[0] for points in _points.values() for point in points)
    try:
        return content_digest({f"{kind} {name}": entries[kind, name] for kind, name in sorted(entries)})
    except UnidentifiedError as error:
        return f"{error} {os.getpid()} {time.time_ns()}"


def sources_unchanged() -> bool:
    """Return true if no file of these packages was written since this process began.

    Then the loaded modules and the data they read are those of the fingerprint.
    """
    from bellcrank.content_digest.libraries import latest_change

    return latest_change(_stats()) <= IMPORT_TIME_NS


def _stats() -> list[FileStat]:
    from bellcrank.content_digest.libraries import file_stats, package_files

    return [
        stat
        for package, points in sorted(_points.items())
        for stat in file_stats(package_files(package, points, _distributions(package)))
    ]


@cache
def _distributions(package: str) -> list[Any]:
    """Return the distribution of a package and those of all its dependences."""
    from bellcrank.content_digest.libraries import dependency_closure

    dists = {point.dist.name: point.dist for point in _points[package] if point.dist is not None}
    return [distribution for dist in dists.values() for distribution in dependency_closure(dist, EXCLUDED_PACKAGES)]
