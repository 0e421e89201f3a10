"""One digest of many files, computed again only when one of them has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

FileStat: TypeAlias = tuple[str, str, int, int, int, int]  # path, name, size, written and changed in ns, inode
LARGE_FILE = 1 << 26  # bytes; larger files are identified by their size and times alone


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
