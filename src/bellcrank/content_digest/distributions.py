"""Files of an installed distribution: those of its RECORD, and the project folders of an editable install."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlparse

ASIDE = {"__pycache__", "node_modules"}  # folders that contain nothing that code reads
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
COMPILED = (".so", ".pyd", ".dylib", ".dll")


def version_of(dist: Any) -> str:
    """Return name and version of `dist` and, if it has no compiled parts, a hash of its sources as installed.

    Compiled libraries differ between computers in files that do not affect results; for those the version suffices.
    """
    files = dist.files or []
    sources = sorted(f"{f} {f.hash.value if f.hash else ''}" for f in files if f.suffix == ".py")
    if any(f.suffix in COMPILED for f in files):
        sources = []
    return f"{dist.name} {dist.version} {hashlib.sha256(chr(10).join(sources).encode()).hexdigest()}"


def files_of(dist: Any) -> dict[str, str]:
    """Return the files of `dist`: {absolute path: path relative to the installation}.

    Metadata that installers write is left out, except the entry points, and so is compiled Python.
    """
    found = {}
    for file in dist.files or ():
        about = file.parts[0].endswith((".dist-info", ".egg-info")) and file.name != "entry_points.txt"
        path = os.path.realpath(str(dist.locate_file(file)))
        if not about and file.suffix != ".pyc" and os.path.isfile(path):
            found[path] = str(file)
    for root in editable_roots(dist):
        found |= files_below(root)
    return found


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


def files_below(root: str) -> dict[str, str]:
    """Return all files below the folder `root`: {absolute path: path within the folder}.

    Hidden files, caches and virtual environments are left out.
    """
    return {os.path.realpath(path): os.path.relpath(path, root) for path in _below(root)}


def _below(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in found):
        return
    for entry in found:
        if entry.name.startswith(".") or entry.name in ASIDE or entry.name.endswith(".pyc"):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path)
        elif entry.is_file():
            yield entry.path


def with_dependencies(dist: Any, without: Iterable[str]) -> list[Any]:
    """Return `dist` and all installed distributions that it needs, transitively, sorted by name.

    Extras are ignored, and so are the names in `without`.
    """
    found: dict[str, Any] = {}
    waiting, leave = [dist], {normalised(name) for name in without}
    while waiting:
        one = waiting.pop()
        name = normalised(one.name)
        if name in found or name in leave:
            continue
        found[name] = one
        for requirement in one.requires or ():
            needed = NAME.match(requirement)
            if needed is None or "extra ==" in requirement:
                continue
            try:
                waiting.append(importlib.metadata.distribution(needed[0]))
            except importlib.metadata.PackageNotFoundError:
                continue
    return [found[name] for name in sorted(found)]


def normalised(name: str) -> str:
    """Return the distribution `name` in its normalised form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
