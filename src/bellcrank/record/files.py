"""Saving and loading of records. If saving fails, the record stays in memory; damaged files are not loaded."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import BellcrankError, InputError, ModelError, ReadError, warn
from bellcrank.files import path_of, write_atomically
from bellcrank.record.formats import SUFFIXES, decoding_limit, format_of

if TYPE_CHECKING:
    from bellcrank.record.record import Record

# Errors of a parser have no number; a damaged offset before the beginning of a file gives an error of the system.
PARSER_ERRNOS = {None, errno.EINVAL, errno.EOVERFLOW}
RETRY_HINT = 'The record is still in memory: call save("...") again'


def save(run: Record, path: str | Path) -> Path:
    """Write `run` to `path`, in the format of its suffix: .parquet, .csv, .npz or .mcap."""
    path = path_of(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f'{path}: a record is saved as {", ".join(SUFFIXES)}; got "{path.suffix}". {RETRY_HINT} with one of these.'
        )
    kind = format_of(path.suffix.lower())
    return write_atomically(path, lambda stream: kind.write(run, stream), RETRY_HINT)


@explain_argument_errors
def load(path: str | Path, max_bytes: int | None = None) -> Record:
    """Load a record from a file that `Record.save` wrote.

    Parameters
    ----------
    path : str or Path
        File with the suffix .parquet, .csv, .npz or .mcap.
    max_bytes : int, optional
        Maximum number of bytes after decoding. The default is 256 MiB plus 200 times the size of the file: enough
        for any usual record, while a file that was made to fill the memory is rejected before it is decoded.

    Returns
    -------
    Record
        The saved record.

    Raises
    ------
    ReadError
        If the file does not exist, is not a record, is damaged, or declares more than `max_bytes`.
    """
    path = path_of(path, ReadError)
    if path.suffix.lower() not in SUFFIXES:
        raise ReadError(f'{path}: records end in {", ".join(SUFFIXES)}; got "{path.suffix}".')
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe may never end
        raise ReadError(f"{path} is not a regular file; expected a record.")
    with decoding_limit(max_bytes):
        run = _read(path)
    if any(stop.reason == "interrupted" for stop in run.stops):
        warn(
            f"{path} was not closed: it ends at t = {run.stops[0].time:g} s, where the program that wrote it was "
            "ended. Saving it again closes and seals it.",
            UserWarning,
        )
    elif not run.sealed:
        warn(
            f"{path} has no seal: an older bellcrank or another program wrote it, and damage would not be detected. "
            "Saving it again seals it.",
            UserWarning,
        )
    return run


def _read(path: Path) -> Record:
    kind = format_of(path.suffix.lower())
    try:
        with open(path, "rb") as stream:
            first_bytes = stream.read(len(kind.MAGIC))
            if first_bytes != kind.MAGIC:
                found_text = f"that it begins with {first_bytes!r}" if first_bytes else "an empty file"
                raise ReadError(f"{path}: expected {kind.WHAT}, found {found_text}.")
            stream.seek(0)
            return kind.read(stream)
    except ReadError as error:
        text = str(error)
        raise error if text.startswith(f"{path}:") else ReadError(f"{path}: expected {kind.WHAT}, but {text}") from None
    except (InputError, ModelError) as error:  # a description of an impossible mechanism or record
        raise ReadError(f"{path}: expected {kind.WHAT}, but {error}") from error
    except BellcrankError:
        raise
    except Exception as error:  # a damaged file can cause any error in four parsers
        if isinstance(error, OSError) and error.errno not in PARSER_ERRNOS:  # an error of the system
            raise ReadError(f"{path} cannot be read: {error.strerror or error}.") from None
        raise ReadError(f"{path}: expected {kind.WHAT}; it is damaged or truncated ({_first_line(error)}).") from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
