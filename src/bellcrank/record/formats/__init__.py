"""File formats of records: one module for each, with `write(run, stream)`, `read(stream)`, WHAT and MAGIC.

Compressed files can describe far more than they hold: a few kilobytes that decode to gigabytes. Each reader compares
the sizes that a file declares with a limit before it decodes or allocates anything. Parquet files are read without
background threads.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from bellcrank.errors import InputError, ReadError
from bellcrank.lazy_import import optional_import

if TYPE_CHECKING:
    from bellcrank.record.record import Record

ALWAYS_ALLOWED_BYTES = 256 << 20
EXPANSION = 200  # decoded bytes per byte of the file; measured records have 1 to 20, constant columns more

_max_bytes: ContextVar[int | None] = ContextVar("max_bytes", default=None)


class Format(Protocol):
    """Interface of a file format, implemented by each module of this package."""

    WHAT: str  # for messages
    MAGIC: bytes  # first bytes of every file of the format

    def write(self, run: Record, stream: IO[bytes]) -> None:
        """Write `run` to `stream`."""

    def read(self, stream: IO[bytes]) -> Record:
        """Read a record from `stream`."""


# Name of a module of this package, or the format of a plug-in.
SUFFIXES: dict[str, str | Format] = {".parquet": "parquet", ".csv": "csv", ".npz": "npz", ".mcap": "mcap"}


def format_of(suffix: str) -> Format:
    """Return the format of `suffix`; modules are imported on use, as most need a package of the extra `record`."""
    entry = SUFFIXES[suffix]
    return cast(Format, importlib.import_module(f"{__name__}.{entry}")) if isinstance(entry, str) else entry


@contextmanager
def decoding_limit(max_bytes: int | None) -> Iterator[None]:
    """Limit decoding to `max_bytes` within the context; None is the default, which depends on the size of the file."""
    if max_bytes is not None and (isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1):
        raise InputError(f"max_bytes is {max_bytes!r}; expected a positive number of bytes.")
    token = _max_bytes.set(max_bytes)
    try:
        yield
    finally:
        _max_bytes.reset(token)


def check_decoded_size(stream: IO[bytes], declared: int, part: str) -> None:
    """Raise a ReadError if more decoded bytes are declared than a file of its size may have.

    Parameters
    ----------
    stream
        The open file.
    declared
        Decoded bytes that the file declares.
    part
        Part of the file that declares them, for the message.
    """
    size = file_size(stream)
    limit = _max_bytes.get()
    if limit is None:
        limit = ALWAYS_ALLOWED_BYTES + EXPANSION * size
    if declared > limit:
        raise ReadError(
            f"{part} declares {_bytes(declared)} in a file of {_bytes(size)}; at most {_bytes(limit)} are decoded, "
            "because a damaged or hostile file could fill the memory. If you trust the file: "
            f"load_record(path, max_bytes={declared})."
        )


def file_size(stream: IO[bytes]) -> int:
    """Return the size of the open file `stream` in bytes, and keep its position."""
    position = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(position)
    return size


def _bytes(n: int) -> str:
    return f"{n / 1e6:,.1f} MB" if n >= 100_000 else f"{n:,} bytes"


def open_parquet(stream: IO[bytes], group: str) -> Any:
    """Return a pyarrow ParquetFile whose declared size is within the limits; read it by `read_columns`.

    A thread of Arrow may release the last reference to a Python buffer after the reader has returned. If the
    interpreter exits meanwhile, this aborts the process. So nothing is prefetched (`pre_buffer`).

    Parameters
    ----------
    stream
        The open file.
    group
        Optional dependency of this package that includes pyarrow, for the message if it is missing.
    """
    parquet = optional_import("pyarrow.parquet", group, "reading Parquet")
    file = parquet.ParquetFile(stream, pre_buffer=False, page_checksum_verification=True)
    about = file.metadata
    declared = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    check_decoded_size(stream, max(declared, 8 * about.num_rows * about.num_columns), "its footer")
    return file


def read_columns(file: Any) -> Any:
    """Return all columns of the ParquetFile `file` as a pyarrow Table, decoded in this thread (see `open_parquet`)."""
    return file.read(use_threads=False)


def read_parquet_table(path: Path, group: str, max_bytes: int | None = None) -> Any:
    """Return the columns of the file `path` as a pyarrow Table of at most `max_bytes`; `group` as in `open_parquet`."""
    with decoding_limit(max_bytes), open(path, "rb") as stream:
        return read_columns(open_parquet(stream, group))
