"""Parquet files, opened in the one way that neither trusts their sizes nor leaves threads behind."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from bellcrank.extras import extra
from bellcrank.record.limits import check_decoded_size, decoding_at_most


def open_parquet(stream: IO[bytes], group: str) -> Any:
    """Return a pyarrow ParquetFile whose declared size is within the limits.

    Arrow's threads that read ahead (`pre_buffer`) may release a buffer of Python while the interpreter ends, which
    aborts the process: nothing is read ahead.

    Parameters
    ----------
    group : str
        The extra of this package that brings pyarrow, for the message where it is missing.
    """
    parquet = extra("pyarrow.parquet", group, "reading Parquet")
    file = parquet.ParquetFile(stream, pre_buffer=False, page_checksum_verification=True)
    about = file.metadata
    declared = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    check_decoded_size(stream, max(declared, 8 * about.num_rows * about.num_columns), "its footer")
    return file


def read_parquet_table(path: Path, group: str, max_bytes: int | None = None) -> Any:
    """Return all columns of a file as a pyarrow Table of at most so many bytes."""
    with decoding_at_most(max_bytes), open(path, "rb") as stream:
        return open_parquet(stream, group).read()
