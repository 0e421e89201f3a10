"""Saving and loading. A file appears whole or not at all, and whatever fails, the record stays in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bellcrank.errors import BellcrankError, InputError, ReadError
from bellcrank.record.formats import SUFFIXES, format_of

if TYPE_CHECKING:
    from bellcrank.record.record import Record

KEPT = 'The record is still in memory: call save("...") again'


def save(run: Record, path: str | Path) -> Path:
    """Writes the record; the end of the name says how: .parquet, .csv, .npz or .mcap."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f'{path}: a record is saved as {", ".join(SUFFIXES)}; got "{path.suffix}". {KEPT} with one of these.'
        )
    kind = format_of(path.suffix.lower())
    return write_whole(path, lambda stream: kind.write(run, stream), KEPT)


def write_whole(path: Path, write: Callable[[IO[bytes]], Any], hint: str) -> Path:
    """First beside, then renamed: who looks sees the old file or the new one. hint: what to do if it fails."""
    target = Path(os.path.realpath(path))  # through a link, not over it
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if not target.parent.is_dir():
            raise FileNotFoundError(None, f'there is no directory "{path.parent}"')
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(None, "the file that is there may not be written")
        with opened(beside) as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be written: {why}. {hint} with another path, or make room first.") from error
    finally:
        with suppress(OSError):
            beside.unlink()
    return path


def opened(path: Path) -> IO[bytes]:
    return open(path, "wb")


def load(path: str | Path) -> Record:
    """Reads a file that `save` wrote."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ReadError(f'{path}: records end in {", ".join(SUFFIXES)}; got "{path.suffix}".')
    kind = format_of(path.suffix.lower())
    try:
        with open(path, "rb") as stream:
            begin = stream.read(len(kind.MAGIC))
            if begin != kind.MAGIC:
                found = f"that it begins with {begin!r}" if begin else "an empty file"
                raise ReadError(f"{path}: expected {kind.WHAT}, found {found}.")
            stream.seek(0)
            return kind.read(stream)
    except ReadError as error:
        text = str(error)
        raise error if text.startswith(f"{path}:") else ReadError(f"{path}: expected {kind.WHAT}, but {text}") from None
    except BellcrankError:
        raise
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # a damaged file can make any of four parsers fail in any way
        raise ReadError(f"{path}: expected {kind.WHAT}; it is damaged or truncated ({_first_line(error)}).") from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
