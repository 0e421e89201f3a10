"""Files of an installed distribution, and one digest of many files, computed again only when one of them has changed.

The files are those of its RECORD, and the project folders of an editable install.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

FileStat: TypeAlias = tuple[str, str, int, int, int, int]  # path, name, size, written and changed in ns, inode
LARGE_FILE = 1 << 26  # bytes; larger files are identified by their size and times alone
SKIPPED_FOLDERS = {"__pycache__", "node_modules"}  # folders that contain nothing that code reads
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
COMPILED_SUFFIXES = (".so", ".pyd", ".dylib", ".dll")


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


# -- digests


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
