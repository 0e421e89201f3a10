"""Atomic file replacement: write to a temporary file in the same folder, then rename it."""

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

HOUR = 3600.0  # s, age from which a temporary file counts as abandoned
TRIES, PAUSE = 10, 0.02  # attempts, and s between them, for a reader to finish
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def path_of(given: Any, error: type[BellcrankError] = InputError) -> Path:
    """Return `given` as a Path; raise `error` if it cannot be the path of a file."""
    try:
        found = os.fspath(given)
        os.fsencode(found)
    except (TypeError, UnicodeEncodeError):
        found = b""
    if not isinstance(found, str) or not found or "\0" in found:
        raise error(f"path is {brief(given)}; expected the path of a file.")
    return Path(found)


def write_whole(path: Path, write: Callable[[IO[bytes]], Any], hint: str) -> Path:
    """Write a file atomically: a reader sees the old file or the new one, with any number of writers.

    Parameters
    ----------
    path
        The file.
    write
        Called with the open stream.
    hint
        The action for the error message, such as "Save".
    """
    target = Path(os.path.realpath(path_of(path)))  # write to the target of a symbolic link, do not replace the link
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
    """Raise InputError if no file can be written to `path`, before its contents are computed; `hint` is the action."""
    try:
        _check(path, Path(os.path.realpath(path)))
    except OSError as error:
        raise _unwritten(path, error, hint) from error


def _check(path: Path, target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    if target.exists() and not target.is_file():
        raise OSError(None, "it is not a regular file")
    if not target.parent.is_dir():
        raise FileNotFoundError(None, f'there is no directory "{path.parent}"')
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(None, "the existing file is not writable")


def _unwritten(path: Path, error: OSError, hint: str) -> InputError:
    why = error.strerror or str(error)
    return InputError(f"{path} cannot be written: {why}. {hint} with another path, or free some space first.")


def replace(beside: Path, target: Path) -> None:
    """Rename `beside` to `target`; retry on Windows, where a file that is open for reading cannot be replaced."""
    for left in reversed(range(TRIES if os.name == "nt" else 1)):
        try:
            return os.replace(beside, target)
        except PermissionError:
            if not left:
                raise
            time.sleep(PAUSE)


def write_page(path: Any, text: str, hint: str, *suffixes: str) -> Path:
    """Write a page or a picture, but replace only a file with one of these suffixes.

    This guards against slips such as `run.report("run.parquet")`, which would destroy the record.

    Parameters
    ----------
    path
        The file.
    text
        Its text.
    hint
        The action for the error message.
    suffixes
        Suffixes of files that may be replaced.
    """
    where = path_of(path)
    if where.suffix.lower() not in suffixes and os.path.isfile(where) and os.path.getsize(where):
        raise InputError(f"{where} exists and is not {' or '.join(suffixes)}; move it away, or choose another name.")
    return write_text(where, text, hint)


def write_text(path: Path, text: str, hint: str) -> Path:
    """Write `text` to the file `path` atomically, in UTF-8; `hint` is the action for the error message."""
    data = text.encode("utf-8", "backslashreplace")
    return write_whole(path, lambda stream: stream.write(data), hint)


def _created(target: Path) -> tuple[Path, int]:
    """Create a temporary file beside the target, with the permissions of the target or of a new file."""
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
    """Open a file `handle` for writing."""
    return open(handle, "wb")


def _short(name: str) -> str:
    """Shorten a file name so that the additions around it fit."""
    return os.fsencode(name)[:200].decode(errors="ignore")  # file names may not be valid UTF-8


def _sweep(target: Path) -> None:
    """Remove temporary files of killed processes: no writer pauses for an hour."""
    with suppress(OSError):
        for path in target.parent.iterdir():
            name = path.name
            if name.startswith(f".{_short(target.name)}.") and name.endswith(".part"):
                with suppress(OSError):
                    if time.time() - os.lstat(path).st_mtime > HOUR:
                        path.unlink()
