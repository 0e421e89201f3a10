"""Files that appear whole or not at all: written beside their place under a name of their own, then renamed."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from bellcrank.errors import BellcrankError, InputError, brief

HOUR = 3600.0
TRIES, PAUSE = 10, 0.02  # s, for a reader to be done
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def path_of(given: Any, error: type[BellcrankError] = InputError) -> Path:
    """What people give as a path, if there can be such a file."""
    try:
        found = os.fspath(given)
        os.fsencode(found)
    except (TypeError, UnicodeEncodeError):
        found = b""
    if not isinstance(found, str) or not found or "\0" in found:
        raise error(f"path is {brief(given)}; expected the path of a file.")
    return Path(found)


def write_whole(path: Path, write: Callable[[IO[bytes]], Any], hint: str) -> Path:
    """Who looks sees the old file or the new one, however many write it at once. hint: what to do if it fails."""
    target = Path(os.path.realpath(path_of(path)))  # through a link, not over it
    beside = None
    try:
        _check(path, target)
        _sweep(target)
        beside, handle = _created(target)
        with opened(handle) as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        replace(beside, target)
    except OSError as error:
        raise _unwritten(path, error, hint) from error
    finally:
        if beside is not None:
            with suppress(OSError):
                beside.unlink()
    return path


def check_place(path: Path, hint: str) -> None:
    """An error where no file could be written: to be asked before what would be in it is made for minutes."""
    try:
        _check(path, Path(os.path.realpath(path)))
    except OSError as error:
        raise _unwritten(path, error, hint) from error


def _check(path: Path, target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    if target.exists() and not target.is_file():
        raise OSError(None, "it is no plain file")
    if not target.parent.is_dir():
        raise FileNotFoundError(None, f'there is no directory "{path.parent}"')
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(None, "the file that is there may not be written")


def _unwritten(path: Path, error: OSError, hint: str) -> InputError:
    why = error.strerror or str(error)
    return InputError(f"{path} cannot be written: {why}. {hint} with another path, or make room first.")


def replace(beside: Path, target: Path) -> None:
    """Renames; on Windows, where nobody may take the place of a file that somebody reads, a few times."""
    for left in reversed(range(TRIES if os.name == "nt" else 1)):
        try:
            return os.replace(beside, target)
        except PermissionError:
            if not left:
                raise
            time.sleep(PAUSE)


def write_page(path: Any, text: str, hint: str, *suffixes: str) -> Path:
    """A page or a picture, in place of what was one by its name, and of nothing else: `run.report("run.parquet")` is a
    slip of the pen, and the record would be gone.
    """
    where = path_of(path)
    if where.suffix.lower() not in suffixes and os.path.isfile(where) and os.path.getsize(where):
        raise InputError(f"{where} exists and is no {' or '.join(suffixes)}; move it away, or choose another name.")
    return write_text(where, text, hint)


def write_text(path: Path, text: str, hint: str) -> Path:
    data = text.encode("utf-8", "backslashreplace")
    return write_whole(path, lambda stream: stream.write(data), hint)


def _created(target: Path) -> tuple[Path, int]:
    """A new file beside the target, with the rights that the target has or would get."""
    while True:
        beside = target.with_name(f".{_short(target.name)}.{secrets.token_hex(8)}.part")
        try:
            handle = os.open(beside, _NEW, 0o666)
        except FileExistsError:
            continue
        if target.exists() and hasattr(os, "fchmod"):
            with suppress(OSError):
                os.fchmod(handle, stat.S_IMODE(os.stat(target).st_mode))
        return beside, handle


def opened(handle: int) -> IO[bytes]:
    return open(handle, "wb")


def _short(name: str) -> str:
    """So that what is put around it still fits."""
    return os.fsencode(name)[:200].decode(errors="ignore")  # names of files may be no UTF-8


def _sweep(target: Path) -> None:
    """Removes what a process that was killed left of the same file: nobody writes for an hour without a change."""
    with suppress(OSError):
        for path in target.parent.iterdir():
            name = path.name
            if name.startswith(f".{_short(target.name)}.") and name.endswith(".part"):
                with suppress(OSError):
                    if time.time() - os.lstat(path).st_mtime > HOUR:
                        path.unlink()
