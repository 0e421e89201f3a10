"""Read the bytes of a robot file, with errors for anything that is not one."""

from __future__ import annotations

from pathlib import Path

from bellcrank.errors import ReadError

MAX_FILE_BYTES = 100_000_000  # bytes; the largest known robot file has about a million


def file_bytes(path: Path) -> bytes:
    """Return the bytes of the file `path`; raise a ReadError if it is not a plain file of at most MAX_FILE_BYTES."""
    try:
        if not path.is_file():  # a device or a pipe may never end
            what = "is not a plain file" if path.exists() else "does not exist"
            raise ReadError(f"{path} {what}; expected a file.")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise ReadError(f"{path} has {size:,} bytes; expected a robot file, at most {MAX_FILE_BYTES:,}.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"{path} cannot be read: {error}. Check the path and its permissions.") from None
