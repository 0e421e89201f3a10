"""Reading of external files: bytes of a regular file, and one error for damaged ones."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from bellcrank.atomic_file import path_of
from bellcrank.errors import BellcrankError, ReadError, brief

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
