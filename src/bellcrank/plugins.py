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
from pathlib import Path
from typing import Any

from bellcrank.errors import InputError, warn
from bellcrank.stairs import above

GROUP = "bellcrank."
rows: dict[tuple[str, str], Any] = {}  # (kind, name) -> what stands in a table because of a package
packages: dict[str, list[str]] = {}  # a package -> what it adds, in words
_digest = hashlib.sha256()
_loaded = False


def load() -> None:
    """Once in a process; BELLCRANK_WITHOUT_PACKAGES=1 leaves all of them out."""
    global _loaded
    if _loaded:
        return
    _loaded = True  # first: what is loaded uses bellcrank itself
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
    if package not in packages:
        _sign(package, point)
    packages.setdefault(package, []).append(f"{kind} {point.name}")


def _sign(package: str, point: Any) -> None:
    """A package's name, version and files become a part of every key."""
    version = point.dist.version if point.dist is not None else ""
    _digest.update(f"{package} {version}\0".encode())
    top = sys.modules[point.module.partition(".")[0]]
    folders = [Path(folder) for folder in getattr(top, "__path__", ())]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts]
    for path in files or [Path(str(top.__file__))]:
        if path.is_file():
            _digest.update(path.name.encode() + b"\0" + path.read_bytes())


def fingerprint() -> str:
    """Changes with the sources of the packages that add something; empty where none does."""
    return _digest.hexdigest() if packages else ""
