"""Object code on disk, in the user's cache folder: a second start compiles nothing.

A file is a line of identification, a checksum and the payload; it is written beside and then renamed, so that
processes can race and a crash leaves nothing half. Whatever does not check out is treated as absent and overwritten.
What was not used for long goes, and so does what was not used longest where there is too much.

The checksum is against damage. Against other people: code that is loaded and run must be what this user wrote. Nobody
else may write the file, its folder, or any folder on the way there, or they could put something in its place; from
there nothing is loaded, nothing is kept, and one line says why. Root may, for root may do anything. A group counts as
nobody else where it is the user's private one (Debian's and Fedora's scheme: the group has the user's name and no other
member). Systems without such owners are left to their own rules.
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
SETTLED = 2_000_000_000  # ns after which no change of a file leaves its times as they were
MEGABYTES, DAYS = 1024.0, 90.0  # what it may hold, and how long what nobody uses; $BELLCRANK_CACHE_MB, ..._DAYS
HOUR, DAY = 3600.0, 86400.0
# Rooms above those that make code: nothing that is kept here is made of them (tests/unit/test_cache.py).
ABOVE = {
    "actuators", "cli", "cockpit", "control", "excavators", "exporting", "forces", "formats", "ground", "gym",
    "identify", "meshes", "papers", "record", "sim", "structures", "studies", "view", "zoo",
}  # fmt: skip
OUR_FILES = re.compile(r"[0-9a-f]{64}\.(o|json|cubin)|\.new-\w+")
_saves = count()
_said: set[str] = set()


class NoFolderError(OSError):
    """There is no place for a cache: the user has no home."""


def folder() -> Path:
    """Return $BELLCRANK_CACHE, or the platform's place for caches; raise NoFolderError where neither is known."""
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
    """Return the user's home, an absolute path; containers may run as a user who has none."""
    try:
        found = Path.home() if os.environ.get("HOME") != "" else Path()
    except RuntimeError:
        found = Path()
    if not found.is_absolute():
        raise NoFolderError("this user has no home: HOME is not set, and there is no entry in passwd")
    return found


def location() -> tuple[Path | None, str]:
    """Return the folder, or None and why nothing can be kept; the folder itself need not exist yet."""
    try:
        place = folder()
        os.stat(place)
    except NoFolderError as error:
        return None, str(error)
    except (FileNotFoundError, NotADirectoryError):
        return place, ""
    except OSError as error:  # too long a name, or a home that is somebody else's
        return None, f"{brief(str(place))} cannot be looked up ({error.strerror})"
    return place, ""


def _place() -> Path | None:
    """The folder; where there is none, that is said once and nothing is kept."""
    place, why = location()
    if place is None:
        _say_nothing_is_kept(why)
    return place


def _say_nothing_is_kept(why: str) -> None:
    """Once for each reason."""
    if why not in _said:
        _said.add(why)
        warn(
            f"no compiled code is kept: {line(why)}. Every process compiles anew; let BELLCRANK_CACHE name a folder of "
            "your own."
        )


def key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The payload, or None where there is none that can be trusted."""
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
    """A checksum that also knows the name: a good file in another's place is as wrong as a broken one."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def save(name: str, payload: bytes) -> bool:
    """Whether it could be kept; a read-only home or a full disk is no reason to fail."""
    import tempfile  # a kernel that comes from the cache never needs it

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
    except BaseException:  # Ctrl-C: nothing half stays behind
        _removed(temporary)
        raise
    if next(_saves) % 64 == 0:  # looking through thousands of files takes its time
        tidy()
    return True


# -- whose it is


def _own_file(path: str) -> tuple[bytes | None, str]:
    """The bytes of the user's own plain file, or None; and why not, where there is something that is not trusted.

    A link is not followed and a FIFO not waited for. The open file is what is looked at: nobody can exchange that.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_BINARY", 0))
    except OSError:
        return None, f"{path} is a link" if os.path.islink(path) else ""
    found = os.fstat(handle)
    why = _shared(found) if stat.S_ISREG(found.st_mode) else "is no plain file"
    if why:
        os.close(handle)
        return None, "" if stat.S_ISDIR(found.st_mode) else f"{path} {why}"  # a folder is in the way, and no more
    try:
        with open(handle, "rb") as file:
            return file.read(), ""
    except OSError:
        return None, ""


def distrust(place: Path) -> str:
    """Why what lies in this folder cannot be trusted; empty where it can, or where there is no such folder."""
    if not POSIX:
        return ""
    literal = Path(os.path.abspath(place))
    try:
        found = os.stat(literal)
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{place} is no folder"
    if why := _shared(found):
        return f"{place} {why}"
    for path in dict.fromkeys((literal, *literal.parents, *Path(os.path.realpath(literal)).parents)):
        if why := _exchangeable(path):
            return why
    return ""


_distrust = cache(distrust)  # asked of the disk once for each folder


def _exchangeable(path: Path) -> str:
    """Whether somebody else could put another thing in this one's place, or in a place inside it."""
    try:
        found = os.lstat(path)
    except OSError as error:
        return f"{path} cannot be looked at ({error.strerror})"
    if found.st_uid not in (os.getuid(), 0, os.stat("/").st_uid):
        return f"{path} belongs to another user"
    if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX and _others_write(found):
        return f"{path} may be written by others"
    return ""


def _shared(found: os.stat_result) -> str:
    if POSIX and found.st_uid != os.getuid():
        return "belongs to another user"
    return "may be written by others" if POSIX and _others_write(found) else ""


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _private(found.st_gid)


def _private(gid: int) -> bool:
    """Whether a group is the user alone."""
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
    """Once for each folder."""
    place = str(folder())
    if place not in _said:
        _said.add(place)
        warn(
            f"no compiled code is loaded from the cache: {line(why)}. Take that right away (chmod go-w), or let "
            "BELLCRANK_CACHE name a folder of your own."
        )


# -- how much it is


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache: when it was last used, in seconds since 1970, and its bytes. (Paths of files are texts here:
    Python 3.12 never forgets a part of a `Path`.)
    """

    path: str
    used: float
    size: int


def kept() -> Iterator[CacheFile]:
    """Every file of ours, and nothing else that lies in the folder."""
    try:
        with os.scandir(folder()) as entries:  # NoFolderError is an OSError
            for entry in entries:
                if OUR_FILES.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield CacheFile(entry.path, found.st_mtime, found.st_size)
    except OSError:
        return


def limits() -> tuple[float, float]:
    """(bytes, seconds): what the environment says, or what is usual."""
    return _number("BELLCRANK_CACHE_MB", MEGABYTES) * 1e6, _number("BELLCRANK_CACHE_DAYS", DAYS) * DAY


def _number(variable: str, usual: float) -> float:
    try:
        found = float(os.environ.get(variable, usual))
    except ValueError:
        return usual
    return found if found >= 0.0 else usual


def tidy() -> int:
    """Removes what has not been used for too long, and of the rest what was not used longest; how many files."""
    most, oldest = limits()
    now, total, gone = time.time(), 0, 0
    for file in sorted(kept(), key=lambda f: -f.used):
        age = now - file.used
        new = os.path.basename(file.path).startswith(".")  # being written, or left behind by a process that was killed
        total += file.size
        if age > (HOUR if new else oldest) or (total > most and not new):
            gone += _removed(file.path)
    return gone


def clear() -> int:
    """Removes everything that is ours; how many files."""
    return sum(_removed(file.path) for file in list(kept()))


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _used(path: str) -> None:
    """Noted once a day: the file system's own notes of reading are mostly switched off."""
    try:
        if time.time() - os.lstat(path).st_mtime > DAY:
            os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
    except OSError:
        pass


@cache
def package_fingerprint() -> str:
    """Changes with every change of the code that makes code: a cached kernel never outlives what it was made by.

    Every first kernel of a process waits for it, so what was read is not read again while all files have the sizes and
    times that they had; unless some are so new that another change would not show in their times.
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
    """Whether nobody has written those files since this process began: files are loaded one after the other, and code
    that is made of some from before and some from after must not be found by either.
    """
    return max(max(times) for _, _, *times in _package()[1]) <= BEGAN


def _package() -> tuple[str, list[tuple[str, int, int, int]]]:
    """Where it is, and its files that make code."""
    root = str(Path(__file__).resolve().parent.parent)
    return root, sorted(_files(root, len(root) + 1))


def _files(folder: str, skipped: int) -> Iterator[tuple[str, int, int, int]]:
    """Files of Python: where, how large, and when they were written and changed."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                s = entry.stat()
                yield entry.path[skipped:], s.st_size, s.st_mtime_ns, s.st_ctime_ns
            elif "." not in entry.name and entry.name not in {"__pycache__", *ABOVE} and entry.is_dir():
                yield from _files(entry.path, skipped)
