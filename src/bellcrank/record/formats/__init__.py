"""The files of a record: one module each, with `write(run, stream)`, `read(stream)`, and what a file looks like."""

from __future__ import annotations

import importlib
from typing import IO, TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from bellcrank.record.record import Record


class Format(Protocol):
    """What each module here has."""

    WHAT: str  # for messages
    MAGIC: bytes  # how every such file begins

    def write(self, run: Record, stream: IO[bytes]) -> None: ...

    def read(self, stream: IO[bytes]) -> Record: ...


# The name of a module here, or somebody's own.
SUFFIXES: dict[str, str | Format] = {".parquet": "parquet", ".csv": "csv", ".npz": "npz", ".mcap": "mcap"}


def format_of(suffix: str) -> Format:
    """Loaded on use: most need a package of the extra `record`."""
    found = SUFFIXES[suffix]
    return cast(Format, importlib.import_module(f"{__name__}.{found}")) if isinstance(found, str) else found
