"""One digest of many files, which are read again only when one of them was written since."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

FileStat: TypeAlias = tuple[str, str, int, int, int, int]  # path, name, size, written and changed in ns, inode
LARGE_FILE = 1 << 26  # bytes; the content of larger ones is known by their size and times alone


def stats_of(files: Mapping[str, str]) -> list[FileStat]:
    """Return what the file system says of files, given by path with a name; those that are gone are left out."""
    found = []
    for path in sorted(files):
        try:
            s = os.stat(path)
        except OSError:
            continue
        found.append((path, files[path], s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return found


def newest(stats: Iterable[FileStat]) -> int:
    """Return when the last of these files was written or changed, in ns since 1970."""
    return max((max(written, changed) for _, _, _, written, changed, _ in stats), default=0)


def digest_of_files(
    stats: list[FileStat],
    known: Callable[[str], str | None],
    keep: Callable[[str, str], None],
) -> str:
    """Return a digest of the names and contents of files.

    Parameters
    ----------
    stats
        As stats_of gives them.
    known, keep
        Look a digest up, and store it, under a name that stands for all that the file system says of these files.
    """
    name = hashlib.sha256(repr(stats).encode("utf-8", "surrogatepass")).hexdigest()
    if (found := known(name)) is not None:
        return found
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
