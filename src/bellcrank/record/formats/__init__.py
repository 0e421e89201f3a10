"""File formats of records: one module for each, with `write(run, stream)`, `read(stream)`, WHAT and MAGIC."""

from __future__ import annotations

import importlib
from typing import IO, TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from bellcrank.record.record import Record


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
