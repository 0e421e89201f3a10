"""On-disk cache of object code in the user's cache folder, so that a second start compiles nothing.

A file consists of an identification line, a checksum and the payload. It is written under a temporary name and then
renamed, so that processes can race and a crash leaves no partial file. Every file that fails its check is treated as
absent and is overwritten. Files that were not used for a long time are removed, and so are the least recently used ones
when the cache exceeds its size limit.

The checksum protects against damage. To protect against other users, loaded code must have been written by this user:
no one else may be able to write the file, its folder, or any folder on the path to it, since they could replace it.
From such a folder nothing is loaded, nothing is saved there, and one warning gives the reason. Root is exempt, because
root can do anything. A user's private group (Debian's and Fedora's scheme: the group has the user's name and no other
member) does not count as another user. On systems without POSIX owners these checks are skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from bellcrank.errors import brief, warn
from bellcrank.process_state import IMPORT_TIME_NS
from bellcrank.quoting import single_line

POSIX = hasattr(os, "getuid")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
FILE_HEADER = b"bellcrank cache 2\n"
SETTLING_TIME_NS = 2_000_000_000  # ns after a change of a file; a later change is certain to show in its timestamps
# Default limits of size and of time without use; $BELLCRANK_CACHE_MB, ..._DAYS.
DEFAULT_MEGABYTES, DEFAULT_DAYS = 1024.0, 90.0
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0
# Subpackages above the code generators: no cached file depends on their sources (tests/unit/test_cache.py).
FINGERPRINT_EXCLUSIONS = {
    "actuators", "cli", "cockpit", "control", "excavators", "exporting", "forces", "formats", "ground", "gym",
    "identify", "meshes", "papers", "record", "sim", "structures", "studies", "view", "zoo",
}  # fmt: skip
CACHE_FILE_PATTERN = re.compile(r"[0-9a-f]{64}\.(o|json|cubin)|\.new-\w+")
_save_count = count()
_warned: set[str] = set()


class NoFolderError(OSError):
    """Raised when there is no location for a cache, because the user has no home directory."""


def folder() -> Path:
    """Return $BELLCRANK_CACHE, or the platform's cache folder; raise NoFolderError if neither is known."""
    configured = os.environ.get("BELLCRANK_CACHE")
    if configured:
        return Path(configured)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(_home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(_home() / ".cache")
    return Path(base) / "bellcrank"


def _home() -> Path:
    """Return the user's home as an absolute path; containers may run as a user without one."""
    try:
        home = Path.home() if os.environ.get("HOME") != "" else Path()
    except RuntimeError:
        home = Path()
    if not home.is_absolute():
        raise NoFolderError("this user has no home: HOME is not set, and there is no entry in passwd")
    return home


def location() -> tuple[Path | None, str]:
    """Return the cache folder, or None and the reason why there is none; the folder need not exist yet."""
    try:
        cache_folder = folder()
        os.stat(cache_folder)
    except NoFolderError as error:
        return None, str(error)
    except (FileNotFoundError, NotADirectoryError):
        return cache_folder, ""
    except OSError as error:  # the name is too long, or the home belongs to another user
        return None, f"{brief(str(cache_folder))} cannot be accessed ({error.strerror})"
    return cache_folder, ""


def _folder_or_warning() -> Path | None:
    """Return the cache folder, or None after one warning."""
    place, why = location()
    if place is None:
        _warn_not_cached(why)
    return place


def _warn_not_cached(reason: str) -> None:
    """Warn once for each reason."""
    if reason not in _warned:
        _warned.add(reason)
        warn(
            f"compiled code cannot be cached: {single_line(reason)}. Every process compiles again; set BELLCRANK_CACHE "
            "to a folder of your own."
        )


def key(*parts: str) -> str:
    """Return a SHA-256 hex digest of `parts`; each part is prefixed by its length, so that they cannot run together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """Return the payload of file `name`, or None if there is none that can be trusted."""
    cache_folder = _folder_or_warning()
    if cache_folder is None or _is_distrusted(cache_folder):
        return None
    path = os.path.join(cache_folder, name)
    data, reason = _read_own_file(path)
    if reason:
        _warn_untrusted(reason)
    if data is None:
        return None
    head = len(FILE_HEADER) + 32
    payload = data[head:]
    intact = data.startswith(FILE_HEADER) and _checksum(name, payload) == data[len(FILE_HEADER) : head]
    if intact:
        _record_use(path)
    return payload if intact else None


def _checksum(name: str, payload: bytes) -> bytes:
    """Return a checksum that includes the name, so that a valid file under another name is rejected."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def save(name: str, payload: bytes) -> bool:
    """Save `payload` under `name` and return True on success; a read-only home or a full disk is not an error."""
    import tempfile  # not needed by kernels that come from the cache

    cache_folder = _folder_or_warning()
    if cache_folder is None or _is_distrusted(cache_folder):
        return False
    try:
        cache_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _is_distrusted(cache_folder):
            return False
        handle, temporary = tempfile.mkstemp(dir=cache_folder, prefix=".new-")
    except OSError as error:
        _warn_not_cached(f"{brief(str(cache_folder))} cannot be written ({error.strerror})")
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(FILE_HEADER + _checksum(name, payload) + payload)
        os.replace(temporary, os.path.join(cache_folder, name))
    except OSError:
        _remove(temporary)
        return False
    except BaseException:  # Ctrl-C must not leave a partial file
        _remove(temporary)
        raise
    if next(_save_count) % 64 == 0:  # scanning thousands of files takes time
        evict()
    return True


# -- ownership and permissions


def _read_own_file(path: str) -> tuple[bytes | None, str]:
    """Return the bytes of the user's own regular file, or None, and the reason if an existing file is not trusted.

    Links are not followed, and opening a FIFO does not block. The check applies to the open file, which cannot be
    replaced in the meantime.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_BINARY", 0))
    except OSError:
        return None, f"{path} is a link" if os.path.islink(path) else ""
    status = os.fstat(handle)
    reason = _foreign_access_reason(status) if stat.S_ISREG(status.st_mode) else "is not a regular file"
    if reason:
        os.close(handle)
        return None, "" if stat.S_ISDIR(status.st_mode) else f"{path} {reason}"  # a folder is harmless
    try:
        with open(handle, "rb") as file:
            return file.read(), ""
    except OSError:
        return None, ""


def distrust_reason(place: Path) -> str:
    """Return the reason why files in the folder `place` cannot be trusted; "" if they can, or if it does not exist."""
    if not POSIX:
        return ""
    literal = Path(os.path.abspath(place))
    try:
        status = os.stat(literal)
    except OSError:
        return ""
    if not stat.S_ISDIR(status.st_mode):
        return f"{place} is not a folder"
    if reason := _foreign_access_reason(status):
        return f"{place} {reason}"
    for path in dict.fromkeys((literal, *literal.parents, *Path(os.path.realpath(literal)).parents)):
        if reason := _replaceable_reason(path):
            return reason
    return ""


_cached_distrust_reason = cache(distrust_reason)  # checks each folder on disk only once


def _replaceable_reason(path: Path) -> str:
    """Return why another user could replace this path or something inside it; "" if no one could."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"{path} cannot be examined ({error.strerror})"
    if status.st_uid not in (os.getuid(), 0, os.stat("/").st_uid):
        return f"{path} belongs to another user"
    if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX and _writable_by_others(status):
        return f"{path} can be written by other users"
    return ""


def _foreign_access_reason(status: os.stat_result) -> str:
    if POSIX and status.st_uid != os.getuid():
        return "belongs to another user"
    return "can be written by other users" if POSIX and _writable_by_others(status) else ""


def _writable_by_others(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


def _is_private_group(gid: int) -> bool:
    """Return True if the user is the only member of a group."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _is_distrusted(place: Path) -> bool:
    reason = _cached_distrust_reason(place) if os.path.exists(place) else ""
    if reason:
        _warn_untrusted(reason)
    return bool(reason)


def _warn_untrusted(reason: str) -> None:
    """Warn once for each folder."""
    place = str(folder())
    if place not in _warned:
        _warned.add(place)
        warn(
            f"no compiled code is loaded from the cache: {single_line(reason)}. Remove that permission (chmod go-w), "
            "or set BELLCRANK_CACHE to a folder of your own."
        )


# -- size limits


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache: time of last use in seconds since 1970, and size in bytes.

    Paths are strings here, because Python 3.12 interns the parts of every `Path` for ever.
    """

    path: str
    last_used: float
    size: int


def cache_files() -> Iterator[CacheFile]:
    """Yield every cache file of this package; other files in the folder are skipped."""
    try:
        with os.scandir(folder()) as entries:  # NoFolderError is an OSError
            for entry in entries:
                if CACHE_FILE_PATTERN.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield CacheFile(entry.path, status.st_mtime, status.st_size)
    except OSError:
        return


def limits() -> tuple[float, float]:
    """Return (bytes, seconds): the limits of size and of time without use, from the environment or by default."""
    return _environment_number("BELLCRANK_CACHE_MB", DEFAULT_MEGABYTES) * 1e6, _environment_number(
        "BELLCRANK_CACHE_DAYS", DEFAULT_DAYS
    ) * DAY_SECONDS


def _environment_number(variable: str, default: float) -> float:
    try:
        value = float(os.environ.get(variable, default))
    except ValueError:
        return default
    return value if value >= 0.0 else default


def evict() -> int:
    """Remove files that were unused for too long, then the least recently used ones; return the number removed."""
    max_bytes, max_age = limits()
    now, total, removed_count = time.time(), 0, 0
    for file in sorted(cache_files(), key=lambda f: -f.last_used):
        age = now - file.last_used
        new = os.path.basename(file.path).startswith(".")  # being written, or left behind by a killed process
        total += file.size
        if age > (HOUR_SECONDS if new else max_age) or (total > max_bytes and not new):
            removed_count += _remove(file.path)
    return removed_count


def clear() -> int:
    """Remove all cache files of this package; return the number removed."""
    return sum(_remove(file.path) for file in list(cache_files()))


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _record_use(path: str) -> None:
    """Record the use of a file once a day, because most file systems do not record access times."""
    try:
        if time.time() - os.lstat(path).st_mtime > DAY_SECONDS:
            os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
    except OSError:
        pass


@cache
def package_fingerprint() -> str:
    """Return a digest of the sources that generate code; a cached kernel is never used after one of them changed.

    The first kernel of every process waits for it. So the digest is cached as long as all files keep their sizes and
    timestamps, unless some files are so new that another change might not show in their timestamps.
    """
    root, files = _package_sources()
    name = f"{key('package', root, repr(files))}.json"
    if (cached_digest := load(name)) is not None:
        return cached_digest.decode().strip('"')
    digest = hashlib.sha256()
    for file in files:
        with open(os.path.join(root, file[0]), "rb") as opened:
            digest.update(file[0].encode() + b"\0" + opened.read())
    if max(max(times) for _, _, *times in files) < time.time_ns() - SETTLING_TIME_NS:
        save(name, f'"{digest.hexdigest()}"'.encode())
    return digest.hexdigest()


def sources_unchanged() -> bool:
    """Return True if none of these sources was written since this process began.

    Modules are loaded one after the other. Code made by a mixture of old and new modules must not be found in the cache
    by either version.
    """
    return max(max(times) for _, _, *times in _package_sources()[1]) <= IMPORT_TIME_NS


def _package_sources() -> tuple[str, list[tuple[str, int, int, int]]]:
    """Return the folder of the package, and its source files that generate code."""
    root = str(Path(__file__).resolve().parent.parent)
    return root, sorted(_source_files(root, len(root) + 1))


def _source_files(folder: str, prefix_length: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (relative path, size, modification time, change time) of each Python file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                s = entry.stat()
                yield entry.path[prefix_length:], s.st_size, s.st_mtime_ns, s.st_ctime_ns
            elif (
                "." not in entry.name and entry.name not in {"__pycache__", *FINGERPRINT_EXCLUSIONS} and entry.is_dir()
            ):
                yield from _source_files(entry.path, prefix_length)
