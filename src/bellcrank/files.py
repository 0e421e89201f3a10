"""Files of users: atomic replacement of files and folders, bytes of a regular file, and one error for damaged ones.

A file or a folder is replaced atomically: it is written under a temporary name beside its destination, then renamed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from bellcrank.errors import BellcrankError, InputError, ReadError, brief

ABANDONED_AFTER_SECONDS = 3600.0  # s, age from which a temporary file counts as abandoned
FOLDER_SUFFIXES = (".part", ".old")  # suffixes of the folder being written and of the one being replaced
RENAME_ATTEMPTS, RENAME_PAUSE_SECONDS = 10, 0.02  # attempts, and s between them, for a reader to finish
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def path_of(value: Any, error: type[BellcrankError] = InputError) -> Path:
    """Return `value` as a Path; raise `error` if it cannot be the path of a file."""
    try:
        path = os.fspath(value)
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        path = b""
    if not isinstance(path, str) or not path or "\0" in path:
        raise error(f"path is {brief(value)}; expected the path of a file.")
    return Path(path)


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any], hint: str) -> Path:
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
    temporary = None
    try:
        _check(path, target)
        remove_abandoned(target, ".part")
        temporary, handle = _create_temporary(target)
        with open_handle(handle) as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        replace(temporary, target)
    except OSError as error:
        raise _write_error(path, error, hint) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
    return path


def check_writable(path: Path, hint: str) -> None:
    """Raise InputError if no file can be written to `path`, before its contents are computed; `hint` is the action."""
    try:
        _check(path, Path(os.path.realpath(path)))
    except OSError as error:
        raise _write_error(path, error, hint) from error


def _check(path: Path, target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    if target.exists() and not target.is_file():
        raise OSError(None, "it is not a regular file")
    if not target.parent.is_dir():
        raise FileNotFoundError(None, f'there is no directory "{path.parent}"')
    what, place = ("existing file", target) if target.exists() else ("directory", target.parent)
    if not os.access(place, os.W_OK):
        raise PermissionError(None, f"the {what} is not writable")


def _write_error(path: Path, error: OSError, hint: str) -> InputError:
    why = error.strerror or str(error)
    return InputError(f"{path} cannot be written: {why}. {hint} with another path, or free some space first.")


def replace(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`; retry on Windows, where a file that is open for reading cannot be replaced."""
    for attempts_left in reversed(range(RENAME_ATTEMPTS if os.name == "nt" else 1)):
        try:
            return os.replace(temporary, target)
        except PermissionError:
            if not attempts_left:
                raise
            time.sleep(RENAME_PAUSE_SECONDS)


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
    target = path_of(path)
    if target.suffix.lower() not in suffixes and os.path.isfile(target) and os.path.getsize(target):
        raise InputError(f"{target} exists and is not {' or '.join(suffixes)}; move it away, or choose another name.")
    return write_text(target, text, hint)


def write_text(path: Path, text: str, hint: str) -> Path:
    """Write `text` to the file `path` atomically, in UTF-8; `hint` is the action for the error message."""
    data = text.encode("utf-8", "backslashreplace")
    return write_atomically(path, lambda stream: stream.write(data), hint)


def _create_temporary(target: Path) -> tuple[Path, int]:
    """Create a temporary file beside the target, with the permissions of the target or of a new file."""
    while True:
        temporary = target.with_name(f".{shortened(target.name)}.{secrets.token_hex(8)}.part")
        try:
            handle = os.open(temporary, _CREATE_FLAGS, 0o666)
        except FileExistsError:
            continue
        if target.exists() and hasattr(os, "fchmod"):
            with suppress(OSError):
                os.fchmod(handle, stat.S_IMODE(os.stat(target).st_mode))
        return temporary, handle


def open_handle(handle: int) -> IO[bytes]:
    """Open a file `handle` for writing."""
    return open(handle, "wb")


def shortened(name: str) -> str:
    """Shorten a file `name` so that the additions around it fit."""
    return os.fsencode(name)[:200].decode(errors="ignore")  # file names may not be valid UTF-8


def remove_abandoned(target: Path, *suffixes: str) -> None:
    """Remove temporary files and folders of `target` with these `suffixes` that killed processes left behind.

    No writer pauses for an hour.
    """
    with suppress(OSError):
        for path in target.parent.iterdir():
            if not path.name.startswith(f".{shortened(target.name)}.") or path.suffix not in suffixes:
                continue
            with suppress(OSError):
                status = os.lstat(path)
                if time.time() - status.st_mtime > ABANDONED_AFTER_SECONDS:
                    shutil.rmtree(path) if stat.S_ISDIR(status.st_mode) else path.unlink()


def write_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write `files` as the folder `path`; replace an earlier export, but no folder with other files in it."""
    target = Path(os.path.realpath(path))
    if not target.name:
        raise InputError(f"{path} is the root of all folders; expected the name of a folder, to be made or replaced.")
    partial_folder, replaced_folder = (
        target.with_name(f".{shortened(target.name)}.{secrets.token_hex(8)}{x}") for x in FOLDER_SUFFIXES
    )
    moved = False
    try:
        _check_replaceable(path, target, files)
        remove_abandoned(target, *FOLDER_SUFFIXES)
        for name, data in files.items():
            place = partial_folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        if target.exists():
            os.replace(target, replaced_folder)
            moved = True
        os.replace(partial_folder, target)
    except OSError as error:
        if moved and not target.exists():
            os.replace(replaced_folder, target)
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be written: {why}. Export to another path, or make room first.") from error
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)
        if moved and target.exists():
            shutil.rmtree(replaced_folder, ignore_errors=True)
    return path


def _check_replaceable(path: Path, target: Path, files: Mapping[str, bytes]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{path} is a file; expected the name of a folder, to be made or replaced.")
    known = {target / name for name in files}
    if target == Path.cwd() or target in Path.cwd().parents:
        raise InputError(
            f"{path} is or contains the current working directory and would be replaced; name a new folder."
        )
    others = (p for p in sorted(target.rglob("*")) if p.is_symlink() or not p.is_dir())  # also pipes and dangling links
    foreign_file = next((p for p in others if p not in known or p.is_symlink()), None)
    if foreign_file is not None:
        raise InputError(
            f"{path} exists already, and {foreign_file.relative_to(target)} in it is not part of this export; it would "
            "be lost. Give the name of a new folder, or remove this one."
        )


FileContents = TypeVar("FileContents")

# Errors that a damaged file causes in a reader without a check for them; they are converted in one place.
DAMAGED_FILE_ERRORS = (
    ValueError, LookupError, TypeError, ArithmeticError, AttributeError, StopIteration, RecursionError, MemoryError,
    struct.error,
)  # fmt: skip


def read_bytes(path: str | os.PathLike[str], description: str) -> tuple[str, Path, bytes]:
    """Return the description of a file, its path and its bytes; raise ReadError if it is not readable.

    Parameters
    ----------
    path
        The file.
    description
        Kind of file, for messages.
    """
    file = path_of(path, ReadError)
    where = f'{description} "{file}"'
    try:
        if file.exists() and not file.is_file():  # reading a pipe may never end
            raise ReadError(f"{where}: is not a regular file; expected one.")
        return where, file, file.read_bytes()
    except OSError as error:
        raise ReadError(f"{where}: {error.strerror or error}.") from None


def read_lines(path: str | os.PathLike[str], description: str) -> tuple[str, list[str]]:
    """Return the description of the file at `path`, of the kind `description`, and its lines in ASCII."""
    where, _, raw = read_bytes(path, description)
    return where, raw.decode("ascii", errors="replace").splitlines()


def check_last_line(where: str, raw: bytes) -> None:
    """Raise ReadError if the last line of `raw` has no line break; `where` begins the message.

    A number that was cut short would otherwise be read as another number.
    """
    if not raw.endswith((b"\n", b"\r")):
        raise ReadError(
            f"{where}: its last line has no line break; was the file cut short? If it is complete, add one."
        )


@contextmanager
def report_damaged(where: str) -> Iterator[None]:
    """Convert an error of Python or numpy inside the block to a ReadError; `where` begins the message."""
    try:
        with np.errstate(all="ignore"):  # `checked_finite` checks the results
            yield
    except BellcrankError:
        raise
    except DAMAGED_FILE_ERRORS as error:
        error_text = f"{type(error).__name__}: {brief(str(error), 200)}"
        raise ReadError(f"{where}: is damaged or not of this format ({error_text}).") from None


def checked_finite(where: str, data: FileContents) -> FileContents:
    """Return the dataclass `data` if its numbers are finite; raise ReadError if not. `where` begins the message."""
    for field in fields(data):  # type: ignore[arg-type]
        value = getattr(data, field.name)
        for x in value.values() if isinstance(value, dict) else (value,):
            if isinstance(x, float | np.ndarray) and np.asarray(x).dtype.kind == "f" and not np.isfinite(x).all():
                raise ReadError(f"{where}: its numbers are too large or NaN: {field.name} is not finite.")
    return data
