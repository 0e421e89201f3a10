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

from bellcrank.began import BEGAN
from bellcrank.errors import brief, warn
from bellcrank.quoting import line

POSIX = hasattr(os, "getuid")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
MAGIC = b"bellcrank cache 2\n"
SETTLED = 2_000_000_000  # ns after a change of a file; a later change is certain to show in its timestamps
MEGABYTES, DAYS = 1024.0, 90.0  # default limits of size and of time without use; $BELLCRANK_CACHE_MB, ..._DAYS
HOUR, DAY = 3600.0, 86400.0
# Subpackages above the code generators: no cached file depends on their sources (tests/unit/test_cache.py).
ABOVE = {
    "actuators", "cli", "cockpit", "control", "excavators", "exporting", "forces", "formats", "ground", "gym",
    "identify", "meshes", "papers", "record", "sim", "structures", "studies", "view", "zoo",
}  # fmt: skip
OUR_FILES = re.compile(r"[0-9a-f]{64}\.(o|json|cubin)|\.new-\w+")
_saves = count()
_said: set[str] = set()


class NoFolderError(OSError):
    """Raised when there is no location for a cache, because the user has no home directory."""


def folder() -> Path:
    """Return $BELLCRANK_CACHE, or the platform's cache folder; raise NoFolderError if neither is known."""
    own = os.environ.get("BELLCRANK_CACHE")
    if own:
        return Path(own)
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
        found = Path.home() if os.environ.get("HOME") != "" else Path()
    except RuntimeError:
        found = Path()
    if not found.is_absolute():
        raise NoFolderError("this user has no home: HOME is not set, and there is no entry in passwd")
    return found


def location() -> tuple[Path | None, str]:
    """Return the cache folder, or None and the reason why there is none; the folder need not exist yet."""
    try:
        place = folder()
        os.stat(place)
    except NoFolderError as error:
        return None, str(error)
    except (FileNotFoundError, NotADirectoryError):
        return place, ""
    except OSError as error:  # the name is too long, or the home belongs to another user
        return None, f"{brief(str(place))} cannot be accessed ({error.strerror})"
    return place, ""


def _place() -> Path | None:
    """Return the cache folder, or None after one warning."""
    place, why = location()
    if place is None:
        _say_nothing_is_kept(why)
    return place


def _say_nothing_is_kept(why: str) -> None:
    """Warn once for each reason."""
    if why not in _said:
        _said.add(why)
        warn(
            f"compiled code cannot be cached: {line(why)}. Every process compiles again; set BELLCRANK_CACHE to a "
            "folder of your own."
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
    place = _place()
    if place is None or _distrusted(place):
        return None
    path = os.path.join(place, name)
    data, why = _own_file(path)
    if why:
        _say(why)
    if data is None:
        return None
    head = len(MAGIC) + 32
    payload = data[head:]
    intact = data.startswith(MAGIC) and _seal(name, payload) == data[len(MAGIC) : head]
    if intact:
        _used(path)
    return payload if intact else None


def _seal(name: str, payload: bytes) -> bytes:
    """Return a checksum that includes the name, so that a valid file under another name is rejected."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def save(name: str, payload: bytes) -> bool:
    """Save `payload` under `name` and return True on success; a read-only home or a full disk is not an error."""
    import tempfile  # not needed by kernels that come from the cache

    place = _place()
    if place is None or _distrusted(place):
        return False
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _distrusted(place):
            return False
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
    except OSError as error:
        _say_nothing_is_kept(f"{brief(str(place))} cannot be written ({error.strerror})")
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + _seal(name, payload) + payload)
        os.replace(temporary, os.path.join(place, name))
    except OSError:
        _removed(temporary)
        return False
    except BaseException:  # Ctrl-C must not leave a partial file
        _removed(temporary)
        raise
    if next(_saves) % 64 == 0:  # scanning thousands of files takes time
        tidy()
    return True


# -- ownership and permissions


def _own_file(path: str) -> tuple[bytes | None, str]:
    """Return the bytes of the user's own regular file, or None, and the reason if an existing file is not trusted.

    Links are not followed, and opening a FIFO does not block. The check applies to the open file, which cannot be
    replaced in the meantime.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_BINARY", 0))
    except OSError:
        return None, f"{path} is a link" if os.path.islink(path) else ""
    found = os.fstat(handle)
    why = _shared(found) if stat.S_ISREG(found.st_mode) else "is not a regular file"
    if why:
        os.close(handle)
        return None, "" if stat.S_ISDIR(found.st_mode) else f"{path} {why}"  # a folder is harmless
    try:
        with open(handle, "rb") as file:
            return file.read(), ""
    except OSError:
        return None, ""


def distrust(place: Path) -> str:
    """Return the reason why files in the folder `place` cannot be trusted; "" if they can, or if it does not exist."""
    if not POSIX:
        return ""
    literal = Path(os.path.abspath(place))
    try:
        found = os.stat(literal)
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{place} is not a folder"
    if why := _shared(found):
        return f"{place} {why}"
    for path in dict.fromkeys((literal, *literal.parents, *Path(os.path.realpath(literal)).parents)):
        if why := _exchangeable(path):
            return why
    return ""


_distrust = cache(distrust)  # checks each folder on disk only once


def _exchangeable(path: Path) -> str:
    """Return why another user could replace this path or something inside it; "" if no one could."""
    try:
        found = os.lstat(path)
    except OSError as error:
        return f"{path} cannot be examined ({error.strerror})"
    if found.st_uid not in (os.getuid(), 0, os.stat("/").st_uid):
        return f"{path} belongs to another user"
    if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX and _others_write(found):
        return f"{path} can be written by other users"
    return ""


def _shared(found: os.stat_result) -> str:
    if POSIX and found.st_uid != os.getuid():
        return "belongs to another user"
    return "can be written by other users" if POSIX and _others_write(found) else ""


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _private(found.st_gid)


def _private(gid: int) -> bool:
    """Return True if the user is the only member of a group."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _distrusted(place: Path) -> bool:
    why = _distrust(place) if os.path.exists(place) else ""
    if why:
        _say(why)
    return bool(why)


def _say(why: str) -> None:
    """Warn once for each folder."""
    place = str(folder())
    if place not in _said:
        _said.add(place)
        warn(
            f"no compiled code is loaded from the cache: {line(why)}. Remove that permission (chmod go-w), or set "
            "BELLCRANK_CACHE to a folder of your own."
        )


# -- size limits


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache: time of last use in seconds since 1970, and size in bytes.

    Paths are strings here, because Python 3.12 interns the parts of every `Path` for ever.
    """

    path: str
    used: float
    size: int


def kept() -> Iterator[CacheFile]:
    """Yield every cache file of this package; other files in the folder are skipped."""
    try:
        with os.scandir(folder()) as entries:  # NoFolderError is an OSError
            for entry in entries:
                if OUR_FILES.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield CacheFile(entry.path, found.st_mtime, found.st_size)
    except OSError:
        return


def limits() -> tuple[float, float]:
    """Return (bytes, seconds): the limits of size and of time without use, from the environment or by default."""
    return _number("BELLCRANK_CACHE_MB", MEGABYTES) * 1e6, _number("BELLCRANK_CACHE_DAYS", DAYS) * DAY


def _number(variable: str, usual: float) -> float:
    try:
        found = float(os.environ.get(variable, usual))
    except ValueError:
        return usual
    return found if found >= 0.0 else usual


def tidy() -> int:
    """Remove files that were unused for too long, then the least recently used ones; return the number removed."""
    most, oldest = limits()
    now, total, gone = time.time(), 0, 0
    for file in sorted(kept(), key=lambda f: -f.used):
        age = now - file.used
        new = os.path.basename(file.path).startswith(".")  # being written, or left behind by a killed process
        total += file.size
        if age > (HOUR if new else oldest) or (total > most and not new):
            gone += _removed(file.path)
    return gone


def clear() -> int:
    """Remove all cache files of this package; return the number removed."""
    return sum(_removed(file.path) for file in list(kept()))


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _used(path: str) -> None:
    """Record the use of a file once a day, because most file systems do not record access times."""
    try:
        if time.time() - os.lstat(path).st_mtime > DAY:
            os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
    except OSError:
        pass


@cache
def package_fingerprint() -> str:
    """Return a digest of the sources that generate code; a cached kernel is never used after one of them changed.

    The first kernel of every process waits for it. So the digest is cached as long as all files keep their sizes and
    timestamps, unless some files are so new that another change might not show in their timestamps.
    """
    root, files = _package()
    name = f"{key('package', root, repr(files))}.json"
    if (known := load(name)) is not None:
        return known.decode().strip('"')
    digest = hashlib.sha256()
    for file in files:
        with open(os.path.join(root, file[0]), "rb") as opened:
            digest.update(file[0].encode() + b"\0" + opened.read())
    if max(max(times) for _, _, *times in files) < time.time_ns() - SETTLED:
        save(name, f'"{digest.hexdigest()}"'.encode())
    return digest.hexdigest()


def steady() -> bool:
    """Return True if none of these sources was written since this process began.

    Modules are loaded one after the other. Code made by a mixture of old and new modules must not be found in the cache
    by either version.
    """
    return max(max(times) for _, _, *times in _package()[1]) <= BEGAN


def _package() -> tuple[str, list[tuple[str, int, int, int]]]:
    """Return the folder of the package, and its source files that generate code."""
    root = str(Path(__file__).resolve().parent.parent)
    return root, sorted(_files(root, len(root) + 1))


def _files(folder: str, skipped: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (relative path, size, modification time, change time) of each Python file."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                s = entry.stat()
                yield entry.path[skipped:], s.st_size, s.st_mtime_ns, s.st_ctime_ns
            elif "." not in entry.name and entry.name not in {"__pycache__", *ABOVE} and entry.is_dir():
                yield from _files(entry.path, skipped)
