"""Whether a file on disk is the user's own: code that is loaded and run must be what this user wrote.

Nobody else may write the file, its folder, or any folder on the way there, or they could put something in its place.
Root may, for root may do anything. A group counts as nobody else where it is the user's private one (Debian's and
Fedora's scheme: the group has the user's name and no other member). Systems without such owners are left to their own
rules.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

POSIX = hasattr(os, "getuid")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read(path: Path) -> tuple[bytes | None, str]:
    """The bytes of the user's own plain file, or None; and why not, where there is something that is not trusted.

    A link is not followed and a FIFO not waited for. The open file is what is looked at: nobody can exchange that.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_BINARY", 0))
    except OSError:
        return None, f"{path} is a link" if path.is_symlink() else ""
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


def distrust(folder: Path) -> str:
    """Why what lies in this folder cannot be trusted; empty where it can, or where there is no such folder."""
    if not POSIX:
        return ""
    literal = Path(os.path.abspath(folder))
    try:
        found = os.stat(literal)
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    if why := _shared(found):
        return f"{folder} {why}"
    for path in dict.fromkeys((literal, *literal.parents, *Path(os.path.realpath(literal)).parents)):
        if why := _exchangeable(path):
            return why
    return ""


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
