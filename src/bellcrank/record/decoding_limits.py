"""Limits on the decoded size of record files.

Compressed files can describe far more than they hold: a few kilobytes that decode to gigabytes. Each reader compares
the sizes that a file declares with a limit before it decodes or allocates anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO

from bellcrank.errors import InputError, ReadError

ALWAYS_ALLOWED_BYTES = 256 << 20
EXPANSION = 200  # decoded bytes per byte of the file; measured records have 1 to 20, constant columns more

_max_bytes: ContextVar[int | None] = ContextVar("max_bytes", default=None)


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
