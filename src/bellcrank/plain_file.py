"""Files of other programs: their bytes, if there is a plain file; and one place for what a damaged one ends in."""

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

Made = TypeVar("Made")

# What reading a damaged file ends in where a reader did not look: whatever it trips over is said in one place.
BROKEN = (
    ValueError, LookupError, TypeError, ArithmeticError, AttributeError, StopIteration, RecursionError, MemoryError,
    struct.error,
)  # fmt: skip


def plain_bytes(path: str | os.PathLike[str], called: str) -> tuple[str, Path, bytes]:
    """(the file in words, its path, its bytes)."""
    file = path_of(path, ReadError)
    where = f'{called} "{file}"'
    try:
        if file.exists() and not file.is_file():  # a pipe may never end
            raise ReadError(f"{where}: is no plain file; expected one.")
        return where, file, file.read_bytes()
    except OSError as error:
        raise ReadError(f"{where}: {error.strerror or error}.") from None


def plain_lines(path: str | os.PathLike[str], called: str) -> tuple[str, list[str]]:
    where, _, raw = plain_bytes(path, called)
    return where, raw.decode("ascii", errors="replace").splitlines()


def check_end(where: str, raw: bytes) -> None:
    """An error where the last line has no end: a number that is cut short is another number, unseen."""
    if not raw.endswith((b"\n", b"\r")):
        raise ReadError(f"{where}: its last line has no end; was it cut short? If it is whole, add a line break to it.")


@contextmanager
def damaged(where: str) -> Iterator[None]:
    """An error of Python or numpy while a file is read is the file's fault."""
    try:
        with np.errstate(all="ignore"):  # `finite` looks at what comes out
            yield
    except BellcrankError:
        raise
    except BROKEN as error:
        said = f"{type(error).__name__}: {brief(str(error), 200)}"
        raise ReadError(f"{where}: is damaged, or of another kind ({said}).") from None


def finite(where: str, found: Made) -> Made:
    """What was read, a dataclass, if all numbers in it are finite."""
    for field in fields(found):  # type: ignore[arg-type]
        value = getattr(found, field.name)
        for x in value.values() if isinstance(value, dict) else (value,):
            if isinstance(x, float | np.ndarray) and np.asarray(x).dtype.kind == "f" and not np.isfinite(x).all():
                raise ReadError(f"{where}: its numbers are too large, or none: {field.name} is not finite.")
    return found
